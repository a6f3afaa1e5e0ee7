"""A call of a tool that its run has called before: recorded in one statement, if no row has changed
from which it was decided that the tool may be called.

PostgreSQL only. It waits for nobody: while somebody else has locked the conversation, nothing is
recorded. Calls of one run that begin at the same time do not hold up each other.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from sqlalchemy import Insert, and_, bindparam, cast, func, insert, select

from backburner.ports import ReadVersions
from backburner.store.context import Context
from backburner.store.dialect import version_of
from backburner.store.tables import (
    connection_tools,
    connections,
    conversations,
    runs,
    tool_calls,
)

_may_continue = (
    select(conversations.c.id)
    .join(
        runs, and_(runs.c.user_id == conversations.c.user_id, runs.c.id == conversations.c.turn_run)
    )
    .where(
        conversations.c.user_id == bindparam("user_id"),
        conversations.c.id == bindparam("conversation_id"),
        conversations.c.turn_run == bindparam("run_id"),
        conversations.c.epoch == bindparam("epoch"),
        version_of(conversations) == bindparam("read_conversation"),
        runs.c.cancel_requested_at.is_(None),
    )
    .with_for_update(read=True, skip_locked=True)
)
_is_offered = (
    select(connection_tools.c.name)
    .join(
        connections,
        and_(
            connections.c.user_id == connection_tools.c.user_id,
            connections.c.id == connection_tools.c.connection_id,
        ),
    )
    .where(
        connection_tools.c.user_id == bindparam("user_id"),
        connection_tools.c.connection_id == bindparam("connection_id"),
        connection_tools.c.name == bindparam("tool"),
        version_of(connections, connection_tools) == bindparam("read_offered"),
    )
)


def write(tx: Context, row: Mapping[str, Any], read: ReadVersions) -> bool:
    """Store a call that begins; False: it has to be decided anew."""
    values = {**row, "read_conversation": read.conversation}
    if read.offered:
        values["read_offered"] = read.offered
    statement = _build(tuple(row), on_connection=bool(read.offered))
    return tx.connection.execute(statement, values).first() is not None


@cache
def _build(names: tuple[str, ...], *, on_connection: bool) -> Any:
    held = _may_continue.cte("held")
    columns = tool_calls.c
    row = select(
        *(cast(bindparam(name, type_=columns[name].type), columns[name].type) for name in names),
        func.clock_timestamp(),
    ).select_from(held)
    if on_connection:
        row = row.where(_is_offered.exists())
    statement: Insert = insert(tool_calls).from_select([*names, "started_at"], row)
    return statement.returning(columns.id)
