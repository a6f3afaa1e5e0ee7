"""Servers that ask their user something, over the real protocol in its two eras."""

from collections.abc import Callable

import pytest
from support.doubles.engine import Call, End
from support.doubles.tool_servers import FakeServers
from support.mcp_peers.scripted import Era
from support.mcp_peers.sdk import serving
from support.mcp_peers.sessions import LOOPBACK, NoSignIn
from support.requirements import requirement
from support.stage.stage import Stage

from backburner.core.connections.connection import (
    Connection,
    ConnectionTool,
    Ticks,
    definition_digest,
)
from backburner.core.conversation import Conversation
from backburner.core.question import Purpose
from backburner.core.run import RunStatus
from backburner.gateway.upstream.servers import UpstreamServers
from backburner.ports import ToolServer, ToolSession
from backburner.tools.toolbox import Toolbox

DONE = End({"complete": True})


def open_session(connection: Connection) -> ToolSession:
    server = ToolServer(title=connection.title, url=connection.url)
    return UpstreamServers(allow=LOOPBACK).open(server, NoSignIn())


@pytest.fixture
def real(set_up: Callable[..., Stage]) -> Stage:
    return set_up(toolbox=lambda deps: Toolbox(deps, open_session=open_session))


async def connect(stage: Stage, url: str) -> None:
    """Add a connection whose owner lets agents call all its tools."""
    servers = FakeServers()
    connection = servers.add(stage, "peer", tools=(), url=url)
    session = open_session(connection)
    try:
        listed = (await session.list_tools()).tools
    finally:
        await session.close()
    accepted = [
        ConnectionTool(
            definition=one,
            digest=definition_digest(one),
            accepted=definition_digest(one),
            accepted_definition=one,
            ticks=Ticks(read_only=True),
        )
        for one in listed
    ]
    user = connection.user_id
    stage.database.run(lambda tx: tx.connections.put_tools(user, connection.id, accepted))


async def call(stage: Stage, era: Era, tool: str, answer: str | None = None) -> Conversation:
    """Let a task call a tool; answer what its server asks."""
    async with serving(era) as url:
        await connect(stage, url)
        stage.engine.then(Call(tool), DONE)
        task = await stage.task(connections=("peer",))
        await stage.work()
        if answer is not None:
            assert stage.question(task).purpose is Purpose.INPUT
            stage.engine.then(Call(tool), DONE)
            await stage.answer(task, answer)
            await stage.work()
    return task


@requirement("Z-elicit")
async def test_a_call_goes_on_with_the_answer_where_the_protocol_allows_it(real: Stage) -> None:
    task = await call(real, "modern", "ask", "color: red\ncount: 3")

    assert real.load(task).questions == ()
    assert real.history(task)[0].status is RunStatus.SUCCESS
    given = real.engine.results[-1].text
    assert "accept" in given
    assert "'color': 'red'" in given
    assert "'count': 3" in given


@requirement("Z-elicit")
async def test_where_the_protocol_cannot_wait_the_agent_is_told(real: Stage) -> None:
    task = await call(real, "legacy", "ask")

    assert real.load(task).questions == ()
    assert "cancel" in real.engine.results[-1].text


@requirement("Z-elicit")
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_request_for_a_password_reaches_nobody(real: Stage, era: Era) -> None:
    task = await call(real, era, "ask_password")

    assert real.load(task).questions == ()
    assert "password" in real.engine.results[-1].text.lower()
    assert real.history(task)[0].status is RunStatus.SUCCESS
