"""The record of calls on connections, for their owner; old ones are deleted."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from backburner.actions.browse import Page, make_page
from backburner.actions.deps import Deps
from backburner.core.connections.call import (
    CallsOfDay,
    ConnectionCall,
    fill_day,
    start_of_day,
)
from backburner.core.ids import ConnectionId, UserId
from backburner.ports import PageKey, Tx

KEEP_CALLS = timedelta(days=365)
_PRUNE_BATCH = 500


async def list_calls(
    deps: Deps,
    user: UserId,
    connection_id: ConnectionId | None,
    after: PageKey | None,
    *,
    limit: int,
) -> Page[ConnectionCall]:
    """List the calls that agents of a user made, newest first: on one connection, or on all."""
    (last_id,) = after or ("",)
    rows = await deps.store.read(
        lambda tx: tx.connection_calls.page(user, connection_id, before=last_id, limit=limit + 1)
    )
    return make_page(rows, limit, lambda last: (last.id,))


async def count_day(deps: Deps, user: UserId, connection_id: ConnectionId) -> CallsOfDay:
    """Count the calls of a connection in the last day."""

    def work(tx: Tx) -> CallsOfDay:
        tx.connections.load(user, connection_id)
        return count_all(tx, user, [connection_id])[connection_id]

    return await deps.store.read(work)


def count_all(
    tx: Tx, user: UserId, connection_ids: Sequence[ConnectionId]
) -> Mapping[ConnectionId, CallsOfDay]:
    since = start_of_day(tx.now)
    found = tx.connection_calls.count(user, connection_ids, since=since)
    return {one: fill_day(found.get(one, ()), since) for one in connection_ids}


async def prune(deps: Deps) -> bool:
    """Delete old records; return whether there may be more."""
    count = await deps.store.transact(
        lambda tx: tx.connection_calls.prune(before=tx.now - KEEP_CALLS, limit=_PRUNE_BATCH)
    )
    return count == _PRUNE_BATCH
