"""`/api/events`: everything that changes for a user, as it changes."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from starlette.datastructures import State

from backburner.api.http import sse
from backburner.api.http.auth import Reader
from backburner.api.schemas.base import refusals
from backburner.core.accounts import Caller
from backburner.live.feed import Feed
from backburner.live.subscriber import FeedItem

#: How long a client is to wait before it comes again, in milliseconds.
RETRY = b"retry: 1000\n\n"
#: Between two drafts for one client, in seconds.
PAUSE = 0.05
#: A number that nothing has: whoever comes with it has to load everything again.
_UNKNOWN = -1

_EXAMPLE = """retry: 1000

id: 41
event: hello
data: {"id": "41"}

event: draft
data: {"conversation": "c_1", "run": "r_1", "at": 0, "text": "The build is"}

id: 42
event: change
data: {"id": "42", "kind": "message", "conversation": "c_1"}

"""
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events, until the client leaves, its credential ends or the server stops.",
        "content": {sse.MEDIA_TYPE: {"schema": {"type": "string"}, "example": _EXAMPLE}},
    },
    **refusals(),
}


def build_router() -> APIRouter:
    router = APIRouter(prefix="/api", tags=["events"])

    @router.get(
        "/events",
        summary="Follow everything that changes",
        response_class=sse.Streaming,
        responses=_ANSWERS,
    )
    async def follow_changes(
        request: Request,
        caller: Reader,
        last_event_id: Annotated[str | None, Header()] = None,
    ) -> sse.Streaming:
        """Say where to look again: `change` has an id, a kind and a conversation.

        A client that comes again with `Last-Event-ID` is told all that it missed, each once; where
        that is too much or too long ago, `reset` says to load everything again. `hello` begins one
        that comes without. `draft` is a piece of a reply in progress: `text` replaces whatever
        followed the offset `at`. It has no id, and the next change of its conversation ends it. Ids
        are opaque.
        """
        after = None if last_event_id is None else _number(last_event_id)
        return sse.Streaming(_events(request.app.state, caller, after))

    return router


async def _events(state: State, caller: Caller, after: int | None) -> sse.Pieces:
    feed: Feed = state.feed
    async with feed.follow(caller.user, caller.credential, after=after) as follower:
        yield RETRY
        while not follower.ended:
            if not await follower.wait(state.heartbeat):
                yield sse.HEARTBEAT
                continue
            news = follower.take()
            if written := _write(news):
                yield written
            if news.drafts:
                await asyncio.sleep(PAUSE)


def _write(news: FeedItem) -> bytes:
    pieces = []
    if news.begins_at is not None:
        name = "reset" if news.resets else "hello"
        pieces.append(sse.event(name, {"id": str(news.begins_at)}, number=news.begins_at))
    for one in news.changes:
        data = {"id": str(one.number), "kind": one.kind, "conversation": one.conversation}
        pieces.append(sse.event("change", data, number=one.number))
    for draft in news.drafts:
        said = {
            "conversation": draft.conversation,
            "run": draft.run,
            "at": draft.at,
            "text": draft.text,
        }
        pieces.append(sse.event("draft", said))
    return b"".join(pieces)


def _number(given: str) -> int:
    return int(given) if given.isascii() and given.isdigit() and len(given) < 19 else _UNKNOWN
