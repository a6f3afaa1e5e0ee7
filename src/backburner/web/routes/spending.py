"""The page of spending, by day and by conversation."""

from fastapi import APIRouter
from starlette.responses import Response

from backburner.actions.accounts import profile
from backburner.api.http.auth import Reader
from backburner.api.http.dependencies import AppDeps
from backburner.web.rendering import respond
from backburner.web.routes.lists import Shown
from backburner.web.views.spending import show_spending

router = APIRouter(include_in_schema=False)


@router.get("/page/spending")
async def show_spending_page(deps: AppDeps, caller: Reader, display: Shown) -> Response:
    statement = await profile.spend_statement(deps, caller.user)
    days = profile.last_days(display.now, statement.zone)
    shown = show_spending(statement, days, display)
    return await respond("pages/spending.html", display, spending=shown)
