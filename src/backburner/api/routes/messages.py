"""`/api/conversations/{id}/messages`: what was said, and saying more."""

from typing import Any

from fastapi import APIRouter, Request
from pydantic import Field

from backburner.actions import browse, chat
from backburner.api.http import pages
from backburner.api.http.auth import Reader, TheDeps, Writer
from backburner.api.http.idempotency import KeyedRoute
from backburner.api.http.pages import USUAL, Cursor, Limit, Page
from backburner.api.routes import streams
from backburner.api.routes.conversations import show
from backburner.api.schemas.base import BODY, Body, Id, example, refusals
from backburner.api.schemas.conversation import ConversationOut
from backburner.api.schemas.shown import MessageOut
from backburner.core.conversation import MAX_MESSAGE_CHARS
from backburner.core.ids import ConversationId

EVENT_STREAM = "text/event-stream"


class NewMessage(Body):
    model_config = example(content="Watch CI on main and tell me if it breaks.")

    content: str = Field(description=f"Up to {MAX_MESSAGE_CHARS:,} characters.")


def build_router() -> APIRouter:
    router = APIRouter(prefix="/api", tags=["messages"], route_class=KeyedRoute)
    path = "/conversations/{which}/messages"

    @router.get(path, summary="Read messages", responses=refusals(404))
    async def list_messages(
        which: Id, deps: TheDeps, caller: Reader, limit: Limit = USUAL, cursor: Cursor = None
    ) -> Page[MessageOut]:
        """Read what was said, the newest first."""
        after = pages.read(cursor, str)
        found = await browse.messages(deps, caller.user, ConversationId(which), after, limit=limit)
        return pages.show(found, MessageOut.of)

    _add_saying(router, path)
    _add_taking_back(router)
    return router


def _add_saying(router: APIRouter, path: str) -> None:
    as_stream: dict[str, Any] = {"content": {EVENT_STREAM: {}}, "description": "The reply, live."}

    @router.post(
        path,
        summary="Say something",
        status_code=202,
        response_model=MessageOut,
        responses={**refusals(404, 409, *BODY), 200: as_stream},
    )
    async def send_message(
        which: Id, body: NewMessage, request: Request, deps: TheDeps, caller: Writer
    ) -> Any:
        """Say something. It is kept when this is answered; the reply comes when it comes.

        A message that fits the question that is shown answers it. Whoever accepts a stream of
        events gets the reply as one: `message`, then `delta` pieces, then `done` or `error`.
        """
        conversation = ConversationId(which)
        if EVENT_STREAM in request.headers.get("accept", ""):
            return await streams.say(request, caller, conversation, body.content)
        said = await chat.say(deps, caller.user, conversation, body.content)
        return MessageOut.of(said.message)


def _add_taking_back(router: APIRouter) -> None:
    @router.put(
        "/conversations/{which}/messages/last",
        summary="Say something else instead",
        status_code=202,
        responses=refusals(404, 409, *BODY),
    )
    async def replace_last_message(
        which: Id, body: NewMessage, deps: TheDeps, caller: Writer
    ) -> MessageOut:
        """Take back one's last message and all that came after it, and say this instead."""
        said = await chat.edit_last(deps, caller.user, ConversationId(which), body.content)
        return MessageOut.of(said.message)

    @router.post(
        "/conversations/{which}/stop", summary="Stop the reply", responses=refusals(404, 409)
    )
    async def stop_reply(which: Id, deps: TheDeps, caller: Writer) -> ConversationOut:
        """Stop the reply that is being given, or would be; what was said of it so far stays."""
        await chat.stop(deps, caller.user, ConversationId(which))
        return await show(deps, caller, which)
