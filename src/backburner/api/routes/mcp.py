"""`/mcp`: who calls our tools from outside. What they say there is not read here.

A call may take long, so it ends when the client leaves and when its token does.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from backburner.api.http import problems
from backburner.api.http.auth import identify_token
from backburner.api.http.origins import check_origin
from backburner.api.http.problems import Problem
from backburner.core.accounts import Caller
from backburner.core.accounts import Scope as Good
from backburner.live.feed import Feed

PATH = "/mcp"
#: What takes no longer than this, in seconds, is not watched.
GRACE = 0.5

Serve = Callable[[Caller, Scope, Receive, Send], Awaitable[None]]


def add_route(api: FastAPI, serve: Serve) -> None:
    api.router.routes.append(Route(PATH, _Door(serve), include_in_schema=False))


class _Door:
    def __init__(self, serve: Serve) -> None:
        self._serve = serve

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        check_origin(request)
        caller = await identify_token(request)
        if not (caller.may(Good.READ) or caller.may(Good.WRITE)):
            raise Problem(403, "This token is not good for that.", "It needs read or write.")
        if request.method != "POST":
            # There is nothing that we would say unasked.
            refusal = problems.answer(405, "Only POST is answered here.")
            refusal.headers["allow"] = "POST"
            await refusal(scope, receive, send)
            return
        body = await request.body()
        await _Call(request, caller, body, send).serve(self._serve)


class _Call:
    """One request, for as long as somebody waits for it who may."""

    def __init__(self, request: Request, caller: Caller, body: bytes, send: Send) -> None:
        self._request = request
        self._caller = caller
        self._body: bytes | None = body
        self._send = send
        self._answered = False
        self._leaving = asyncio.create_task(_wait_until_left(request.receive))

    async def serve(self, serve: Serve) -> None:
        serving = asyncio.ensure_future(
            serve(self._caller, self._request.scope, self._receive, self._answer)
        )
        losing = asyncio.create_task(self._wait_until_lost())
        tasks = {serving, self._leaving, losing}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            done, lost = serving.done(), losing.done()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        if done:
            serving.result()
        elif lost and not self._answered:
            losing.result()
            await identify_token(self._request)
            raise Problem(503, "The call was cut off.", "Look what became of it, and try again.")

    async def _receive(self) -> Message:
        body, self._body = self._body, None
        if body is not None:
            return {"type": "http.request", "body": body, "more_body": False}
        await asyncio.wait({self._leaving})
        return {"type": "http.disconnect"}

    async def _answer(self, message: Message) -> None:
        self._answered = True
        await self._send(message)

    async def _wait_until_lost(self) -> None:
        """Wait until the token ends, or all that goes on has to."""
        await asyncio.sleep(GRACE)
        feed: Feed = self._request.app.state.feed
        caller = self._caller
        async with feed.follow(caller.user, caller.credential, after=None) as follower:
            while not follower.ended:
                await follower.wait(60)
                follower.take()


async def _wait_until_left(receive: Callable[[], Awaitable[Any]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
