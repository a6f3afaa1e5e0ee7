"""Secrets in a database, each step in a transaction of its own."""

from collections.abc import Sequence
from pathlib import Path

from backburner.core.ids import UserId
from backburner.store.db import Database
from backburner.vault.master_keys import KEY_BYTES, MasterKey, MasterKeys, key_id_of
from backburner.vault.vault import SealingVault
from support.people.users import add_user

ONE, TWO = (MasterKey(name, name.encode().ljust(KEY_BYTES, b".")) for name in ("one", "two"))
CANARY = b"canary-7f3d9a"


def given(*keys: MasterKey) -> SealingVault:
    """Make a vault whose master keys come from a variable."""
    return SealingVault(MasterKeys(Path("/nowhere/master_keys"), given=keys))


def add_users(database: Database, *users: UserId) -> None:
    for user in users:
        _add_user(database, user)


def _add_user(database: Database, user: UserId) -> None:
    database.run(lambda tx: add_user(tx, user))


def put(database: Database, vault: SealingVault, owner: UserId | None, name: str = "a") -> None:
    database.run(lambda tx: vault.put(tx.secrets, owner, name, CANARY))


def load(
    database: Database, vault: SealingVault, owner: UserId | None, name: str = "a"
) -> bytes | None:
    return database.run(lambda tx: vault.load(tx.secrets, owner, name))


def wrapped_by(database: Database) -> set[str]:
    """List the ids of the master keys that wrap anything."""
    return {key_id_of(one) for _, one in database.run(lambda tx: tx.secrets.all_keys())}


def rotate(database: Database, vault: SealingVault) -> Sequence[UserId]:
    start = database.run(lambda tx: vault.begin_rotation(tx.secrets))
    for user in start.owners:
        _rewrap(database, vault, user)
    database.run(lambda tx: vault.end_rotation(tx.secrets))
    return start.owners


def _rewrap(database: Database, vault: SealingVault, user: UserId) -> None:
    database.run(lambda tx: vault.rewrap(tx.secrets, user))
