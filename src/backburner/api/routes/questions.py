"""`/api/questions`: list, answer and snooze open questions."""

from datetime import datetime

from fastapi import APIRouter

from backburner.actions import browse, questions
from backburner.actions.accounts import consent
from backburner.api.http.auth import Reader, Writer
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.idempotency import IdempotentRoute
from backburner.api.http.openapi import error_responses
from backburner.api.http.pages import PageOut, Paging, make_page
from backburner.api.routes.conversations import load_conversation
from backburner.api.schemas.base import QuestionIdPath
from backburner.api.schemas.conversation import ConversationOut
from backburner.api.schemas.question import AnswerBody, OpenQuestionOut, SnoozeBody
from backburner.core.schedule.phrases import parse_duration

router = APIRouter(prefix="/api/questions", tags=["questions"], route_class=IdempotentRoute)


@router.get("", summary="List open questions")
async def list_questions(deps: AppDeps, caller: Reader, paging: Paging) -> PageOut[OpenQuestionOut]:
    """List open questions, oldest first."""
    page = await browse.questions(
        deps, caller.user, paging.after(datetime, str), limit=paging.limit
    )
    return make_page(page, OpenQuestionOut.of_row)


@router.post("/{question_id}/answer", summary="Answer a question", responses=error_responses(429))
async def answer_question(
    question_id: QuestionIdPath, body: AnswerBody, deps: AppDeps, caller: Writer
) -> ConversationOut:
    """Answer an open question. The first answer counts, from whichever client it comes.

    What a server asks for during a call takes `values` as well: one for each of
    `binds_to.requests[].fields`, by its name. Those left out get their default; `null` sends none.

    Answers to approvals, proposals, allowances and calls in doubt need the scope `approve`.
    """
    await consent.check_answer(deps, caller, question_id)
    conversation = await questions.answer(deps, caller.user, question_id, body.given, by=caller)
    return await load_conversation(deps, caller, conversation.id)


@router.post("/{question_id}/snooze", summary="Snooze a question")
async def snooze_question(
    question_id: QuestionIdPath, body: SnoozeBody, deps: AppDeps, caller: Writer
) -> OpenQuestionOut:
    """Postpone the reminder of a question. Its work keeps waiting."""
    await questions.snooze(deps, caller.user, question_id, parse_duration(body.duration))
    return OpenQuestionOut.of_row(await browse.question(deps, caller.user, question_id))
