"""Tools of connections are used as their owner accepted them."""

from dataclasses import replace

from backburner.core.connections.connection import ConnectionTool, ToolDefinition
from backburner.core.ids import new_connection_id


def test_a_tool_that_has_changed_is_not_accepted() -> None:
    tool = ConnectionTool(definition=ToolDefinition(name="send"), digest="one", accepted="one")

    assert tool.is_accepted
    assert not replace(tool, digest="two").is_accepted


def test_ids_of_connections_differ() -> None:
    assert new_connection_id() != new_connection_id()
