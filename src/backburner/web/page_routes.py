"""All routes of the page; `app` adds them to the API, whose sign-in and limits they use."""

from fastapi import APIRouter, Depends, FastAPI, Request

from backburner.actions.accounts import page_facts
from backburner.api.http.auth import AnyCaller
from backburner.api.http.dependencies import AppDeps
from backburner.web import pages
from backburner.web.drafts import Drafts
from backburner.web.rendering import CHANGE_HEADER
from backburner.web.routes import (
    away,
    calendar,
    chat,
    connections,
    first,
    folders,
    jobs,
    lists,
    model_setup,
    needs_you,
    notices,
    operate,
    runs,
    schedule,
    settings,
    spending,
    stream,
    tasks,
)

ROUTERS = (
    *(lists.router, first.router, chat.router, needs_you.router, notices.router, stream.router),
    *(tasks.router, schedule.router, calendar.router, jobs.router),
    *(runs.router, spending.router, away.router),
    *(connections.router, folders.router),
    *(settings.router, model_setup.router, operate.router),
)


#: Sent by a page that does not follow changes yet.
FIRST_HEADER = "x-backburner-first"


async def note_newest_change(request: Request, deps: AppDeps, caller: AnyCaller) -> None:
    """Note which change was the newest before the fragment is read, for the page to go on from."""
    if FIRST_HEADER in request.headers:
        number = await page_facts.load_newest_change(deps, caller.user)
        request.state.fragment_headers = {CHANGE_HEADER: str(number)}


def add_pages(api: FastAPI) -> None:
    fragments = APIRouter(include_in_schema=False, dependencies=[Depends(note_newest_change)])
    for router in ROUTERS:
        fragments.include_router(router)
    api.include_router(fragments)
    api.state.page_drafts = Drafts()
    api.routes.extend(pages.build_routes(api.state.deps.command))
