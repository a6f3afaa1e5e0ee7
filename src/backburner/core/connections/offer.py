"""Tools of connections as the gate knows them, and the note to agents about withheld ones."""

from collections.abc import Iterable, Sequence

from backburner.core.connections.connection import Connection, ConnectionState, ConnectionTool
from backburner.core.tool_policy import Tool


def make_tool(connection: Connection, tool: ConnectionTool) -> Tool:
    """Describe an accepted tool to the gate.

    It is free only if our catalogue or its owner says that it changes nothing.
    """
    return Tool(
        server=connection.name,
        name=tool.name,
        definition=tool.accepted,
        free=tool.read_only,
        discloses=tool.discloses,
        repeatable=tool.repeatable,
        connection=connection.id,
    )


def describe_unusable(
    connections: Iterable[tuple[Connection, Sequence[ConnectionTool]]],
) -> str:
    """Say which connections cannot be used now; of one whose tools are all there, nothing."""
    return "\n".join(
        line for connection, tools in connections if (line := _describe(connection, tools))
    )


def _describe(connection: Connection, tools: Sequence[ConnectionTool]) -> str:
    match connection.state:
        case ConnectionState.SIGNING_IN:
            return f"- {connection.name}: the user has not signed in yet."
        case ConnectionState.SIGNED_OUT if not any(tool.is_offered for tool in tools):
            return f"- {connection.name}: the user has to sign in again."
        case _:
            withheld = sum(1 for tool in tools if tool.is_withheld)
            if not withheld:
                return ""
            count = "1 tool waits" if withheld == 1 else f"{withheld} tools wait"
            return f"- {connection.name}: {count} for the user to accept a changed definition."
