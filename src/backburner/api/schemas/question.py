"""Questions, and answers to them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, Field, model_validator

from backburner.api.schemas.base import RequestBody, example
from backburner.core.connections.inputs.input_request import InputValues
from backburner.core.errors import BadRequest
from backburner.core.ids import ConversationId
from backburner.core.question import NO, YES, Purpose, Question, QuestionType
from backburner.ports import QuestionRow

#: Of one answer; a question shows fewer.
MAX_VALUES = 1_000


class AnswerBody(RequestBody):
    model_config = example(answer="yes")

    answer: str | bool | None = Field(
        None, description="Text, or one of the options; true means yes."
    )
    values: dict[str, str | bool | int | float | list[str] | None] | None = Field(
        None,
        max_length=MAX_VALUES,
        description="Instead of `answer`, for what a server asks for during a call: values by the"
        " names of its fields.",
    )

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if (self.answer is None) == (self.values is None):
            raise BadRequest("Send either an `answer` or `values`.")
        return self

    @property
    def given(self) -> str | InputValues:
        """Return the answer as it was given."""
        if self.values is not None:
            return self.values
        if isinstance(self.answer, bool):
            return YES if self.answer else NO
        return self.answer or ""


class SnoozeBody(RequestBody):
    model_config = example(**{"for": "1h"})

    duration: str = Field(alias="for", max_length=100, description="Such as `1h` or `2 days`.")


class QuestionOut(BaseModel):
    model_config = example(
        id="q_0123456789abcdefghjkmnpqrs",
        conversation_id="c_0123456789abcdefghjkmnpqrs",
        purpose="question",
        type="confirmation",
        prompt="Shall I answer Ann?",
        options=["yes", "no"],
        binds_to={},
        run_id="r_0123456789abcdefghjkmnpqrs",
        asked_at="2026-11-16T12:00:00Z",
        remind_at="2026-11-17T12:00:00Z",
        expires_at=None,
        default=None,
    )

    id: str
    conversation_id: str
    purpose: Purpose
    type: QuestionType
    prompt: str
    options: Sequence[str]
    binds_to: Mapping[str, Any] = Field(
        description="The exact call or proposal that an approval covers."
    )
    run_id: str | None
    asked_at: datetime
    remind_at: datetime | None
    expires_at: datetime | None
    default: str | None = Field(description="The answer that is assumed when it expires.")

    @classmethod
    def of(cls, question: Question, conversation_id: ConversationId, **more: Any) -> Self:
        return cls(
            id=question.id,
            conversation_id=conversation_id,
            purpose=question.purpose,
            type=question.type,
            prompt=question.prompt,
            options=question.options,
            binds_to=question.binds_to,
            run_id=question.run_id,
            asked_at=question.asked_at,
            remind_at=question.remind_at,
            expires_at=question.expires_at,
            default=question.default,
            **more,
        )


class OpenQuestionOut(QuestionOut):
    title: str = Field(description="The title of its conversation.")

    @classmethod
    def of_row(cls, row: QuestionRow) -> Self:
        return cls.of(row.question, row.conversation_id, title=row.title)
