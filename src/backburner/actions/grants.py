"""Grants: revoke or widen."""

from backburner.actions.deps import Deps
from backburner.core import tool_policy
from backburner.core.ids import GrantId, UserId
from backburner.ports import GrantRow, Tx


async def revoke(deps: Deps, user: UserId, grant_id: GrantId) -> None:
    """Revoke a grant; calls already made with it are not undone."""
    await deps.store.transact(lambda tx: tx.grants.revoke(user, grant_id))


async def widen(deps: Deps, user: UserId, grant_id: GrantId, words: tuple[str, ...]) -> GrantRow:
    """Shorten the command prefix of a lasting grant to these words."""

    def work(tx: Tx) -> GrantRow:
        row = tx.browse.grant(user, grant_id)
        # An earlier attempt may have been committed although its result was lost.
        if row.grant.words != words:
            tx.grants.narrow(user, tool_policy.widen_grant(row.grant, words))
        return tx.browse.grant(user, grant_id)

    return await deps.store.transact(work)
