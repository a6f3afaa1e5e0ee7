"""Rotation: all keys are wrapped anew, and nothing is lost wherever it stops."""

import os
import signal
import sys
from contextlib import closing
from itertools import count
from pathlib import Path
from types import FrameType

import pytest
from support.doubles.clock import SetClock
from support.stage.vaults import CANARY, ONE, TWO, add_users, given, load, put, rotate, wrapped_by

from backburner.core.errors import Conflict, VaultLocked
from backburner.core.ids import UserId
from backburner.store.db import Database
from backburner.store.dialect import make_engine
from backburner.vault import envelope
from backburner.vault.master_keys import MasterKeys
from backburner.vault.vault import SealingVault

USERS = [UserId(f"u_{number}") for number in range(4)]
#: What takes part in a rotation, and how many of its calls and returns lie between two deaths.
OURS = ("vault/vault.py", "vault/master_keys.py", "private_file.py", "records/secrets.py")
EVERY = 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "master_keys"


@pytest.fixture
def vault(database: Database, path: Path) -> SealingVault:
    add_users(database, *USERS)
    return SealingVault(MasterKeys(path))


def seal(database: Database, vault: SealingVault) -> None:
    for owner in (None, *USERS):
        put(database, vault, owner)


def assert_opens(database: Database, vault: SealingVault) -> None:
    for owner in (None, *USERS):
        assert load(database, vault, owner) == CANARY


def test_a_rotation_wraps_every_key_by_a_new_one_and_then_deletes_the_former(
    database: Database, vault: SealingVault, path: Path
) -> None:
    seal(database, vault)
    (before,) = MasterKeys(path).all()

    rotate(database, vault)

    (after,) = MasterKeys(path).all()
    assert after != before
    assert wrapped_by(database) == {after.id}
    assert_opens(database, vault)
    assert_opens(database, SealingVault(MasterKeys(path)))
    former = given(before)
    with pytest.raises(VaultLocked, match=after.id):
        assert_opens(database, former)


def test_there_is_nothing_to_rotate_before_the_vault_is_used(
    database: Database, vault: SealingVault, path: Path
) -> None:
    with pytest.raises(Conflict, match="Nothing is sealed yet"):
        rotate(database, vault)

    assert not path.exists()


def test_without_its_master_key_nothing_is_rotated_and_none_is_made(
    database: Database, vault: SealingVault, path: Path
) -> None:
    seal(database, given(ONE))

    with pytest.raises(VaultLocked, match="master key one"):
        rotate(database, vault)

    assert not path.exists()


@pytest.mark.usefixtures("vault")
def test_keys_from_a_variable_are_rotated_to_the_first_one(database: Database) -> None:
    seal(database, given(ONE))
    both = given(TWO, ONE)
    with pytest.raises(Conflict, match="BACKBURNER_MASTER_KEYS has no new master key"):
        rotate(database, given(ONE, TWO))
    assert wrapped_by(database) == {"one"}

    rotate(database, both)

    assert wrapped_by(database) == {"two"}
    assert_opens(database, given(TWO))
    with pytest.raises(Conflict, match="no new master key"):
        rotate(database, both)


def test_a_shared_database_waits_until_the_other_machines_have_the_new_key(
    database: Database, vault: SealingVault, path: Path
) -> None:
    seal(database, vault)
    (before,) = MasterKeys(path).all()
    shared = SealingVault(MasterKeys(path), is_shared=True)

    start = database.run(lambda tx: shared.begin_rotation(tx.secrets))

    assert (start.waits_for_hosts, start.owners) == (True, ())
    assert wrapped_by(database) == {before.id}
    assert [key.id for key in MasterKeys(path).all()] == [start.new, before.id]
    # A machine without the new key still makes keys that all can open.
    other = given(before)
    put(database, other, USERS[0], "b")

    rotate(database, shared)

    assert wrapped_by(database) == {start.new}
    assert_opens(database, vault)


def test_a_key_that_cannot_be_opened_keeps_nothing_from_being_rotated(
    database: Database, vault: SealingVault, path: Path
) -> None:
    seal(database, vault)
    foreign = envelope.wrap(ONE, USERS[0], envelope.make_data_key())
    database.run(lambda tx: tx.secrets.put_key(USERS[0], foreign))

    rotate(database, vault)
    rotate(database, vault)

    (key,) = MasterKeys(path).all()
    assert wrapped_by(database) == {key.id, "one"}
    for user in USERS[1:]:
        assert load(database, vault, user) == CANARY


def test_a_master_key_that_wraps_anything_is_kept(
    database: Database, vault: SealingVault, path: Path
) -> None:
    seal(database, vault)
    (before,) = MasterKeys(path).all()
    start = database.run(lambda tx: vault.begin_rotation(tx.secrets))
    database.run(lambda tx: vault.rewrap(tx.secrets, USERS[0]))

    assert database.run(lambda tx: vault.end_rotation(tx.secrets)) == ()

    assert [key.id for key in MasterKeys(path).all()] == [start.new, before.id]
    assert_opens(database, SealingVault(MasterKeys(path)))
    # The next one continues with the same key.
    assert len(rotate(database, SealingVault(MasterKeys(path)))) == len(USERS) - 1
    assert [key.id for key in MasterKeys(path).all()] == [start.new]


@pytest.fixture
def file(migrated_sqlite_url: str, path: Path) -> str:
    with closing(Database(make_engine(migrated_sqlite_url), SetClock())) as database:
        add_users(database, *USERS)
        seal(database, SealingVault(MasterKeys(path)))
    return migrated_sqlite_url


def test_a_rotation_that_is_killed_at_any_step_loses_nothing_and_can_be_repeated(
    file: str, path: Path
) -> None:
    deaths = 0
    for number in count(0, EVERY):
        was_killed = rotate_and_die(file, path, at=number)
        with closing(Database(make_engine(file), SetClock())) as database:
            assert wrapped_by(database) <= {key.id for key in MasterKeys(path).all()}
            assert_opens(database, SealingVault(MasterKeys(path)))
            if not was_killed:
                break
            deaths += 1
            rotate(database, SealingVault(MasterKeys(path)))
            assert_opens(database, SealingVault(MasterKeys(path)))
            (key,) = MasterKeys(path).all()
            assert wrapped_by(database) == {key.id}
    assert deaths > 20


def rotate_and_die(file: str, path: Path, *, at: int) -> bool:
    """Rotate in a process that is killed at the given call or return of ours; False: it was not."""
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    numbers = count()

    def die_in_time(frame: FrameType, _event: str, _argument: object) -> None:
        if frame.f_code.co_filename.endswith(OURS) and next(numbers) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    database = Database(make_engine(file), SetClock())
    sys.setprofile(die_in_time)
    rotate(database, SealingVault(MasterKeys(path)))
    os._exit(0)
