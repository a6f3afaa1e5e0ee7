"""`/api/upcoming`: the calendar of what will run."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AwareDatetime

from backburner.actions.work import upcoming
from backburner.api.http.auth import Reader
from backburner.api.http.dependencies import AppDeps
from backburner.api.schemas.views.upcoming import UpcomingOut

router = APIRouter(prefix="/api/upcoming", tags=["schedules"])

Start = Annotated[AwareDatetime | None, Query(alias="from", description="Default: now.")]
End = Annotated[
    AwareDatetime | None,
    Query(alias="to", description="At most 31 days later."),
]
Days = Annotated[int, Query(ge=1, le=31, description="How many days, if there is no `to`.")]
WithPaused = Annotated[bool, Query(description="Include work that is paused.")]


@router.get("", summary="List what will run")
async def list_upcoming(
    deps: AppDeps,
    caller: Reader,
    *,
    start: Start = None,
    end: End = None,
    days: Days = 7,
    paused: WithPaused = False,
) -> UpcomingOut:
    """List the times at which work will run, in your time zone.

    More than six times of one conversation on one day are folded into one entry, and more than 200
    in the period into one for all of it.
    """
    found = await upcoming.upcoming(
        deps, caller.user, start=start, end=end, days=days, with_paused=paused
    )
    return UpcomingOut.of(found)
