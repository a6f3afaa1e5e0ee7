"""The calendar: what will run."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, Field

from backburner.actions.work import upcoming
from backburner.actions.work.upcoming import PlanState
from backburner.api.schemas.base import example
from backburner.core.conversation import Kind
from backburner.core.schedule.describe import describe, describe_times

_WORK: dict[str, Any] = {
    "conversation_id": "c_0123456789abcdefghjkmnpqrs",
    "title": "Watch CI",
    "kind": "task",
    "state": "scheduled",
    "schedule_in_words": "every 30 minutes",
}


class UpcomingWorkOut(BaseModel):
    """Work with a schedule."""

    conversation_id: str
    title: str
    kind: Kind
    state: PlanState = Field(
        description="`needs_you`: its times are skipped until you answer. `paused`: its times are"
        " those if it were resumed now."
    )
    schedule_in_words: str

    @classmethod
    def of_work(cls, work: upcoming.UpcomingWork, *, zone: str, **more: Any) -> Self:
        conversation = work.conversation
        return cls(
            conversation_id=conversation.id,
            title=conversation.title,
            kind=conversation.kind,
            state=work.state,
            schedule_in_words=describe(work.schedule, zone=zone),
            **more,
        )


class UpcomingEntryOut(UpcomingWorkOut):
    """A time at which work will run, or several of them that are folded."""

    at: datetime = Field(description="The first time.")
    at_in_words: str
    until: datetime = Field(description="The last time; of one time, the same.")
    count: int
    or_more: bool = Field(description="`count` is a lower bound.")
    every_seconds: float | None = Field(
        description="The usual time between two of them; null: it is one time."
    )
    is_due: bool = Field(description="Its time has come, and it waits to be taken up.")

    @classmethod
    def of(cls, entry: upcoming.UpcomingEntry, *, zone: str) -> Self:
        times = entry.times
        (words,) = describe_times([times.first_at], zone=zone)
        return cls.of_work(
            entry.work,
            zone=zone,
            at=times.first_at,
            at_in_words=words,
            until=times.last_at,
            count=times.count,
            or_more=times.or_more,
            every_seconds=None if times.every is None else times.every.total_seconds(),
            is_due=entry.is_due,
        )


class UpcomingOut(BaseModel):
    """The runs of a period that are to come."""

    model_config = example(
        start="2026-11-16T12:00:00Z",
        end="2026-11-23T12:00:00Z",
        zone="Europe/Berlin",
        all_paused=False,
        entries=[
            {
                **_WORK,
                "at": "2026-11-16T12:00:00Z",
                "at_in_words": "Mon 16 Nov 2026, 13:00 CET",
                "until": "2026-11-16T22:30:00Z",
                "count": 22,
                "or_more": False,
                "every_seconds": 1800.0,
                "is_due": False,
            }
        ],
        untimed=[{**_WORK, "schedule_in_words": "after another conversation completes"}],
        is_cut=False,
    )

    start: datetime
    end: datetime
    zone: str = Field(description="Of the words, and of the days by which times are folded.")
    all_paused: bool = Field(description="All background work is paused, so that nothing runs.")
    entries: Sequence[UpcomingEntryOut] = Field(description="By the first of their times.")
    untimed: Sequence[UpcomingWorkOut] = Field(
        description="Work that runs after other work, or whenever there is an event."
    )
    is_cut: bool = Field(description="There is more: ask for a shorter period.")

    @classmethod
    def of(cls, found: upcoming.Upcoming) -> Self:
        return cls(
            start=found.start,
            end=found.end,
            zone=found.zone,
            all_paused=found.all_paused,
            entries=[UpcomingEntryOut.of(entry, zone=found.zone) for entry in found.entries],
            untimed=[UpcomingWorkOut.of_work(work, zone=found.zone) for work in found.untimed],
            is_cut=found.is_cut,
        )
