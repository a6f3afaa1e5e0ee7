"""The calendar: everything that will run, seven days at a time."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from backburner.actions.work import upcoming
from backburner.api.http.auth import Reader
from backburner.api.http.dependencies import AppDeps
from backburner.web.rendering import respond
from backburner.web.routes.lists import Shown
from backburner.web.views.work.calendar import MAX_WEEKS, find_period, show_calendar

router = APIRouter(include_in_schema=False)


@router.get("/page/calendar")
async def show_week(
    deps: AppDeps,
    caller: Reader,
    display: Shown,
    *,
    week: Annotated[int, Query(ge=0, le=MAX_WEEKS)] = 0,
    paused: bool = False,
) -> Response:
    start, end = find_period(display, week)
    found = await upcoming.upcoming(deps, caller.user, start=start, end=end, with_paused=paused)
    calendar = show_calendar(found, display, week=week)
    return await respond("pages/calendar.html", display, calendar=calendar, with_paused=paused)
