"""Streams of a user's changes: where they begin, how often they send, and when they end."""

import asyncio
from collections.abc import Awaitable, Callable

from fastapi import Request

from backburner.api.http import sse
from backburner.api.http.caller_limits import HeldRequest, get_limits
from backburner.api.http.dependencies import get_feed
from backburner.core.accounts import Caller
from backburner.live.subscriber import FeedItem

#: Tells the client to reconnect after a second.
RETRY = b"retry: 1000\n\n"
#: Matches no event, so that the client has to reload everything.
_UNKNOWN_NUMBER = -1


def stream_changes(
    request: Request,
    caller: Caller,
    last_event_id: str | None,
    format_item: Callable[[FeedItem], Awaitable[bytes]],
    *,
    draft_interval: float,
) -> sse.EventStreamResponse:
    """Send what follows the last event that the client saw, until one of both sides ends it.

    Between two drafts is the interval, in seconds.
    """
    held = get_limits(request).hold(caller.user, HeldRequest.STREAM)
    after = None if last_event_id is None else _read_number(last_event_id)

    async def stream() -> sse.EventStream:
        feed, timer = get_feed(request), sse.HeartbeatTimer(request.app.state.heartbeat)
        async with feed.follow(caller.user, caller.credential, after=after) as subscriber:
            yield RETRY
            while not subscriber.ended:
                has_news = await subscriber.wait(timer.seconds_left)
                news = subscriber.take() if has_news else FeedItem()
                events = await format_item(news)
                # It may have been woken for nothing, again and again.
                if not events and not timer.seconds_left:
                    events = sse.HEARTBEAT
                if events:
                    timer.restart()
                    yield events
                if news.drafts:
                    await asyncio.sleep(draft_interval)

    return sse.EventStreamResponse(stream(), held=held)


def _read_number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else _UNKNOWN_NUMBER
