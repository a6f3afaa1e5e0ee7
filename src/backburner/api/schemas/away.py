"""The summary of what happened while the user was away."""

from dataclasses import asdict
from datetime import datetime
from typing import Any, Self

from pydantic import AwareDatetime, BaseModel, Field

from backburner.actions import away
from backburner.actions.away import LaneState
from backburner.api.schemas.base import example, strict_example
from backburner.core.run import RunStatus
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
    "lanes": [
        {
            "conversation": "c_1",
            "title": "Watch CI",
            "state": "needs_you",
            "bars": [
                {
                    "run": "r_1",
                    "status": "success",
                    "started_at": "2026-03-03T06:59:00Z",
                    "ended_at": "2026-03-03T07:00:00Z",
                }
            ],
            "asked": [
                {
                    "question": "q_1",
                    "purpose": "approval",
                    "prompt": "May I run the tests again?",
                    "asked_at": "2026-03-03T06:00:00Z",
                    "closed_at": None,
                }
            ],
        }
    ],
    "lane_counts": {"needs_you": 1, "broke": 0, "done": 0, "quiet": 0},
    "worked_seconds": 60.0,
    "is_cut": False,
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


class RunBarOut(BaseModel):
    run: str
    status: RunStatus
    started_at: datetime = Field(description="It may be before `since`.")
    ended_at: datetime | None = Field(description="Null: it is in progress, or waits.")


class AwayAskedOut(BaseModel):
    question: str
    purpose: str
    prompt: str
    asked_at: datetime
    closed_at: datetime | None


class AwayLaneOut(BaseModel):
    """A conversation on a line of time."""

    conversation: str
    title: str
    state: LaneState = Field(
        description="`needs_you`: a question is open. `broke`: its last run failed. `done`: it has"
        " told something. `quiet`: it ran, and had nothing to tell."
    )
    bars: list[RunBarOut] = Field(description="Its background runs, by their start.")
    asked: list[AwayAskedOut] = Field(description="What it asked since then, oldest first.")

    @classmethod
    def of(cls, lane: away.AwayLane) -> Self:
        return cls(
            conversation=lane.conversation_id,
            title=lane.title,
            state=lane.state,
            bars=[
                RunBarOut(
                    run=bar.run_id,
                    status=bar.status,
                    started_at=bar.started_at,
                    ended_at=bar.ended_at,
                )
                for bar in lane.bars
            ],
            asked=[
                AwayAskedOut(
                    question=one.id,
                    purpose=one.purpose,
                    prompt=one.prompt,
                    asked_at=one.asked_at,
                    closed_at=one.closed_at,
                )
                for one in lane.asked
            ],
        )


class LaneCountsOut(BaseModel):
    """How many of the lanes are in each state."""

    needs_you: int
    broke: int
    done: int
    quiet: int


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
    lanes: list[AwayLaneOut] = Field(
        description="At most 50 conversations with 500 ended runs: what needs you first, then what"
        " broke, what is done, and what was quiet."
    )
    lane_counts: LaneCountsOut
    worked_seconds: float = Field(
        description="How long the runs of the lanes have worked since then, without their waits."
    )
    is_cut: bool = Field(description="There are more lanes, or older bars.")

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
            lanes=[AwayLaneOut.of(lane) for lane in summary.lanes],
            lane_counts=LaneCountsOut(
                **{
                    state.value: sum(lane.state is state for lane in summary.lanes)
                    for state in LaneState
                }
            ),
            worked_seconds=summary.worked.total_seconds(),
            is_cut=summary.is_cut,
        )


class AwaySeenBody(BaseModel):
    model_config = strict_example(until=_EXAMPLE["until"])

    until: AwareDatetime | None = Field(
        default=None, description="`until` of the summary that was seen; null: now."
    )


class AwaySinceOut(BaseModel):
    model_config = example(since=_EXAMPLE["until"])

    since: datetime = Field(description="The start of the next summary.")
