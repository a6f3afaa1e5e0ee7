"""Tools of connections as the gate knows them, and what agents are told of others."""

from dataclasses import replace

import pytest
from support.stage.make import NOON, USER

from backburner.core.connections.connection import (
    Connection,
    ConnectionState,
    ConnectionTool,
    Ticks,
    ToolDefinition,
    ToolNature,
)
from backburner.core.connections.offer import describe_unusable, make_tool
from backburner.core.ids import ConnectionId

MAIL = Connection(
    id=ConnectionId("x_mail"), user_id=USER, name="mail", title="Mail", created_at=NOON
)
SEARCH = ConnectionTool(definition=ToolDefinition(name="search"), digest="d", accepted="d")


def test_a_tool_is_free_only_by_the_catalogue_or_its_owner() -> None:
    claims = replace(SEARCH, definition=ToolDefinition(name="search", says_read_only=True))
    known = replace(SEARCH, nature=ToolNature(read_only=True, discloses=True))
    ticked = replace(known, ticks=Ticks(read_only=True))

    assert not make_tool(MAIL, claims).free
    tool = make_tool(MAIL, known)
    assert (tool.server, tool.name, tool.definition) == ("mail", "search", "d")
    assert (tool.free, tool.discloses, tool.repeatable) == (True, True, True)
    assert tool.connection == MAIL.id
    assert not make_tool(MAIL, ticked).discloses


@pytest.mark.parametrize(
    ("state", "digests", "told"),
    [
        (ConnectionState.READY, ["d"], ""),
        (ConnectionState.SIGNING_IN, [], "- mail: the user has not signed in yet."),
        (ConnectionState.SIGNED_OUT, [], "- mail: the user has to sign in again."),
        # What needs it asks the user by itself.
        (ConnectionState.SIGNED_OUT, ["d"], ""),
        (
            ConnectionState.READY,
            ["new"],
            "- mail: 1 tool waits for the user to accept a changed definition.",
        ),
        (
            ConnectionState.READY,
            ["new", "other"],
            "- mail: 2 tools wait for the user to accept a changed definition.",
        ),
    ],
)
def test_the_agent_is_told_what_it_cannot_use(
    state: ConnectionState, digests: list[str], told: str
) -> None:
    tools = [replace(SEARCH, digest=digest) for digest in digests]

    assert describe_unusable([(replace(MAIL, state=state), tools)]) == told
