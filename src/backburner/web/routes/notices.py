"""Notices: the bell with its tray, all of them, and the browsers that show them."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from backburner.actions.channels import push
from backburner.api.http.auth import Reader
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.origins import get_origin
from backburner.api.http.pages import MAX_PAGE_SIZE, DownTo, PageQuery, Paging
from backburner.core.channels.push import why_impossible
from backburner.web.notice_list import load_notices, load_tray
from backburner.web.rendering import respond
from backburner.web.routes.lists import Shown
from backburner.web.routes.settings import find_place
from backburner.web.views.push_browser import show_browser

router = APIRouter(include_in_schema=False)


@router.get("/page/bell")
async def show_bell(deps: AppDeps, caller: Reader) -> Response:
    tray, display = await load_tray(deps, caller.user)
    return await respond("pages/bell.html", display, tray=tray)


@router.get("/page/notices")
async def show_all(
    deps: AppDeps, caller: Reader, paging: Paging, down_to: DownTo = None
) -> Response:
    """Show all notices, or, with a cursor, the next ones."""
    last = PageQuery(cursor=down_to).after(str)
    if last is not None:
        paging = PageQuery(MAX_PAGE_SIZE)
    shown, display = await load_notices(deps, caller.user, paging, down_to=last)
    name = "pages/notices.html" if paging.cursor is None else "pages/notice_rows.html"
    return await respond(name, display, list=shown)


@router.get("/page/settings/notifications")
async def show_settings(
    request: Request, deps: AppDeps, caller: Reader, display: Shown
) -> Response:
    browsers = await push.list_subscriptions(deps, caller.user)
    return await respond(
        "settings/notifications.html",
        display,
        place=find_place(caller, "notifications"),
        problem=why_impossible(get_origin(request)),
        browsers=[show_browser(one, caller, display) for one in browsers],
    )
