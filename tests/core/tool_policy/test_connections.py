"""Tools of connections: which are allowed, and which are free."""

from dataclasses import replace

import pytest
from support.stage import make
from support.stage.make import NOON

from backburner.core import tool_policy
from backburner.core.conversation import Kind
from backburner.core.tool_policy import Allow, Ask, Deny, Tool, ToolCall

SEARCH = Tool(server="mail", name="search", definition="d", free=True)
TASK = make.conversation(kind=Kind.TASK)


def decide(tool: Tool, **more: object) -> object:
    terms = {"allowed": None, "in_doubt": False, "now": NOON, **more}
    return tool_policy.decide(ToolCall(tool, {}), (), **terms)  # type: ignore[arg-type]


def test_a_read_only_tool_that_discloses_asks_in_a_marked_session() -> None:
    web = replace(SEARCH, discloses=True)

    assert decide(web) == Allow()
    assert isinstance(decide(web, outside_read=True), Ask)
    assert decide(SEARCH, outside_read=True) == Allow()


@pytest.mark.parametrize(
    ("tools", "connections", "allowed"),
    [
        (None, ("mail",), None),
        (("read_file",), None, ("read_file",)),
        (("read_file",), ("mail",), ("read_file", "mail/*")),
        (("mail/search",), ("mail", "news"), ("mail/search", "news/*")),
    ],
)
def test_a_connection_that_is_named_brings_its_tools_into_a_list(
    tools: tuple[str, ...] | None,
    connections: tuple[str, ...] | None,
    allowed: tuple[str, ...] | None,
) -> None:
    task = replace(TASK, tools=tools, connections=connections)

    assert tool_policy.allowed_tools(task) == allowed


def test_a_list_of_tools_restricts_those_of_connections() -> None:
    send = replace(SEARCH, name="send")
    assert decide(SEARCH, allowed=("mail/search",)) == Allow()
    assert isinstance(decide(send, allowed=("mail/search",)), Deny)
    assert decide(SEARCH, allowed=("mail/*",)) == Allow()
    assert isinstance(decide(replace(SEARCH, server="mails"), allowed=("mail/*",)), Deny)
    # A server of others cannot take the name of one of our tools.
    find = replace(SEARCH, name=tool_policy.FIND_TOOL)
    assert isinstance(decide(find, allowed=("read_file",)), Deny)
    own = replace(find, server=tool_policy.OWN_SERVER)
    assert decide(own, allowed=("read_file",)) == Allow()
