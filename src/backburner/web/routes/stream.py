"""The stream of the page: changes as the API reports them, and replies in progress as blocks."""

from typing import Annotated

from fastapi import APIRouter, Header, Request

from backburner.api.http import sse
from backburner.api.http.auth import Reader
from backburner.api.http.changes import stream_changes
from backburner.live.subscriber import FeedItem
from backburner.web.drafts import Drafts, Watcher

#: Text grows at most ten times a second.
DRAFT_INTERVAL_SECONDS = 0.1

router = APIRouter(include_in_schema=False)


@router.get("/page/stream", response_class=sse.EventStreamResponse)
async def stream_page(
    request: Request, caller: Reader, last_event_id: Annotated[str | None, Header()] = None
) -> sse.EventStreamResponse:
    drafts: Drafts = request.app.state.page_drafts
    watcher = Watcher()
    return stream_changes(
        request,
        caller,
        last_event_id,
        lambda news: _format(news, drafts, watcher),
        draft_interval=DRAFT_INTERVAL_SECONDS,
    )


async def _format(news: FeedItem, drafts: Drafts, watcher: Watcher) -> bytes:
    parts = list[bytes]()
    if news.begins_at is not None:
        name = "reset" if news.resets else "hello"
        data = {"id": str(news.begins_at)}
        parts.append(sse.format_event(name, data, number=news.begins_at))
    for change in news.changes:
        if change.conversation is not None:
            watcher.forget(change.conversation)
        place = {"kind": change.kind, "conversation": change.conversation}
        parts.append(sse.format_event("change", place, number=change.number))
    for piece in news.drafts:
        shown = await drafts.show(piece, watcher)
        if shown is not None:
            parts.append(sse.format_event("draft", shown))
    return b"".join(parts)
