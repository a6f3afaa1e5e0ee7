"""Everything that waits for its user, and single questions by the addresses of notices."""

from fastapi import APIRouter
from starlette.responses import Response

from backburner.actions import browse
from backburner.actions.work import run_pages
from backburner.api.http.auth import Reader
from backburner.api.http.dependencies import AppDeps
from backburner.core.errors import NotFound
from backburner.core.ids import QuestionId
from backburner.core.run import RunStatus
from backburner.ports import QuestionRow
from backburner.web.display import Display
from backburner.web.rendering import respond
from backburner.web.routes.lists import Shown
from backburner.web.views.question import QuestionCard, list_delays, show_question

MAX_CARDS = 100

router = APIRouter(include_in_schema=False)


@router.get("/page/needs-you")
async def show_needs_you(deps: AppDeps, caller: Reader, display: Shown) -> Response:
    """Show the questions that ask now, and then those that were put off."""
    page = await browse.questions(deps, caller.user, None, limit=MAX_CARDS)
    cards = sorted((_show(row, display) for row in page.items), key=lambda card: bool(card.later))
    asking, working = sum(not card.later for card in cards), 0
    if not asking:
        running = await run_pages.listed(
            deps, caller.user, RunStatus.RUNNING, None, limit=MAX_CARDS
        )
        working = len({one.row.run.conversation_id for one in running.items})
    return await respond(
        "pages/needs_you.html", display, cards=cards, asking=asking, working=working
    )


@router.get("/page/q/{question_id}")
async def show_one(
    question_id: QuestionId, deps: AppDeps, caller: Reader, display: Shown
) -> Response:
    try:
        row = await browse.question(deps, caller.user, question_id)
        place, _ = await browse.conversation(deps, caller.user, row.conversation_id)
        is_open = any(asked.id == question_id for asked in place.conversation.questions)
    except NotFound:
        is_open = False
    if not is_open:
        return await respond("pages/question_gone.html", display)
    return await respond("pages/question.html", display, card=_show(row, display))


@router.get("/page/q/{question_id}/later")
async def show_delays(
    question_id: QuestionId, deps: AppDeps, caller: Reader, display: Shown
) -> Response:
    """Show how far a question can be put off, from now."""
    question = (await browse.question(deps, caller.user, question_id)).question
    delays = list_delays(display)
    return await respond("pages/later.html", display, question_id=question.id, delays=delays)


def _show(row: QuestionRow, display: Display) -> QuestionCard:
    return show_question(row.question, row.conversation_id, row.title, display)
