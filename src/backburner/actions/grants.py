"""Grants: revoke."""

from backburner.actions.deps import Deps
from backburner.core.ids import GrantId, UserId


async def revoke(deps: Deps, user: UserId, grant_id: GrantId) -> None:
    """Revoke a grant; calls already made with it are not undone."""
    await deps.store.transact(lambda tx: tx.grants.revoke(user, grant_id))
