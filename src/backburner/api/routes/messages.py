"""`/api/conversations/{id}/messages`: read messages, send one, and stream the reply."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from fastapi import APIRouter, Request

from backburner.actions import browse, chat
from backburner.actions.chat import SentMessage
from backburner.actions.deps import Deps
from backburner.api.http import sse
from backburner.api.http.auth import Reader, Writer
from backburner.api.http.caller_limits import HeldRequest, get_limits
from backburner.api.http.dependencies import AppDeps, Opened, get_feed
from backburner.api.http.idempotency import IdempotentRoute
from backburner.api.http.openapi import error_responses
from backburner.api.http.pages import PageOut, Paging, make_page
from backburner.api.routes.conversations import load_conversation
from backburner.api.schemas.base import ConversationIdPath
from backburner.api.schemas.conversation import ConversationOut
from backburner.api.schemas.message import EditedMessageBody, MessageOut, NewMessageBody
from backburner.api.schemas.question import QuestionOut
from backburner.core.accounts import Caller
from backburner.core.conversation import Message
from backburner.core.ids import ConversationId, MessageId, QuestionId, RunId
from backburner.core.run import RunStatus
from backburner.live.subscriber import ReplyFollower
from backburner.ports import Reply, ReplyDraft

#: A streamed reply may wait this long for its run to start, beyond the timeout of the run.
QUEUE_TIMEOUT = timedelta(minutes=1)
#: Between two pieces of a reply for one client; the first is sent at once.
PIECE_INTERVAL_SECONDS = 0.02

_STREAM: dict[str, Any] = {
    "content": {sse.MEDIA_TYPE: {}},
    "description": "The reply as a stream of events.",
}

router = APIRouter(
    prefix="/api/conversations/{conversation_id}", tags=["messages"], route_class=IdempotentRoute
)


@router.get("/messages", summary="List messages")
async def list_messages(
    conversation_id: ConversationIdPath, deps: AppDeps, caller: Reader, paging: Paging
) -> PageOut[MessageOut]:
    """List messages, newest first."""
    page = await browse.messages(
        deps, caller.user, conversation_id, paging.after(str), limit=paging.limit
    )
    return make_page(page, MessageOut.of)


@router.post(
    "/messages",
    summary="Send a message",
    status_code=202,
    response_model=MessageOut,
    responses={200: _STREAM, **error_responses(404)},
)
async def send_message(
    conversation_id: ConversationIdPath,
    body: NewMessageBody,
    request: Request,
    deps: AppDeps,
    caller: Writer,
    opened: Opened,
) -> Any:
    """Store a message. The response does not wait for the reply.

    A message that matches the pending question answers it. A yes or no decides the proposal that
    `answers` names, or the one shown last, if the credential may consent.

    A task or a job that uses a connection or a folder takes messages only from credentials that
    were given these or may approve. Answers to its questions and chats are open to all.

    With `Accept: text/event-stream` the response is the reply as it is written. `message` is the
    stored message. `delta` is a piece of the reply: its `text` replaces everything from offset `at`
    on; `at` is 0 again if the reply starts over. `waiting` says, once, why it has not begun yet.
    `done` or `error` is last, with the stored messages and the questions that were asked. A reply
    that waits for its user ends with `done` and the status `queued`: it continues after the answer,
    or the sign-in. `later` ends a stream that takes too long: the reply continues, and /api/events
    reports it.
    """
    streams = sse.MEDIA_TYPE in request.headers.get("accept", "")
    # Before the message is stored: a refused request changes nothing.
    held = get_limits(request).hold(caller.user, HeldRequest.STREAM) if streams else None
    follower = streams and opened.enter_context(
        get_feed(request).follow_reply(caller.user, caller.credential, conversation_id)
    )
    sent = await chat.send(
        deps,
        caller.user,
        conversation_id,
        body.message(),
        profile=body.profile,
        by=caller,
        answers=None if body.answers is None else QuestionId(body.answers),
    )
    if follower:
        events = _stream_reply(request, caller, follower, sent)
        return sse.EventStreamResponse(events, held=held)
    return MessageOut.of(sent.message)


@router.put(
    "/messages/last",
    summary="Replace the last message",
    status_code=202,
    responses=error_responses(404, 409),
)
async def replace_last_message(
    conversation_id: ConversationIdPath, body: EditedMessageBody, deps: AppDeps, caller: Writer
) -> MessageOut:
    """Remove your last message and everything after it, and send this one instead.

    Work that its replies had set up and that is not over is stopped: the schedule that they gave
    this conversation is cleared, and tasks, jobs and open proposals are cancelled and archived.
    What you have changed or approved since stays, as does everything that is older. A system
    message says what was stopped. A reply that is being written is stopped as well.
    """
    sent = await chat.edit_last(
        deps,
        caller.user,
        conversation_id,
        body.message(),
        profile=body.profile,
        by=caller,
        replaces=None if body.replaces is None else MessageId(body.replaces),
    )
    return MessageOut.of(sent.message)


@router.post("/stop", summary="Stop the reply")
async def stop_reply(
    conversation_id: ConversationIdPath, deps: AppDeps, caller: Writer
) -> ConversationOut:
    """Stop the reply that is being written or is due. Text written so far is kept."""
    await chat.stop(deps, caller.user, conversation_id)
    return await load_conversation(deps, caller, conversation_id)


async def _stream_reply(
    request: Request, caller: Caller, follower: ReplyFollower, sent: SentMessage
) -> sse.EventStream:
    state = request.app.state
    deps: Deps = state.deps
    clock = asyncio.get_running_loop().time
    timeout = state.reply_timeout or deps.limits.run_timeout + QUEUE_TIMEOUT
    deadline = clock() + timeout.total_seconds()
    deltas, timer = _Deltas(follower.conversation), sse.HeartbeatTimer(state.heartbeat)
    yield sse.format_event("message", _dump(sent.message))
    drafts: Sequence[ReplyDraft] = ()
    # A message that needs no run is answered by now.
    may_be_there = not sent.items
    was_told = False
    while not follower.ended:
        for delta in deltas.format(drafts):
            timer.restart()
            yield delta
        if drafts and not may_be_there:
            await follower.gather(PIECE_INTERVAL_SECONDS)
        if may_be_there:
            found = await chat.find_reply(deps, caller, follower.conversation, sent)
            if isinstance(found, Reply):
                yield _format_end(found)
                return
            for delta in deltas.format(found):
                timer.restart()
                yield delta
        left = deadline - clock()
        if left <= 0:
            detail = "The reply takes longer: follow it in /api/events."
            yield sse.format_event("later", {"detail": detail})
            return
        if await follower.wait(min(left, timer.seconds_left)):
            drafts, may_be_there = follower.take()
        else:
            drafts, may_be_there = (), True
        # It may have been woken for nothing, again and again.
        if not timer.seconds_left:
            timer.restart()
            yield sse.HEARTBEAT if was_told else await _explain_silence(deps, caller, follower)
            was_told = True


async def _explain_silence(deps: Deps, caller: Caller, follower: ReplyFollower) -> bytes:
    if await chat.has_begun(deps, caller.user, follower.conversation):
        return sse.HEARTBEAT
    return sse.format_event("waiting", {"detail": "Waiting for a free seat."})


class _Deltas:
    """Turns drafts, whose pieces may overlap, into the pieces that a client lacks."""

    def __init__(self, conversation_id: ConversationId) -> None:
        self._conversation_id = conversation_id
        self._run_id: RunId | None = None
        self._text = ""

    def format(self, drafts: Sequence[ReplyDraft]) -> Iterator[bytes]:
        for draft in drafts:
            sent = self._text if draft.run == self._run_id else ""
            # A piece that starts after the sent text comes again later, as a whole.
            if draft.conversation == self._conversation_id and draft.at <= len(sent):
                text = sent[: draft.at] + draft.text
                at = len(sent) if text.startswith(sent) else draft.at
                self._run_id, self._text = draft.run, text
                yield sse.format_event("delta", {"run": draft.run, "at": at, "text": text[at:]})


def _format_end(reply: Reply) -> bytes:
    run = reply.run
    data: dict[str, Any] = {
        "run": run and run.id,
        "status": run.status.value if run else None,
        "messages": [_dump(message) for message in reply.messages],
        "questions": [
            QuestionOut.of(asked, asked_in).model_dump(mode="json")
            for asked_in, asked in reply.questions
        ],
    }
    if run is not None and run.status is RunStatus.FAILURE:
        detail = run.failure.message if run.failure else "The reply failed."
        return sse.format_event("error", {**data, "detail": detail})
    return sse.format_event("done", data)


def _dump(message: Message) -> dict[str, Any]:
    return MessageOut.of(message).model_dump(mode="json")
