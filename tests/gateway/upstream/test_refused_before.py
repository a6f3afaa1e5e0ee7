"""A server that deals with a call before it is made: its agent is told, and nothing is in doubt."""

from typing import cast

from backburner.gateway.upstream.faults import Effect, Fault, FaultError
from backburner.gateway.upstream.live_client import LiveClient
from backburner.gateway.upstream.session import UpstreamSession
from backburner.ports import ToolResult


class Refusing:
    """Answers before there is a session."""

    is_open = False

    async def start(self, _timeout: object) -> None:
        raise FaultError(Fault(effect=Effect.ANSWERED, why="refused the request (403 Forbidden)."))

    def abandon(self) -> None:
        pass

    async def close(self) -> None:
        pass


async def test_a_call_that_a_server_refuses_to_begin_is_a_failed_result() -> None:
    session = UpstreamSession("Mail", lambda: cast("LiveClient", Refusing()))

    result = await session.call("send", {})

    assert isinstance(result, ToolResult)
    assert (result.failed, result.text) == (True, "Mail refused the request (403 Forbidden).")
