"""Grants: revoke a consent, or widen a lasting one."""

from backburner.actions.deps import Deps
from backburner.core import tool_policy
from backburner.core.ids import GrantId, UserId
from backburner.ports import GrantRow, Tx


async def revoke(deps: Deps, user: UserId, grant_id: GrantId) -> None:
    """Take back a yes; what is under way with it is not undone."""
    await deps.store.transact(lambda tx: tx.grants.revoke(user, grant_id))


async def widen(deps: Deps, user: UserId, grant_id: GrantId, words: tuple[str, ...]) -> GrantRow:
    """Let a lasting grant for a command cover all that begins with fewer of its words."""

    def work(tx: Tx) -> GrantRow:
        given = tx.browse.grant(user, grant_id)
        # An earlier try may have gone through, and only its answer been lost.
        if given.grant.words != words:
            tx.grants.narrow(user, tool_policy.widen_grant(given.grant, words))
        return tx.browse.grant(user, grant_id)

    return await deps.store.transact(work)
