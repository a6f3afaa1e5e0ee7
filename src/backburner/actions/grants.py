"""Grants: revoke."""

from backburner.actions.deps import Deps
from backburner.core.ids import GrantId, UserId
from backburner.ports import EventKind, Tx


async def revoke(deps: Deps, user: UserId, grant_id: GrantId) -> None:
    """Revoke a grant; calls already made with it are not undone."""

    def work(tx: Tx) -> None:
        tx.grants.revoke(user, grant_id)
        tx.changed(user, None, EventKind.USER)

    await deps.store.transact(work)
