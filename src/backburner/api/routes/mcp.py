"""`/mcp`: authentication for MCP clients. The protocol itself is handled elsewhere.

A call may take long, so it ends when the client disconnects or its token ends.
"""

import asyncio
from collections.abc import Awaitable, Callable

from fastapi import Request
from starlette.types import Message, Receive, Scope, Send

from backburner.api.http import problems
from backburner.api.http.auth import identify_token
from backburner.api.http.caller_limits import HeldRequest, get_limits
from backburner.api.http.dependencies import get_feed
from backburner.api.http.origins import check_origin
from backburner.api.http.problems import Problem
from backburner.api.http.sse import wait_for_disconnect
from backburner.core import accounts
from backburner.core.accounts import Caller

PATH = "/mcp"
#: Calls shorter than this are not watched for the end of their token.
UNWATCHED_SECONDS = 0.5

ServeTools = Callable[[Caller, Scope, Receive, Send], Awaitable[None]]


class McpEndpoint:
    """An ASGI application that lets callers with a token use the tools."""

    def __init__(self, serve: ServeTools) -> None:
        self._serve = serve

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        check_origin(request)
        caller = await identify_token(request)
        if not (caller.may(accounts.Scope.READ) or caller.may(accounts.Scope.WRITE)):
            raise Problem(403, "This token lacks a scope.", "The request needs read or write.")
        if request.method != "POST":
            # The server never sends unrequested messages, so there is nothing to GET.
            refusal = problems.respond(405, "Only POST is supported here.")
            refusal.headers["allow"] = "POST"
            await refusal(scope, receive, send)
            return
        body = await request.body()
        with get_limits(request).hold(caller.user, HeldRequest.CALL):
            await _McpCall(request, caller, body, send).run(self._serve)


class _McpCall:
    """One request, which ends early if the client disconnects or its token ends."""

    def __init__(self, request: Request, caller: Caller, body: bytes, send: Send) -> None:
        self._request = request
        self._caller = caller
        self._body: bytes | None = body
        self._send = send
        self._responded = False
        self._disconnect = asyncio.create_task(wait_for_disconnect(request.receive))

    async def run(self, serve: ServeTools) -> None:
        serving = asyncio.ensure_future(
            serve(self._caller, self._request.scope, self._receive, self._respond)
        )
        revocation = asyncio.create_task(self._wait_for_revocation())
        tasks = {serving, self._disconnect, revocation}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            is_done, is_revoked = serving.done(), revocation.done()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        if is_done:
            serving.result()
        elif is_revoked and not self._responded:
            revocation.result()
            await identify_token(self._request)
            raise Problem(
                503, "The call was interrupted.", "Check whether it took effect, then try again."
            )

    async def _receive(self) -> Message:
        body, self._body = self._body, None
        if body is not None:
            return {"type": "http.request", "body": body, "more_body": False}
        await asyncio.wait({self._disconnect})
        return {"type": "http.disconnect"}

    async def _respond(self, message: Message) -> None:
        self._responded = True
        await self._send(message)

    async def _wait_for_revocation(self) -> None:
        """Wait until the token ends, or the server stops."""
        await asyncio.sleep(UNWATCHED_SECONDS)
        caller, feed = self._caller, get_feed(self._request)
        async with feed.follow(caller.user, caller.credential, after=None) as subscriber:
            while not subscriber.ended:
                await subscriber.wait(60)
                subscriber.take()
