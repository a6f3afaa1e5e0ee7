"""Connections as a page shows them: with their tools, their calls of a day, and what waits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from backburner.actions.connections.calls import count_all
from backburner.actions.deps import Deps
from backburner.core.connections.call import CallsOfDay
from backburner.core.connections.connection import Connection, ConnectionTool
from backburner.core.ids import ConnectionId, ConversationId, UserId
from backburner.ports import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionOverview:
    connection: Connection
    #: In a list without their definitions.
    tools: Sequence[ConnectionTool]
    day: CallsOfDay
    #: The conversations whose runs wait for a sign-in to it.
    waiting: Sequence[ConversationId]


@dataclass(frozen=True, slots=True)
class AllConnections:
    now: datetime
    zone: str
    connections: Sequence[ConnectionOverview]


async def load_all(deps: Deps, user: UserId) -> AllConnections:
    def work(tx: Tx) -> AllConnections:
        known, tools = tx.connections.list(user), tx.connections.tools_of_all(user)
        days, waiting = count_all(tx, user, [one.id for one in known]), _find_waiting(tx, user)
        return AllConnections(
            tx.now,
            tx.users.load(user).zone,
            [
                ConnectionOverview(
                    connection=one,
                    tools=tools.get(one.id, ()),
                    day=days[one.id],
                    waiting=waiting.get(one.id, ()),
                )
                for one in known
            ],
        )

    return await deps.store.read(work)


async def load_one(deps: Deps, user: UserId, connection_id: ConnectionId) -> ConnectionOverview:
    def work(tx: Tx) -> ConnectionOverview:
        return ConnectionOverview(
            connection=tx.connections.load(user, connection_id),
            tools=tx.connections.tools(user, connection_id),
            day=count_all(tx, user, [connection_id])[connection_id],
            waiting=_find_waiting(tx, user).get(connection_id, ()),
        )

    return await deps.store.read(work)


def _find_waiting(tx: Tx, user: UserId) -> Mapping[ConnectionId, Sequence[ConversationId]]:
    found = dict[ConnectionId, dict[ConversationId, None]]()
    for connection_id, run in tx.runs.waiting_for_sign_in(user):
        found.setdefault(connection_id, {})[run.conversation_id] = None
    return {which: tuple(conversations) for which, conversations in found.items()}
