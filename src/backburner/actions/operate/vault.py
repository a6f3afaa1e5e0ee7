"""The vault, for operators: its state, and the rotation of the master key.

Each step of a rotation is a transaction or replaces the key file as a whole. Whatever is stopped in
between stays usable, and the next rotation continues with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from backburner.actions.deps import Deps
from backburner.core.accounts import Act
from backburner.core.errors import VaultLocked
from backburner.core.ids import UserId
from backburner.ports import RotationStart, Tx, VaultKeys, VaultStatus

#: Keys that are wrapped in one transaction.
BATCH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    #: The id of the new master key.
    new: str
    #: It is only in the file of this machine yet: the other machines need it first.
    waits_for_hosts: bool
    #: Ids of the master keys that were deleted from the file.
    removed: Sequence[str]
    status: VaultStatus


async def read_status(deps: Deps) -> VaultStatus:
    keys = _keys(deps)
    return await deps.store.read(lambda tx: keys.status(tx.secrets))


async def rotate(deps: Deps, actor: UserId, *, keep_old: bool = False) -> Rotation:
    """Wrap all keys by a new master key; `keep_old` leaves the former ones in the file."""
    keys = _keys(deps)

    def begin(tx: Tx) -> RotationStart:
        start = keys.begin_rotation(tx.secrets)
        tx.audit.record(Act.MASTER_KEY_ROTATED, actor=actor, detail=start.new)
        return start

    start = await deps.store.transact(begin)
    for first in range(0, len(start.owners), BATCH):
        await deps.store.transact(partial(_rewrap, keys, start.owners[first : first + BATCH]))
    removed: Sequence[str] = ()
    if not start.waits_for_hosts and not keep_old:
        removed = await deps.store.read(lambda tx: keys.end_rotation(tx.secrets))
    return Rotation(
        new=start.new,
        waits_for_hosts=start.waits_for_hosts,
        removed=removed,
        status=await read_status(deps),
    )


async def forget_locked(deps: Deps, actor: UserId) -> int:
    """Delete the secrets whose master key is lost, so that users can enter them again."""
    keys = _keys(deps)

    def work(tx: Tx) -> int:
        count = keys.forget_locked(tx.secrets)
        if count:
            tx.audit.record(Act.SECRETS_FORGOTTEN, actor=actor, detail=f"keys: {count}")
        return count

    return await deps.store.transact(work)


def _keys(deps: Deps) -> VaultKeys:
    if deps.vault_keys is None:
        raise VaultLocked("This process has no vault.", permanent=True)
    return deps.vault_keys


def _rewrap(keys: VaultKeys, users: Sequence[UserId], tx: Tx) -> None:
    for user in users:
        keys.rewrap(tx.secrets, user)
