"""A message and its reply in one answer that goes on until the reply is there."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from fastapi import Request
from starlette.datastructures import State

from backburner.actions import chat
from backburner.actions.chat import SentMessage
from backburner.actions.deps import Deps
from backburner.api.http import sse
from backburner.api.schemas.shown import MessageOut
from backburner.core.accounts import Caller
from backburner.core.conversation import Message
from backburner.core.ids import ConversationId, RunId
from backburner.core.run import RunStatus
from backburner.live.feed import Feed
from backburner.ports import Reply, ReplyDraft

#: Beyond what a run may take: it may have to wait for others.
LONGEST_WAIT = timedelta(minutes=1)


async def say(
    request: Request,
    caller: Caller,
    conversation_id: ConversationId,
    text: str,
    *,
    patience: timedelta | None = None,
) -> sse.Streaming:
    """Store a message and stream what comes of it; what is refused is raised before it begins.

    `message` is what was stored. `delta` is a further piece of the reply: `text` goes to the place
    `at`, and whatever stood from there on is void; it does so from 0 where a reply is begun again.
    At the end there is `done` or `error`, with the messages that are kept. `later` ends an answer
    that takes too long: the reply goes on, and can be followed in /api/events.
    """
    deps: Deps = request.app.state.deps
    said = await chat.say(deps, caller.user, conversation_id, text)
    patience = patience or deps.limits.run_timeout + LONGEST_WAIT
    return sse.Streaming(_stream(request.app.state, caller, conversation_id, said, patience))


async def _stream(
    state: State,
    caller: Caller,
    conversation_id: ConversationId,
    said: SentMessage,
    patience: timedelta,
) -> sse.Pieces:
    feed: Feed = state.feed
    clock = asyncio.get_running_loop().time
    until = clock() + patience.total_seconds()
    telling = _Telling(conversation_id)
    async with feed.follow(caller.user, caller.credential, after=None) as follower:
        yield sse.event("message", _shown(said.message))
        while not follower.ended:
            reply = await chat.find_reply(state.deps, caller.user, conversation_id, said)
            if reply is not None:
                yield _end(reply)
                return
            looks_again = False
            while not looks_again and not follower.ended:
                left = until - clock()
                if left <= 0:
                    yield sse.event("later", {"detail": "The reply goes on: see /api/events."})
                    return
                if not await follower.wait(min(left, state.heartbeat)):
                    looks_again = True
                    yield sse.HEARTBEAT
                    continue
                news = follower.take()
                for delta in telling.tell(news.drafts):
                    yield delta
                looks_again = news.resets or any(
                    one.conversation == conversation_id for one in news.changes
                )


class _Telling:
    """What a client has been told of a reply."""

    def __init__(self, conversation_id: ConversationId) -> None:
        self._which = conversation_id
        self._run: RunId | None = None
        self._text = ""

    def tell(self, drafts: Sequence[ReplyDraft]) -> Iterator[bytes]:
        for draft in drafts:
            known = self._text if draft.run == self._run else ""
            # One that begins later than what is known comes again, as a whole.
            if draft.conversation == self._which and draft.at <= len(known):
                text = known[: draft.at] + draft.text
                at = len(known) if text.startswith(known) else draft.at
                self._run, self._text = draft.run, text
                yield sse.event("delta", {"run": draft.run, "at": at, "text": text[at:]})


def _end(reply: Reply) -> bytes:
    run = reply.run
    data: dict[str, Any] = {
        "run": run and run.id,
        "status": run.status.value if run else None,
        "messages": [_shown(message) for message in reply.messages],
    }
    if run is not None and run.status is RunStatus.FAILURE:
        why = run.failure.message if run.failure else "The reply failed."
        return sse.event("error", {**data, "detail": why})
    return sse.event("done", data)


def _shown(message: Message) -> dict[str, Any]:
    """Show a message as it is shown everywhere."""
    return MessageOut.of(message).model_dump(mode="json")
