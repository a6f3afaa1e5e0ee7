"""Schedules and their previews."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, model_validator

from backburner.actions import schedules
from backburner.api.schemas.base import RequestBody, example
from backburner.core.errors import BadRequest
from backburner.core.schedule import CatchUp
from backburner.core.schedule.describe import describe, describe_times
from backburner.core.schedule.serialize import to_json

CatchUpChoice = Annotated[
    CatchUp | None,
    Field(
        description="What becomes of times that it misses, while the machine is off for example:"
        " `once` runs once for all of them, `skip` waits for the next one. Null: as before, or"
        " `once`."
    ),
]


class ScheduleTimesBody(RequestBody):
    """Either a phrase or a schedule."""

    model_config = example(when="every weekday at 9")

    when: str | None = Field(default=None, description="A phrase such as `every 30m`.")
    schedule: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _check_choice(self) -> Self:
        if (self.when is None) == (self.schedule is None) and not self._may_be_left_out:
            raise BadRequest("Either `when` or `schedule` is required.", hint="Send one of them.")
        return self

    @property
    def _may_be_left_out(self) -> bool:
        return False

    @property
    def timing(self) -> schedules.Timing:
        return schedules.Timing(self.when, self.schedule)


class NewScheduleBody(ScheduleTimesBody):
    """Either a phrase or a schedule; `catch_up` alone keeps the times."""

    model_config = example(when="every weekday at 9", what="Check whether CI on main is green.")

    what: str | None = Field(default=None, description="The prompt of each run; null: as before.")
    catch_up: CatchUpChoice = None

    @property
    def _may_be_left_out(self) -> bool:
        return self.catch_up is not None and self.when is None

    @property
    def timing(self) -> schedules.Timing:
        return schedules.Timing(self.when, self.schedule, catch_up=self.catch_up)


class SchedulePreviewOut(BaseModel):
    model_config = example(
        schedule={"type": "interval", "every": 1800, "anchor": "2026-11-16T12:00:00+00:00"},
        in_words="every 30 minutes",
        zone="Europe/Berlin",
        next_times=["2026-11-16T12:00:00Z", "2026-11-16T12:30:00Z", "2026-11-16T13:00:00Z"],
        next_times_in_words=["Mon 16 Nov 2026, 13:00 CET"],
        warnings=[],
    )

    schedule: Mapping[str, Any]
    in_words: str
    zone: str
    next_times: Sequence[datetime]
    next_times_in_words: Sequence[str]
    warnings: Sequence[str] = Field(
        description="What may not be meant: it runs very often, or only in more than a year."
    )

    @classmethod
    def of(cls, preview: schedules.SchedulePreview) -> Self:
        return cls(
            schedule=to_json(preview.schedule),
            in_words=describe(preview.schedule, zone=preview.zone),
            zone=preview.zone,
            next_times=preview.times,
            next_times_in_words=describe_times(preview.times, zone=preview.zone),
            warnings=preview.warnings,
        )
