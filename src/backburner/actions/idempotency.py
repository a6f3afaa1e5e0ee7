"""Requests that come twice: what was answered to one is answered again, and nothing done again.

A key is taken before anything is done and its answer kept after, in transactions of their own. If
the process goes away in between, nobody knows whether it was done: the key stays taken, and whoever
comes again is told to look. So a request with a key is done once at most.
"""

from datetime import timedelta

from backburner.actions.deps import Deps
from backburner.core.ids import UserId
from backburner.ports import StoredResponse, Tx

#: How long an answer is kept.
RESPONSE_LIFETIME = timedelta(hours=24)
#: Whoever has not been answered after this time will not be any more.
MAX_REQUEST_DURATION = timedelta(minutes=2)
_PRUNE_BATCH = 200


async def begin(
    deps: Deps, user: UserId, key: str, request: str
) -> tuple[StoredResponse | None, bool]:
    """Take a key. If it was taken before: what is known, and whether it was given up."""

    def work(tx: Tx) -> tuple[StoredResponse | None, bool]:
        known = tx.stored_responses.begin(user, key, request, now=tx.now)
        is_lost = (
            known is not None
            and known.status is None
            and tx.now - known.started_at > MAX_REQUEST_DURATION
        )
        return known, is_lost

    return await deps.store.transact(work)


async def keep(deps: Deps, user: UserId, key: str, status: int, body: str) -> None:
    await deps.store.transact(lambda tx: tx.stored_responses.keep(user, key, status, body))


async def release(deps: Deps, user: UserId, key: str) -> None:
    """Let a key be used again: the request was refused, and nothing was changed."""
    await deps.store.transact(lambda tx: tx.stored_responses.release(user, key))


async def prune(deps: Deps) -> bool:
    """Forget old answers; tell whether there may be more of them."""
    deleted = await deps.store.transact(
        lambda tx: tx.stored_responses.prune(before=tx.now - RESPONSE_LIFETIME, limit=_PRUNE_BATCH)
    )
    return deleted == _PRUNE_BATCH
