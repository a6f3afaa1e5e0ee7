"""The summary of what happened while the user was away."""

from dataclasses import asdict
from datetime import datetime
from typing import Any, Self

from pydantic import AwareDatetime, BaseModel, Field

from backburner.actions import away
from backburner.api.schemas.base import example, strict_example
from backburner.ports import RunCounts

_COUNTS = {"succeeded": 12, "failed": 1, "skipped": 0, "cancelled": 0}
_EXAMPLE: dict[str, Any] = {
    "since": "2026-03-02T18:00:00Z",
    "until": "2026-03-03T07:30:00Z",
    "totals": _COUNTS,
    "ran": [
        {
            "conversation": "c_1",
            "title": "Watch CI",
            "counts": _COUNTS,
            "last_at": "2026-03-03T07:00:00Z",
            "failure": "The model does not answer.",
        }
    ],
    "needs": [
        {
            "question": "q_1",
            "conversation": "c_1",
            "title": "Watch CI",
            "purpose": "approval",
            "prompt": "May I run the tests again?",
            "asked_at": "2026-03-03T06:00:00Z",
        }
    ],
    "spent": {"micros": 120_000, "tokens": 54_000, "is_all_priced": True},
    "told": [
        {
            "notice": "n_1",
            "conversation": "c_1",
            "title": "Watch CI",
            "kind": "result",
            "text": "The build is green again.",
            "created_at": "2026-03-03T07:00:00Z",
        }
    ],
}


class RunCountsOut(BaseModel):
    succeeded: int
    failed: int
    skipped: int
    cancelled: int

    @classmethod
    def of(cls, counts: RunCounts) -> Self:
        return cls(**asdict(counts))


class ConversationActivityOut(BaseModel):
    conversation: str
    title: str
    counts: RunCountsOut
    last_at: datetime
    failure: str | None


class WaitingQuestionOut(BaseModel):
    question: str
    conversation: str
    title: str
    purpose: str
    prompt: str
    asked_at: datetime


class AwaySpendOut(BaseModel):
    micros: int
    tokens: int
    is_all_priced: bool


class AwayNoticeOut(BaseModel):
    notice: str
    conversation: str
    title: str
    kind: str
    text: str
    created_at: datetime


class AwaySummaryOut(BaseModel):
    """Background runs, open questions, spending and notices."""

    model_config = example(**_EXAMPLE)

    since: datetime
    until: datetime
    totals: RunCountsOut
    ran: list[ConversationActivityOut]
    needs: list[WaitingQuestionOut]
    spent: AwaySpendOut
    told: list[AwayNoticeOut]

    @classmethod
    def of(cls, summary: away.AwaySummary) -> Self:
        amount = summary.spent.amount
        return cls(
            since=summary.since,
            until=summary.until,
            totals=RunCountsOut.of(summary.totals),
            ran=[
                ConversationActivityOut(
                    conversation=row.conversation,
                    title=row.title,
                    counts=RunCountsOut.of(row.counts),
                    last_at=row.last_at,
                    failure=row.failure,
                )
                for row in summary.conversations
            ],
            needs=[WaitingQuestionOut(**asdict(row)) for row in summary.questions],
            spent=AwaySpendOut(
                micros=amount.micros,
                tokens=amount.tokens,
                is_all_priced=summary.spent.is_all_priced,
            ),
            told=[AwayNoticeOut(**asdict(row)) for row in summary.notices],
        )


class AwaySeenBody(BaseModel):
    model_config = strict_example(until=_EXAMPLE["until"])

    until: AwareDatetime | None = Field(
        default=None, description="`until` of the summary that was seen; null: now."
    )


class AwaySinceOut(BaseModel):
    model_config = example(since=_EXAMPLE["until"])

    since: datetime = Field(description="The start of the next summary.")
