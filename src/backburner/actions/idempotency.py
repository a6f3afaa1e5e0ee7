"""Idempotency keys: a repeated request gets the stored response and is not executed again.

The key is reserved before the request runs and its response stored after, in separate transactions.
If the process dies in between, the outcome is unknown: the key stays reserved, and a retry is asked
to check the state first. So a request with a key runs at most once.
"""

from datetime import timedelta

from backburner.actions.deps import Deps
from backburner.core.ids import UserId
from backburner.ports import StoredResponse, Tx

RESPONSE_LIFETIME = timedelta(hours=24)
#: A request without a response after this time was lost.
MAX_REQUEST_DURATION = timedelta(minutes=2)
_PRUNE_BATCH = 200


async def reserve(
    deps: Deps, user: UserId, key: str, request: str
) -> tuple[StoredResponse | None, bool]:
    """Reserve a key; if it was reserved before, return the earlier request and if it was lost."""

    def work(tx: Tx) -> tuple[StoredResponse | None, bool]:
        earlier = tx.stored_responses.reserve(user, key, request, now=tx.now)
        is_lost = (
            earlier is not None
            and earlier.status is None
            and tx.now - earlier.started_at > MAX_REQUEST_DURATION
        )
        return earlier, is_lost

    return await deps.store.transact(work)


async def store_response(deps: Deps, user: UserId, key: str, status: int, body: str) -> None:
    await deps.store.transact(lambda tx: tx.stored_responses.complete(user, key, status, body))


async def release(deps: Deps, user: UserId, key: str) -> None:
    """Free the key of a request that was refused and changed nothing."""
    await deps.store.transact(lambda tx: tx.stored_responses.release(user, key))


async def prune(deps: Deps) -> bool:
    """Delete a batch of old responses; True: there may be more."""
    deleted = await deps.store.transact(
        lambda tx: tx.stored_responses.prune(before=tx.now - RESPONSE_LIFETIME, limit=_PRUNE_BATCH)
    )
    return deleted == _PRUNE_BATCH
