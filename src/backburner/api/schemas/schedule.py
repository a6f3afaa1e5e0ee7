"""Schedules and their previews."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, Field, model_validator

from backburner.actions import schedules
from backburner.api.schemas.base import RequestBody, example
from backburner.core.errors import BadRequest
from backburner.core.schedule.describe import describe, describe_times
from backburner.core.schedule.serialize import to_json


class ScheduleTimesBody(RequestBody):
    """Either a phrase or a schedule."""

    model_config = example(when="every weekday at 9")

    when: str | None = Field(default=None, description="A phrase such as `every 30m`.")
    schedule: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _check_choice(self) -> Self:
        if (self.when is None) == (self.schedule is None):
            raise BadRequest("Either `when` or `schedule` is required.", hint="Send one of them.")
        return self

    @property
    def timing(self) -> schedules.Timing:
        return schedules.Timing(self.when, self.schedule)


class NewScheduleBody(ScheduleTimesBody):
    model_config = example(when="every weekday at 9", what="Check whether CI on main is green.")

    what: str | None = Field(default=None, description="The prompt of each run; null: as before.")


class SchedulePreviewOut(BaseModel):
    model_config = example(
        schedule={"type": "interval", "every": 1800, "anchor": "2026-11-16T12:00:00+00:00"},
        in_words="every 30 minutes",
        zone="Europe/Berlin",
        next_times=["2026-11-16T12:00:00Z", "2026-11-16T12:30:00Z", "2026-11-16T13:00:00Z"],
        next_times_in_words=["Mon 16 Nov 2026, 13:00 CET"],
    )

    schedule: Mapping[str, Any]
    in_words: str
    zone: str
    next_times: Sequence[datetime]
    next_times_in_words: Sequence[str]

    @classmethod
    def of(cls, preview: schedules.SchedulePreview) -> Self:
        return cls(
            schedule=to_json(preview.schedule),
            in_words=describe(preview.schedule, zone=preview.zone),
            zone=preview.zone,
            next_times=preview.times,
            next_times_in_words=describe_times(preview.times, zone=preview.zone),
        )
