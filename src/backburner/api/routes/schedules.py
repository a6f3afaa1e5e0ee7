"""`/api/conversations/{id}/schedule`: when its work is done; and what a schedule would mean."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field, model_validator

from backburner.actions import schedules
from backburner.actions.origin import Origin
from backburner.actions.work import control
from backburner.api.http.auth import Reader, TheDeps, Writer
from backburner.api.http.idempotency import KeyedRoute
from backburner.api.routes.conversations import show
from backburner.api.schemas.base import BODY, Body, Id, example, refusals
from backburner.api.schemas.conversation import ConversationOut
from backburner.core.errors import BadRequest
from backburner.core.ids import ConversationId
from backburner.core.schedule.describe import describe, describe_times
from backburner.core.schedule.serialize import to_json


class When(Body):
    """In words, or in full: one of both."""

    model_config = example(when="every weekday at 9")

    when: str | None = Field(default=None, description="`in 20 minutes`, `every 30m`, and so on.")
    schedule: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _is_one_of_both(self) -> "When":
        if (self.when is None) == (self.schedule is None):
            raise BadRequest("Say when.", hint="Give either `when`, in words, or `schedule`.")
        return self

    @property
    def timing(self) -> schedules.Timing:
        return schedules.Timing(self.when, self.schedule)


class NewSchedule(When):
    model_config = example(when="every weekday at 9", what="Look whether CI on main is green.")

    what: str | None = Field(default=None, description="What is to be done; null: as before.")


class PreviewOut(BaseModel):
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


def build_router() -> APIRouter:
    router = APIRouter(prefix="/api", tags=["schedule"], route_class=KeyedRoute)
    path = "/conversations/{which}/schedule"

    @router.put(path, summary="Set its schedule", responses=refusals(404, 409, 429, *BODY))
    async def set_schedule(
        which: Id, body: NewSchedule, deps: TheDeps, caller: Writer
    ) -> ConversationOut:
        """Put it in the background, or give its work another time; shows the next three times."""
        conversation = ConversationId(which)
        await schedules.set_schedule(deps, caller.user, conversation, body.timing, what=body.what)
        return await show(deps, caller, which)

    @router.delete(path, summary="Clear its schedule", responses=refusals(404, 409))
    async def clear_schedule(which: Id, deps: TheDeps, caller: Writer) -> ConversationOut:
        """Stop its work for good; the conversation stays. To let it stand still, pause it."""
        await control.cancel(deps, Origin.by_user(caller.user), which)
        return await show(deps, caller, which)

    @router.post(
        "/schedule/preview",
        summary="See what a schedule means",
        responses=refusals(404, 409, *BODY),
    )
    async def preview_schedule(body: When, deps: TheDeps, caller: Reader) -> PreviewOut:
        """Read a schedule and say when it would run; nothing is changed."""
        seen = await schedules.preview(deps, caller.user, body.timing)
        return PreviewOut(
            schedule=to_json(seen.schedule),
            in_words=describe(seen.schedule, zone=seen.zone),
            zone=seen.zone,
            next_times=seen.times,
            next_times_in_words=describe_times(seen.times, zone=seen.zone),
        )

    return router
