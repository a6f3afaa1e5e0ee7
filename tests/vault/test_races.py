"""Several processes at once: one master key, one key for each user, and nothing lost."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier, Event

import pytest
from support.stage.make import MATE, USER
from support.stage.vaults import CANARY, add_users, load, put, rotate

from backburner.core.errors import VaultLocked
from backburner.core.ids import UserId
from backburner.store.db import Database
from backburner.store.tx import Tx
from backburner.vault.master_keys import MasterKeys
from backburner.vault.vault import SealingVault

MANY = 6


@pytest.fixture(autouse=True)
def _users(database: Database) -> None:
    add_users(database, USER, MATE)


def test_the_first_key_of_a_user_is_made_once(database: Database, tmp_path: Path) -> None:
    together = Barrier(MANY)

    def seal(number: int) -> None:
        # A vault of its own, as each process has.
        vault = SealingVault(MasterKeys(tmp_path / "master_keys"))
        together.wait(20)
        put(database, vault, USER, f"{number}")

    with ThreadPoolExecutor(MANY) as threads:
        list(threads.map(seal, range(MANY)))

    vault = SealingVault(MasterKeys(tmp_path / "master_keys"))
    opened = database.run(
        lambda tx: [vault.load(tx.secrets, USER, f"{number}") for number in range(MANY)]
    )
    assert opened == [CANARY] * MANY
    assert len(database.run(lambda tx: tx.secrets.all_keys())) == 2


@pytest.mark.parametrize("owner", [USER, None], ids=["user", "install"])
def test_of_several_that_add_a_secret_at_once_the_first_wins(
    database: Database, tmp_path: Path, owner: UserId | None
) -> None:
    together = Barrier(MANY)

    def add(number: int) -> tuple[bool, bytes | None]:
        vault = SealingVault(MasterKeys(tmp_path / "master_keys"))
        together.wait(20)

        def work(tx: Tx) -> tuple[bool, bytes | None]:
            added = vault.add(tx.secrets, owner, "key", b"%d" % number)
            return added, vault.load(tx.secrets, owner, "key")

        return database.run(work)

    with ThreadPoolExecutor(MANY) as threads:
        results = list(threads.map(add, range(MANY)))

    assert sorted(added for added, _ in results) == [False] * (MANY - 1) + [True]
    assert len({secret for _, secret in results}) == 1
    assert results[int(results[0][1] or b"")][0]


def test_of_machines_that_use_the_vault_first_at_once_one_makes_the_master_key(
    database: Database, tmp_path: Path
) -> None:
    machines = [tmp_path / f"machine-{number}" for number in range(MANY)]
    together = Barrier(MANY)

    def seal(folder: Path) -> bool:
        folder.mkdir()
        vault = SealingVault(MasterKeys(folder / "master_keys"))
        together.wait(20)
        with suppress(VaultLocked):
            put(database, vault, USER, folder.name)
            return True
        return False

    with ThreadPoolExecutor(MANY) as threads:
        sealed = list(threads.map(seal, machines))

    (winner,) = [folder for folder, did in zip(machines, sealed, strict=True) if did]
    assert [folder for folder in machines if (folder / "master_keys").exists()] == [winner]


def test_a_rotation_finds_the_key_of_a_user_that_is_just_made(
    database: Database, tmp_path: Path
) -> None:
    path = tmp_path / "master_keys"
    first, other = (SealingVault(MasterKeys(path)) for _ in range(2))
    put(database, first, USER)
    sealed, rotating = Event(), Event()

    def seal_slowly(tx: Tx) -> None:
        first.put(tx.secrets, MATE, "a", CANARY)
        sealed.set()
        # The rotation cannot get past this transaction; it is given time to try.
        rotating.wait(20)
        rotating.clear()
        rotating.wait(0.3)

    def rotate_meanwhile() -> Sequence[UserId]:
        sealed.wait(20)
        rotating.set()
        return rotate(database, other)

    with ThreadPoolExecutor(2) as threads:
        sealing, rotation = (
            threads.submit(database.run, seal_slowly),
            threads.submit(rotate_meanwhile),
        )
        sealing.result()
        assert rotation.result() == [MATE, USER]

    fresh = SealingVault(MasterKeys(path))
    for user in (USER, MATE):
        assert load(database, fresh, user) == CANARY
    assert len(MasterKeys(path).all()) == 1


def test_two_rotations_at_once_lose_nothing(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "master_keys"
    vault = SealingVault(MasterKeys(path))
    users = [UserId(f"u_{number}") for number in range(10)]
    add_users(database, *users)
    for user in users:
        put(database, vault, user)
    together = Barrier(3)

    def rotate_together(_number: int) -> None:
        own = SealingVault(MasterKeys(path))
        together.wait(20)
        rotate(database, own)

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(rotate_together, range(3)))

    fresh = SealingVault(MasterKeys(path))
    for user in users:
        assert load(database, fresh, user) == CANARY
        # A process that has run all the while reads the file again.
        assert load(database, vault, user) == CANARY
