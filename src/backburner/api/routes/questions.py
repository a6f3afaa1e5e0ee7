"""`/api/questions`: list, answer and snooze open questions."""

from datetime import datetime

from fastapi import APIRouter

from backburner.actions import browse, questions
from backburner.api.http.auth import Reader, Writer
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.idempotency import IdempotentRoute
from backburner.api.http.openapi import BODY_ERRORS, error_responses
from backburner.api.http.pages import (
    DEFAULT_PAGE_SIZE,
    Cursor,
    Limit,
    PageOut,
    make_page,
    read_cursor,
)
from backburner.api.routes.conversations import load_conversation
from backburner.api.schemas.base import QuestionIdPath
from backburner.api.schemas.conversation import ConversationOut
from backburner.api.schemas.question import AnswerBody, OpenQuestionOut, SnoozeBody
from backburner.core.schedule.phrases import parse_duration

router = APIRouter(prefix="/api/questions", tags=["questions"], route_class=IdempotentRoute)


@router.get("", summary="List open questions", responses=error_responses())
async def list_questions(
    deps: AppDeps, caller: Reader, limit: Limit = DEFAULT_PAGE_SIZE, cursor: Cursor = None
) -> PageOut[OpenQuestionOut]:
    """List open questions, oldest first."""
    after = read_cursor(cursor, datetime, str)
    page = await browse.questions(deps, caller.user, after, limit=limit)
    return make_page(page, OpenQuestionOut.of_row)


@router.post(
    "/{question_id}/answer",
    summary="Answer a question",
    responses=error_responses(404, 409, 429, *BODY_ERRORS),
)
async def answer_question(
    question_id: QuestionIdPath, body: AnswerBody, deps: AppDeps, caller: Writer
) -> ConversationOut:
    """Answer an open question. The first answer counts, from whichever client it comes."""
    conversation = await questions.answer(deps, caller.user, question_id, body.text)
    return await load_conversation(deps, caller, conversation.id)


@router.post(
    "/{question_id}/snooze",
    summary="Snooze a question",
    responses=error_responses(404, 409, *BODY_ERRORS),
)
async def snooze_question(
    question_id: QuestionIdPath, body: SnoozeBody, deps: AppDeps, caller: Writer
) -> OpenQuestionOut:
    """Postpone the reminder of a question. Its work keeps waiting."""
    await questions.snooze(deps, caller.user, question_id, parse_duration(body.duration))
    return OpenQuestionOut.of_row(await browse.question(deps, caller.user, question_id))
