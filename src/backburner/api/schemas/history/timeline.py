"""The timeline of a conversation."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from backburner.actions.work.timeline import ItemType, TimelineItem, TimelinePage
from backburner.api.http.pages import write_cursor
from backburner.api.schemas.base import example
from backburner.api.schemas.message import MessageOut
from backburner.api.schemas.question import QuestionOut
from backburner.api.schemas.run import CallSummaryOut, RunOut
from backburner.core.ids import ConversationId
from backburner.core.run import Run
from backburner.ports import RunDetails, ShownCall, TimelineQuestion

_EXAMPLE_MESSAGE = {
    "id": "m_0123456789abcdefghjkmnpqrs",
    "conversation_id": "c_0123456789abcdefghjkmnpqrs",
    "role": "assistant",
    "content": "All green.",
    "source": "worker",
    "created_at": "2026-11-16T12:00:41Z",
    "run_id": "r_0123456789abcdefghjkmnpqrs",
    "outside": False,
    "shows": None,
    "closes": None,
}
_EXAMPLE_RUN = {
    "id": "r_0123456789abcdefghjkmnpqrs",
    "conversation_id": "c_0123456789abcdefghjkmnpqrs",
    "kind": "background",
    "status": "success",
    "started_at": "2026-11-16T12:00:00Z",
    "ended_at": "2026-11-16T12:00:41Z",
    "slot_at": "2026-11-16T12:00:00Z",
    "started_by": "schedule",
    "result": "All green.",
    "tokens": 1834,
    "profile": "claude",
    "escalated_from": None,
    "failure": None,
    "skipped": None,
    "seconds": 41.0,
    "cost": {"micros": 12_000, "tokens": 1834, "is_all_priced": True},
    "calls": 1,
    "tool_calls": [
        {
            "id": "t_0123456789abcdefghjkmnpqrs",
            "server": "backburner",
            "tool": "run_command",
            "summary": "gh run list --branch main",
            "state": "done",
            "failed": False,
            "started_at": "2026-11-16T12:00:12Z",
            "ended_at": "2026-11-16T12:00:14Z",
        }
    ],
}


class TimelineCallOut(CallSummaryOut):
    server: str

    @classmethod
    def of_shown(cls, shown: ShownCall) -> Self:
        call = CallSummaryOut.of(shown.call)
        return cls(server=shown.server, **dict(call))


class TimelineCostOut(BaseModel):
    micros: int = Field(description="Millionths of a US dollar.")
    tokens: int
    is_all_priced: bool = Field(description="False: the price of some model calls is unknown.")


class TimelineRunOut(RunOut):
    seconds: float | None = Field(description="How long it took; null: it has not ended.")
    cost: TimelineCostOut | None = Field(description="Null: it has called no model.")
    calls: int = Field(description="The number of its tool calls.")
    tool_calls: Sequence[TimelineCallOut] = Field(description="The last 20, oldest first.")

    @classmethod
    def of_run(cls, run: Run, details: RunDetails) -> Self:
        took = None if run.ended_at is None else run.ended_at - run.started_at
        cost = details.cost
        return cls.of(
            run,
            seconds=None if took is None else took.total_seconds(),
            cost=cost
            and TimelineCostOut(
                micros=cost.amount.micros, tokens=cost.amount.tokens, is_all_priced=cost.priced
            ),
            calls=details.calls,
            tool_calls=[TimelineCallOut.of_shown(call) for call in details.shown_calls],
        )


class AnswererOut(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    kind: str = Field(description="Of the credential: `session` is a browser, and so on.")
    name: str = Field(description="Of the credential, such as a token's.")


class QuestionState(StrEnum):
    OPEN = "open"
    ANSWERED = "answered"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


class TimelineQuestionOut(QuestionOut):
    state: QuestionState = Field(
        description="`expired`: nobody answered in time, and the default applies."
    )
    answer: str | None
    answered_by: AnswererOut | None = Field(
        description="With what it was answered; null: nobody did, or it is not known."
    )
    closed_at: datetime | None

    @classmethod
    def of_asked(cls, asked: TimelineQuestion, conversation_id: ConversationId) -> Self:
        return cls.of(
            asked.question,
            conversation_id,
            state=_state_of(asked),
            answer=asked.answer,
            answered_by=asked.answered_by and AnswererOut.model_validate(asked.answered_by),
            closed_at=asked.closed_at,
        )


class TimelineItemOut(BaseModel):
    type: ItemType = Field(
        description="`run` stands where it began, `question` where it was asked; `skipped` are"
        " slots without a run."
    )
    at: datetime
    message: MessageOut | None = Field(description="Of type `message`.")
    question: TimelineQuestionOut | None = Field(description="Of type `question`.")
    run_id: str | None = Field(
        description="The run or skipped slots that it is, or the run that wrote or asked it; in"
        " `runs`, unless it was removed because it is old."
    )

    @classmethod
    def of(cls, item: TimelineItem, conversation_id: ConversationId) -> Self:
        return cls(
            type=item.type,
            at=item.at,
            message=None if item.message is None else MessageOut.of(item.message),
            question=None
            if item.asked is None
            else TimelineQuestionOut.of_asked(item.asked, conversation_id),
            run_id=item.run_id,
        )


class TimelineOut(BaseModel):
    model_config = example(
        items=[
            {
                "type": "message",
                "at": "2026-11-16T12:00:41Z",
                "message": _EXAMPLE_MESSAGE,
                "question": None,
                "run_id": "r_0123456789abcdefghjkmnpqrs",
            },
            {
                "type": "run",
                "at": "2026-11-16T12:00:00Z",
                "message": None,
                "question": None,
                "run_id": "r_0123456789abcdefghjkmnpqrs",
            },
        ],
        runs={"r_0123456789abcdefghjkmnpqrs": _EXAMPLE_RUN},
        next=None,
    )

    items: Sequence[TimelineItemOut] = Field(description="Newest first.")
    runs: Mapping[str, TimelineRunOut] = Field(description="The runs of the items, by id.")
    next: str | None = Field(description="The cursor of the next page; null on the last one.")

    @classmethod
    def of(cls, timeline: TimelinePage, conversation_id: ConversationId) -> Self:
        return cls(
            items=[TimelineItemOut.of(item, conversation_id) for item in timeline.items],
            runs={
                run_id: TimelineRunOut.of_run(run, details)
                for run_id, (run, details) in timeline.runs.items()
            },
            next=write_cursor(None if timeline.next is None else timeline.next.key),
        )


def _state_of(asked: TimelineQuestion) -> QuestionState:
    if asked.closed_at is None:
        return QuestionState.OPEN
    if asked.answer is None:
        return QuestionState.WITHDRAWN
    expires_at = asked.question.expires_at
    is_default = asked.answered_by is None and asked.answer == asked.question.default
    if is_default and expires_at is not None and expires_at <= asked.closed_at:
        return QuestionState.EXPIRED
    return QuestionState.ANSWERED
