"""`/api/events`: a live stream of all changes of a user."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Request

from backburner.api.http import sse
from backburner.api.http.auth import Reader
from backburner.api.http.changes import stream_changes
from backburner.live.subscriber import FeedItem

#: Between two drafts for one client.
DRAFT_INTERVAL_SECONDS = 0.05

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
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events, until the client disconnects, its credential ends, or the server"
        " stops.",
        "content": {sse.MEDIA_TYPE: {"schema": {"type": "string"}, "example": _EXAMPLE}},
    }
}

router = APIRouter(prefix="/api", tags=["events"])


@router.get(
    "/events",
    summary="Stream changes",
    response_class=sse.EventStreamResponse,
    responses=_RESPONSES,
)
async def stream_events(
    request: Request, caller: Reader, last_event_id: Annotated[str | None, Header()] = None
) -> sse.EventStreamResponse:
    """Report changes: `change` has an opaque id, a kind and a conversation to reload.

    A client that reconnects with `Last-Event-ID` gets every change that it missed, once. If there
    are too many, or they are too old, it gets `reset` and has to reload everything. A client
    without the header starts with `hello`. `draft` is a piece of a reply in progress: `text`
    replaces everything from offset `at` on. It has no id, and the next change of its
    conversation replaces it.
    """
    return stream_changes(
        request, caller, last_event_id, _format, draft_interval=DRAFT_INTERVAL_SECONDS
    )


async def _format(news: FeedItem) -> bytes:
    events = []
    if news.begins_at is not None:
        name = "reset" if news.resets else "hello"
        events.append(sse.format_event(name, {"id": str(news.begins_at)}, number=news.begins_at))
    for change in news.changes:
        data = {"id": str(change.number), "kind": change.kind, "conversation": change.conversation}
        events.append(sse.format_event("change", data, number=change.number))
    for draft in news.drafts:
        piece = {
            "conversation": draft.conversation,
            "run": draft.run,
            "at": draft.at,
            "text": draft.text,
        }
        events.append(sse.format_event("draft", piece))
    return b"".join(events)
