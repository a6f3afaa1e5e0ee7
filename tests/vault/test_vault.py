"""The vault: only the owner's secret of that name is opened, with the master key that sealed it."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select
from support.requirements import requirement
from support.stage.make import MATE, USER
from support.stage.vaults import CANARY, ONE, TWO, add_users, given, load, put

from backburner.core.errors import SecretDamaged, VaultLocked
from backburner.core.ids import UserId
from backburner.ports import VaultStatus
from backburner.store.db import Database
from backburner.store.tables import data_keys, install_secrets, secrets
from backburner.store.tx import Tx
from backburner.vault.master_keys import MasterKey, MasterKeys
from backburner.vault.vault import SealingVault

TABLES = (secrets, install_secrets, data_keys)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "master_keys"


@pytest.fixture
def vault(database: Database, path: Path) -> SealingVault:
    add_users(database, USER, MATE)
    return SealingVault(MasterKeys(path))


def test_a_secret_is_opened_as_it_was_sealed(database: Database, vault: SealingVault) -> None:
    for owner in (USER, MATE, None):
        assert load(database, vault, owner) is None
        put(database, vault, owner)
        assert load(database, vault, owner) == CANARY
        assert load(database, vault, owner, "b") is None
    database.run(lambda tx: vault.put(tx.secrets, USER, "a", b""))

    assert load(database, vault, USER) == b""
    assert load(database, vault, MATE) == CANARY


def test_what_is_stored_shows_nothing_and_is_never_twice_the_same(
    database: Database, vault: SealingVault, path: Path
) -> None:
    put(database, vault, USER)
    put(database, vault, USER, "b")
    first = database.run(lambda tx: tx.secrets.load(USER, "a"))
    put(database, vault, USER)

    stored = database.run(lambda tx: [tx.secrets.load(USER, name) for name in "ab"])
    assert all(one is not None and one[:1] == b"\x01" and CANARY not in one for one in stored)
    assert len({first, *stored}) == 3
    keys = database.run(lambda tx: [key for _, key in tx.secrets.all_keys()])
    assert len({key[-48:] for key in keys}) == 2
    assert len(path.read_text().splitlines()) == 3


def _move(tx: Tx, source: tuple[UserId | None, str], to: tuple[UserId | None, str]) -> None:
    sealed = tx.secrets.load(*source)
    assert sealed is not None
    tx.secrets.put(*to, sealed)


@requirement("A-mcp-isolation")
@pytest.mark.parametrize(
    ("source", "to"),
    [
        ((MATE, "a"), (USER, "a")),
        ((USER, "b"), (USER, "a")),
        ((None, "a"), (USER, "a")),
        ((USER, "a"), (None, "a")),
    ],
    ids=["of another user", "of another name", "of the install", "into the install"],
)
def test_a_row_that_was_moved_opens_nothing(
    database: Database, vault: SealingVault, source: Any, to: Any
) -> None:
    for owner in (USER, MATE, None):
        put(database, vault, owner)
        put(database, vault, owner, "b")

    database.run(lambda tx: _move(tx, source, to))

    with pytest.raises(SecretDamaged):
        load(database, vault, *to)
    assert load(database, vault, *source) == CANARY


@requirement("A-mcp-isolation")
def test_a_user_with_the_key_of_another_opens_nothing_not_even_the_other_s_secrets(
    database: Database, vault: SealingVault
) -> None:
    put(database, vault, USER)
    put(database, vault, MATE)

    def steal(tx: Tx) -> None:
        wrapped = tx.secrets.load_key(MATE)
        assert wrapped is not None
        tx.secrets.put_key(USER, wrapped)
        _move(tx, (MATE, "a"), (USER, "a"))

    database.run(steal)

    with pytest.raises(VaultLocked, match="does not open"):
        load(database, vault, USER)
    with pytest.raises(VaultLocked, match="does not open"):
        put(database, vault, USER, "b")
    assert load(database, vault, MATE) == CANARY


@requirement("A-mcp-isolation")
def test_the_key_of_the_install_opens_nothing_as_that_of_a_user(
    database: Database, vault: SealingVault
) -> None:
    put(database, vault, USER)

    def steal(tx: Tx) -> None:
        wrapped = tx.secrets.load_key(None)
        assert wrapped is not None
        tx.secrets.put_key(USER, wrapped)

    database.run(steal)

    with pytest.raises(VaultLocked, match="does not open"):
        load(database, vault, USER)


def test_no_bit_of_a_secret_or_of_its_key_can_be_changed(
    database: Database, vault: SealingVault
) -> None:
    put(database, vault, USER)
    sealed = database.run(lambda tx: tx.secrets.load(USER, "a"))
    wrapped = database.run(lambda tx: tx.secrets.load_key(USER))
    assert sealed is not None
    assert wrapped is not None

    def attempt(tx: Tx) -> None:
        for place in range(len(sealed)):
            tx.secrets.put(USER, "a", _flip(sealed, place))
            with pytest.raises(SecretDamaged):
                vault.load(tx.secrets, USER, "a")
        tx.secrets.put(USER, "a", sealed)
        for place in range(len(wrapped)):
            tx.secrets.put_key(USER, _flip(wrapped, place))
            with pytest.raises(VaultLocked):
                vault.load(tx.secrets, USER, "a")
        tx.secrets.put_key(USER, wrapped)
        assert vault.load(tx.secrets, USER, "a") == CANARY

    database.run(attempt)


@pytest.mark.parametrize("length", [0, 1, 2, 12, 28])
def test_what_was_cut_off_opens_nothing(
    database: Database, vault: SealingVault, length: int
) -> None:
    put(database, vault, USER)

    def cut(tx: Tx, what: str) -> None:
        if what == "secret":
            tx.secrets.put(USER, "a", (tx.secrets.load(USER, "a") or b"")[:length])
        else:
            tx.secrets.put_key(USER, (tx.secrets.load_key(USER) or b"")[:length])

    database.run(lambda tx: cut(tx, "secret"))
    with pytest.raises(SecretDamaged):
        load(database, vault, USER)
    database.run(lambda tx: cut(tx, "key"))
    with pytest.raises(VaultLocked):
        load(database, vault, USER)


def test_a_secret_whose_key_was_deleted_opens_nothing(
    database: Database, vault: SealingVault
) -> None:
    put(database, vault, USER)
    database.run(lambda tx: tx.connection.execute(data_keys.delete()))

    with pytest.raises(SecretDamaged, match="key of a stored secret is gone"):
        load(database, vault, USER)


def _flip(value: bytes, place: int) -> bytes:
    return value[:place] + bytes([value[place] ^ 1]) + value[place + 1 :]


def test_a_database_that_another_master_key_sealed_is_locked_and_gets_no_new_key(
    database: Database, vault: SealingVault, path: Path
) -> None:
    put(database, given(ONE), USER)

    for owner in (USER, MATE, None):
        with pytest.raises(VaultLocked, match=f"master key one, which is not in {path}"):
            put(database, vault, owner)
    with pytest.raises(VaultLocked, match="one"):
        load(database, vault, USER)
    with pytest.raises(VaultLocked, match="one"):
        database.run(lambda tx: vault.check(tx.secrets))
    assert not path.exists()
    assert load(database, given(TWO, ONE), USER) == CANARY


def test_keys_of_users_alone_keep_a_new_master_key_from_being_made(
    database: Database, vault: SealingVault, path: Path
) -> None:
    put(database, given(ONE), USER)
    database.run(lambda tx: tx.secrets.forget(None))

    with pytest.raises(VaultLocked, match="master key one"):
        put(database, vault, MATE)

    assert not path.exists()
    assert load(database, given(ONE), USER) == CANARY


@pytest.mark.usefixtures("vault")
def test_another_master_key_of_the_same_id_is_refused(
    database: Database,
) -> None:
    put(database, given(ONE), USER)
    impostor = given(MasterKey(ONE.id, TWO.secret))

    for owner in (USER, MATE):
        with pytest.raises(VaultLocked, match="another one of that name"):
            put(database, impostor, owner)
    assert database.run(lambda tx: tx.secrets.load_key(MATE)) is None


@pytest.mark.usefixtures("vault")
def test_new_keys_are_wrapped_by_the_master_key_in_use_though_another_comes_first(
    database: Database,
) -> None:
    put(database, given(ONE), USER)

    put(database, given(TWO, ONE), MATE)

    # Machines that have only the former one still open everything.
    assert load(database, given(ONE), MATE) == CANARY


def test_a_failed_first_use_leaves_a_database_that_others_can_use(
    database: Database, vault: SealingVault, path: Path
) -> None:
    path.write_text("")
    with pytest.raises(VaultLocked):
        put(database, vault, USER)

    assert database.run(lambda tx: tx.secrets.all_keys()) == []
    put(database, given(ONE), USER)
    assert load(database, given(ONE), USER) == CANARY


def test_an_erased_user_takes_key_and_secrets_along(
    database: Database, vault: SealingVault
) -> None:
    put(database, vault, USER)
    put(database, vault, MATE)

    database.run(lambda tx: tx.personal_data.erase(USER))

    assert load(database, vault, USER) is None
    assert [owner for owner, _ in database.run(lambda tx: tx.secrets.all_keys())] == [None, MATE]
    assert load(database, vault, MATE) == CANARY


def test_a_user_who_comes_back_gets_a_key_that_opens_nothing_old(
    database: Database, vault: SealingVault
) -> None:
    put(database, vault, USER)
    sealed = database.run(lambda tx: tx.secrets.load(USER, "a"))
    assert sealed is not None
    database.run(lambda tx: tx.personal_data.erase(USER))
    add_users(database, USER)
    put(database, vault, USER, "b")
    database.run(lambda tx: tx.secrets.put(USER, "a", sealed))

    with pytest.raises(SecretDamaged):
        load(database, vault, USER)


def _status(vault: SealingVault, tx: Tx) -> VaultStatus:
    return vault.status(tx.secrets)


def test_the_status_counts_what_is_open_and_what_is_not(
    database: Database, vault: SealingVault, path: Path
) -> None:
    before = database.run(lambda tx: vault.status(tx.secrets))
    assert (before.is_open, before.users, before.current, before.master_keys) == (True, 0, "", [])

    put(database, given(ONE), USER)
    put(database, given(ONE), MATE)

    status = database.run(lambda tx: given(TWO, ONE).status(tx.secrets))
    assert (status.is_open, status.users, status.current) == (True, 2, "one")
    assert (status.master_keys, status.locked) == (["two", "one"], {})
    for other in (given(TWO), vault, given(MasterKey(ONE.id, TWO.secret))):
        status = database.run(partial(_status, other))
        assert (status.is_open, status.users, status.locked) == (False, 2, {"one": 3})
    path.write_text("broken")
    path.chmod(0o600)
    status = database.run(lambda tx: vault.status(tx.secrets))
    assert (status.is_open, status.locked) == (False, {"one": 3})
    assert "not ID:BASE64" in status.problem


def test_only_what_nobody_here_can_open_is_forgotten(
    database: Database, vault: SealingVault, path: Path
) -> None:
    put(database, given(ONE), USER)
    put(database, given(ONE), None)
    path.write_text("broken")
    path.chmod(0o600)
    with pytest.raises(VaultLocked):
        database.run(lambda tx: vault.forget_locked(tx.secrets))
    path.unlink()
    assert database.run(lambda tx: given(TWO, ONE).forget_locked(tx.secrets)) == 0

    assert database.run(lambda tx: vault.forget_locked(tx.secrets)) == 2

    def count_rows(tx: Tx) -> list[int]:
        counts = (select(func.count()).select_from(table) for table in TABLES)
        return [tx.connection.execute(count).scalar_one() for count in counts]

    assert database.run(count_rows) == [0, 0, 0]
    put(database, vault, USER)
    assert load(database, vault, USER) == CANARY
