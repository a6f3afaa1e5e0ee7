"""The sessions with MCP servers that the program makes from its settings."""

from pathlib import Path

import pytest
from support.mcp_peers.others import time_server
from support.mcp_peers.scripted import scripted
from support.mcp_peers.sessions import NoSignIn

from backburner.actions.deps import NO_TOOL_SERVERS
from backburner.app.machines import build_machines
from backburner.core.errors import Conflict, ConnectionFailed
from backburner.ports import ToolResult, ToolServer, ToolServers
from backburner.settings import load


def tool_servers(folder: Path, **settings: object) -> ToolServers:
    return build_machines(load(data=str(folder / "data"), **settings), "backburner").tool_servers


async def test_users_connect_to_the_private_networks_of_the_settings_only(tmp_path: Path) -> None:
    async with scripted("modern") as peer:
        server = ToolServer(title="Peer", url=peer.url)
        refused = tool_servers(tmp_path).open(server, NoSignIn())
        with pytest.raises(ConnectionFailed, match="networks that the operator allows"):
            await refused.call("send", {})
        await refused.close()
        assert peer.connections == 0

        allowed = tool_servers(tmp_path, private_networks=["127.0.0.1/32"])
        session = allowed.open(server, NoSignIn())
        assert not session.tools_changed
        assert [tool.name for tool in (await session.list_tools()).tools] == ["send"]
        assert await session.call("send", {}) == ToolResult("sent")
        assert not session.tools_changed
        await session.close()


async def test_programs_of_the_settings_are_run(tmp_path: Path) -> None:
    session = tool_servers(tmp_path).open(
        ToolServer(title="Time", program=time_server()), NoSignIn()
    )
    assert len((await session.list_tools()).tools) == 2
    await session.close()


async def test_a_session_that_was_closed_before_its_first_use_opens_nothing(tmp_path: Path) -> None:
    session = tool_servers(tmp_path).open(ToolServer(title="Peer", url="https://a.b"), NoSignIn())
    await session.close()

    with pytest.raises(ConnectionFailed, match="The session with Peer is closed"):
        await session.list_tools()


async def test_a_process_that_opens_no_connections_says_so() -> None:
    with pytest.raises(Conflict, match="This process does not connect to Peer"):
        NO_TOOL_SERVERS.open(ToolServer(title="Peer"), NoSignIn())
