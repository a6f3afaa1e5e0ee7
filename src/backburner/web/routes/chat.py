"""A conversation: its head, its messages in pages, and what is known about it."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import AfterValidator, AwareDatetime
from starlette.responses import Response

from backburner.actions import browse
from backburner.actions.accounts import profile
from backburner.actions.deps import Deps
from backburner.actions.work import run_pages, timeline
from backburner.actions.work.timeline import KEY_TYPES, Position, TimelinePage
from backburner.api.http.auth import Reader
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.pages import PageQuery, write_cursor
from backburner.api.schemas.base import ConversationIdPath, check_id
from backburner.api.schemas.conversation import list_next_times
from backburner.core.accounts import Caller
from backburner.core.conversation import Conversation
from backburner.core.ids import ConversationId, MessageId
from backburner.core.question import CONSENT, QuestionType
from backburner.core.run import RunKind
from backburner.core.schedule import Immediate
from backburner.ports import ConversationRow
from backburner.web.display import Display
from backburner.web.markdown import RenderedMessages
from backburner.web.rendering import load_words, respond
from backburner.web.routes.lists import Shown, show_times
from backburner.web.views.about import AboutFacts, show_about
from backburner.web.views.conversation_row import show_row
from backburner.web.views.conversation_state import (
    awaits_reply,
    describe_pause,
    describe_schedule,
    show_state,
)
from backburner.web.views.question import QuestionCard, show_question
from backburner.web.views.runs.page import may_run_now
from backburner.web.views.schedule import confirm_run
from backburner.web.views.thread import Thread
from backburner.web.views.thread_items import ThreadItem

PAGE = 50
#: An open page asks again for what it shows, and for some that may be new.
MAX_TAIL, NEW_ITEMS = 200, 30

MessageIdPath = Annotated[MessageId, AfterValidator(check_id)]

router = APIRouter(include_in_schema=False)
#: Of all conversations that this process shows.
_rendered = RenderedMessages()


@router.get("/page/c/{conversation_id}")
async def show_chat(conversation_id: ConversationIdPath, deps: AppDeps, caller: Reader) -> Response:
    row, display = await _load(deps, caller, conversation_id)
    conversation = row.conversation
    page = await timeline.page(deps, caller.user, conversation_id, Position(), limit=PAGE)
    return await respond(
        "pages/chat.html",
        display,
        **_describe_head(row, display),
        thread=partial(_show_items, row, page, display, is_newest=True),
        older=_write_older(page),
        model=conversation.profile or deps.default_profile,
        question=_find_typed_question(row, display),
        writing=row.running is not None and row.running.kind is RunKind.REPLY,
        waits=awaits_reply(row),
        facts=await _load_facts(deps, caller, row, display),
    )


@router.get("/page/c/{conversation_id}/head")
async def show_head(conversation_id: ConversationIdPath, deps: AppDeps, caller: Reader) -> Response:
    row, display = await _load(deps, caller, conversation_id)
    return await respond("pages/chat_head.html", display, **_describe_head(row, display))


@router.get("/page/c/{conversation_id}/tail")
async def show_tail(
    conversation_id: ConversationIdPath,
    deps: AppDeps,
    caller: Reader,
    shown: Annotated[int, Query(alias="count", ge=0)] = 0,
    since: AwareDatetime | None = None,
) -> Response:
    """Show what an open page shows as it is now, from its first item on, and what is new."""
    row, display = await _load(deps, caller, conversation_id)
    limit = min(shown, MAX_TAIL) + NEW_ITEMS
    page = await timeline.page(deps, caller.user, conversation_id, Position(), limit=limit)
    if since is not None:
        newer = [item for item in page.items if item.at >= since]
        page = TimelinePage(newer, page.runs, page.next)
    return await respond(
        "pages/tail.html",
        display,
        thread=partial(_show_items, row, page, display, is_newest=True),
        conversation=row.conversation,
        waits=awaits_reply(row),
    )


@router.get("/page/c/{conversation_id}/asked")
async def show_asked(
    conversation_id: ConversationIdPath, deps: AppDeps, caller: Reader
) -> Response:
    row, display = await _load(deps, caller, conversation_id)
    question = _find_typed_question(row, display)
    return await respond(
        "pages/asked.html", display, conversation=row.conversation, question=question
    )


@router.get("/page/c/{conversation_id}/thread")
async def show_older(
    conversation_id: ConversationIdPath, deps: AppDeps, caller: Reader, before: str
) -> Response:
    row, display = await _load(deps, caller, conversation_id)
    after = Position.of_key(PageQuery(cursor=before).after(*KEY_TYPES))
    page = await timeline.page(deps, caller.user, conversation_id, after, limit=PAGE)
    return await respond(
        "pages/older.html",
        display,
        thread=partial(_show_items, row, page, display, is_newest=False),
        older=_write_older(page),
        conversation_id=conversation_id,
    )


@router.get("/page/c/{conversation_id}/message/{message_id}")
async def show_message(
    conversation_id: ConversationIdPath,
    message_id: MessageIdPath,
    deps: AppDeps,
    caller: Reader,
    display: Shown,
) -> Response:
    """Show all that a message says, whose beginning is on a page with much text."""
    message = await browse.message(deps, caller.user, conversation_id, message_id)
    html = partial(_rendered.render, message.id, message.content)
    return await respond("pages/message.html", display, html=html)


@router.get("/page/c/{conversation_id}/about")
async def show_about_panel(
    conversation_id: ConversationIdPath, deps: AppDeps, caller: Reader
) -> Response:
    row, display = await _load(deps, caller, conversation_id)
    facts = await _load_facts(deps, caller, row, display)
    return await respond("pages/about.html", display, **_describe_head(row, display), facts=facts)


async def _load(
    deps: Deps, caller: Caller, conversation_id: ConversationId
) -> tuple[ConversationRow, Display]:
    row, context = await browse.conversation(deps, caller.user, conversation_id)
    return row, show_times(context)


def _describe_head(row: ConversationRow, display: Display) -> dict[str, Any]:
    conversation = row.conversation
    return {
        "conversation": conversation,
        "row": show_row(row, display),
        "state": show_state(row, display),
        # It has begun, and has no other time.
        "is_at_once": isinstance(conversation.schedule, Immediate),
        "schedule_words": describe_schedule(conversation, display),
        "pause_words": describe_pause(conversation),
        "commands": list_commands(conversation),
        "next_times": list_next_times(conversation),
    }


def _show_items(
    row: ConversationRow, page: TimelinePage, display: Display, *, is_newest: bool
) -> list[ThreadItem]:
    conversation = row.conversation
    running, progress = row.running, row.progress
    doing = {} if running is None or progress is None else {running.run_id: progress.text}
    thread = Thread(
        conversation.id,
        conversation.title,
        display,
        _rendered,
        doing,
        may_run=may_run_now(conversation),
        run_confirm=confirm_run(conversation, display),
    )
    return list(thread.show(page, is_newest=is_newest))


def _write_older(page: TimelinePage) -> str | None:
    return None if page.next is None else write_cursor(page.next.key)


def _find_typed_question(row: ConversationRow, display: Display) -> QuestionCard | None:
    """Return the question that the next message answers: one that takes text, and no consent."""
    conversation = row.conversation
    asked = conversation.pending_question
    if asked is None or asked.type is not QuestionType.INPUT or asked.purpose in CONSENT:
        return None
    return show_question(asked, conversation.id, conversation.title, display)


async def _load_facts(
    deps: Deps, caller: Caller, row: ConversationRow, display: Display
) -> AboutFacts:
    conversation = row.conversation
    stats = await run_pages.stats(deps, caller.user, conversation.id)
    spent = await profile.spend_statement(deps, caller.user, conversation.id)
    return show_about(row, stats, spent, display, model=deps.default_profile)


def _press_in_menu(ending: str) -> str:
    """Select a button of the menu in the header, which may ask something first."""
    return f'#menu-head [data-call$="/{ending}"]'


def list_commands(conversation: Conversation | None) -> list[dict[str, str]]:
    """List what can be typed after a slash: each is a button or a link with these attributes."""
    known: list[dict[str, str]] = []
    if conversation is not None:
        api = f"/api/conversations/{conversation.id}"
        if conversation.has_work:
            sure = load_words().schedule.stop_confirm
            run = {"press": _press_in_menu("run-now")}
            # Without a button, the API says why it does not run.
            if not may_run_now(conversation):
                run = {"call": f"POST {api}/run-now"}
            known += [
                {"name": "run"} | run,
                {"name": "pause", "call": f"POST {api}/pause"},
                {"name": "resume", "call": f"POST {api}/resume"},
                {"name": "cancel", "call": f"POST {api}/cancel", "confirm": sure},
            ]
        known += [
            {"name": "title", "call": f"PATCH {api}", "takes": "title"},
            {"name": "schedule", "press": "[popovertarget=schedule-editor]"},
            {"name": "archive", "press": _press_in_menu("archive")},
            {"name": "fresh", "call": f"POST {api}/fresh"},
        ]
    return [
        *known,
        {"name": "new", "go": "/new"},
        {"name": "needs", "go": "/needs-you"},
        {"name": "running", "go": "/running"},
        {"name": "spending", "go": "/spending"},
        {"name": "keys", "show": "/page/keys"},
    ]
