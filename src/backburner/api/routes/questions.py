"""`/api/questions`: what waits for an answer, answering it, and putting it off."""

from datetime import datetime

from fastapi import APIRouter
from pydantic import Field

from backburner.actions import browse, questions
from backburner.api.http import pages
from backburner.api.http.auth import Reader, TheDeps, Writer
from backburner.api.http.idempotency import KeyedRoute
from backburner.api.http.pages import USUAL, Cursor, Limit, Page
from backburner.api.routes.conversations import show
from backburner.api.schemas.base import BODY, Body, Id, example, refusals
from backburner.api.schemas.conversation import ConversationOut
from backburner.api.schemas.shown import QuestionOut
from backburner.core.ids import QuestionId
from backburner.core.question import NO, YES
from backburner.core.schedule.phrases import parse_duration
from backburner.ports import QuestionRow


class Answer(Body):
    model_config = example(answer="yes")

    answer: str | bool = Field(description="Text, or one of the options; true is yes.")

    @property
    def text(self) -> str:
        if isinstance(self.answer, bool):
            return YES if self.answer else NO
        return self.answer


class Snooze(Body):
    model_config = example(**{"for": "1h"})

    how_long: str = Field(alias="for", max_length=100, description="Such as `1h` or `2 days`.")


class OpenQuestion(QuestionOut):
    title: str = Field(description="The title of its conversation.")


def build_router() -> APIRouter:
    router = APIRouter(prefix="/api", tags=["questions"], route_class=KeyedRoute)

    @router.get("/questions", summary="List open questions", responses=refusals())
    async def list_questions(
        deps: TheDeps, caller: Reader, limit: Limit = USUAL, cursor: Cursor = None
    ) -> Page[OpenQuestion]:
        """List what waits for an answer, the oldest first."""
        after = pages.read(cursor, datetime, str)
        found = await browse.questions(deps, caller.user, after, limit=limit)
        return pages.show(found, _show)

    @router.post(
        "/questions/{which}/answer",
        summary="Answer a question",
        responses=refusals(404, 409, 429, *BODY),
    )
    async def answer_question(
        which: Id, body: Answer, deps: TheDeps, caller: Writer
    ) -> ConversationOut:
        """Answer an open question; the first answer wins, whichever way it comes."""
        done = await questions.answer(deps, caller.user, QuestionId(which), body.text)
        return await show(deps, caller, done.id)

    @router.post(
        "/questions/{which}/snooze",
        summary="Put a question off",
        responses=refusals(404, 409, *BODY),
    )
    async def snooze_question(
        which: Id, body: Snooze, deps: TheDeps, caller: Writer
    ) -> OpenQuestion:
        """Let a question be brought up again later; its work waits all the same."""
        question = QuestionId(which)
        pause = parse_duration(body.how_long)
        await questions.snooze(deps, caller.user, question, pause)
        return _show(await browse.question(deps, caller.user, question))

    return router


def _show(asked: QuestionRow) -> OpenQuestion:
    shown = QuestionOut.of(asked.question, asked.conversation_id)
    return OpenQuestion(**shown.model_dump(), title=asked.title)
