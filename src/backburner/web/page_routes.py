"""All routes of the page; `app` adds them to the API, whose sign-in and limits they use."""

from fastapi import APIRouter, Depends, FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from backburner.actions.accounts import page_facts
from backburner.api.http.auth import AnyCaller
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.problems import handle_http_exception
from backburner.web import pages
from backburner.web.drafts import Drafts
from backburner.web.rendering import CHANGE_HEADER, Fragment
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
    shell,
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


#: What is never opened as a page.
OF_SCRIPTS = ("/api/", "/page/", "/assets/")
#: Sent by a page that does not follow changes yet.
FIRST_HEADER = "x-backburner-first"


async def note_newest_change(request: Request, deps: AppDeps, caller: AnyCaller) -> None:
    """Note which change was the newest before the fragment is read, for the page to go on from."""
    if FIRST_HEADER in request.headers:
        number = await page_facts.load_newest_change(deps, caller.user)
        request.state.fragment_headers = {CHANGE_HEADER: str(number)}


async def show_missing(request: Request, error: HTTPException) -> Response:
    """Show people who come to an unknown address the page, which says that nothing is there."""
    is_for_people = "text/html" in request.headers.get("accept", "")
    if is_for_people and not request.url.path.startswith(OF_SCRIPTS):
        return Fragment(shell.render_shell(), status_code=404, headers=shell.HEADERS)
    return await handle_http_exception(request, error)


def add_pages(api: FastAPI) -> None:
    fragments = APIRouter(include_in_schema=False, dependencies=[Depends(note_newest_change)])
    for router in ROUTERS:
        fragments.include_router(router)
    api.include_router(fragments)
    api.add_exception_handler(404, show_missing)  # type: ignore[arg-type]
    api.state.page_drafts = Drafts()
    api.routes.extend(pages.build_routes(api.state.deps.command))
