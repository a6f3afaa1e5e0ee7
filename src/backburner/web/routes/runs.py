"""Runs: the page of one, its tool calls, and lists of what runs now and what ran last."""

from datetime import datetime
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import AfterValidator
from starlette.responses import Response

from backburner.actions.browse import Page
from backburner.actions.deps import Deps
from backburner.actions.work import run_pages
from backburner.actions.work.run_pages import ListedRun
from backburner.api.http.auth import Reader
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.pages import MAX_PAGE_SIZE, DownTo, PageQuery, Paging, write_cursor
from backburner.api.schemas.base import RunIdPath, check_id
from backburner.core.accounts import Caller
from backburner.core.ids import CallId
from backburner.core.run import RunStatus
from backburner.web.markdown import RenderedMessages
from backburner.web.rendering import respond
from backburner.web.routes.lists import Shown
from backburner.web.views.runs.call import show_details
from backburner.web.views.runs.page import show_run
from backburner.web.views.runs.rows import show_lines
from backburner.web.views.runs.waterfall import show_fold, show_waterfall

#: Of those that run or wait; there are hardly ever as many.
MAX_ACTIVE = 100

router = APIRouter(include_in_schema=False)
_rendered = RenderedMessages()

CallIdPath = Annotated[CallId, AfterValidator(check_id)]
Which = Annotated[Literal["all", "failed"], Query()]


@router.get("/page/r/{run_id}")
async def show_run_page(
    run_id: RunIdPath, deps: AppDeps, caller: Reader, display: Shown
) -> Response:
    page = await run_pages.load_page(deps, caller.user, run_id, with_results=False)
    return await respond("pages/run.html", display, run=partial(show_run, page, display, _rendered))


@router.get("/page/r/{run_id}/steps/{number}")
async def show_steps(
    run_id: RunIdPath,
    number: int,
    deps: AppDeps,
    caller: Reader,
    display: Shown,
) -> Response:
    """Show the steps of a fold."""
    page = await run_pages.load_page(deps, caller.user, run_id, with_results=False)
    return await respond(
        "pages/steps.html",
        display,
        run_id=run_id,
        steps=partial(show_fold, page, max(number, 0), display.now),
        waterfall=partial(show_waterfall, page, display.now),
    )


@router.get("/page/r/{run_id}/call/{call_id}")
async def show_call(
    run_id: RunIdPath,
    call_id: CallIdPath,
    deps: AppDeps,
    caller: Reader,
    display: Shown,
    *,
    whole: bool = False,
    in_row: bool = False,
) -> Response:
    """Show the arguments and the result of a tool call; `in_row`: in the row of a table."""
    call = await run_pages.load_call(deps, caller.user, run_id, call_id)
    details = partial(show_details, call, whole=whole)
    return await respond("pages/call.html", display, call=details, run_id=run_id, in_row=in_row)


@router.get("/page/running")
async def show_running(
    deps: AppDeps,
    caller: Reader,
    display: Shown,
    which: Which = "all",
    down_to: DownTo = None,
) -> Response:
    now = await run_pages.listed(deps, caller.user, RunStatus.RUNNING, None, limit=MAX_ACTIVE)
    queued = await run_pages.listed(deps, caller.user, RunStatus.QUEUED, None, limit=MAX_ACTIVE)
    size = PageQuery() if down_to is None else PageQuery(MAX_PAGE_SIZE)
    recent = await _load_recent(deps, caller, size, which, down_to=down_to)
    return await respond(
        "pages/running.html",
        display,
        now=show_lines(now.items, display),
        queued=show_lines(queued.items, display),
        recent=show_lines(recent.items, display),
        next_page=write_cursor(recent.next_key),
        which=which,
    )


@router.get("/page/running/recent")
async def show_recent(
    deps: AppDeps, caller: Reader, display: Shown, paging: Paging, which: Which = "all"
) -> Response:
    """Show the next of the runs that have ended."""
    page = await _load_recent(deps, caller, paging, which)
    return await respond(
        "pages/recent.html",
        display,
        recent=show_lines(page.items, display),
        next_page=write_cursor(page.next_key),
        which=which,
    )


async def _load_recent(
    deps: Deps, caller: Caller, paging: PageQuery, which: str, *, down_to: str | None = None
) -> Page[ListedRun]:
    return await run_pages.listed(
        deps,
        caller.user,
        RunStatus.FAILURE if which == "failed" else None,
        paging.after(datetime, str),
        limit=paging.limit,
        down_to=PageQuery(cursor=down_to).after(datetime, str),
    )
