"""While you were away: the page, and the line in a chat that offers it."""

from datetime import datetime, timedelta
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import AwareDatetime
from starlette.responses import Response

from backburner.actions import away, browse
from backburner.api.http.auth import Reader
from backburner.api.http.dependencies import AppDeps
from backburner.web.rendering import respond
from backburner.web.routes.lists import Shown
from backburner.web.routes.needs_you import MAX_CARDS
from backburner.web.views.away import offer_away, show_away
from backburner.web.views.question import show_question

_PERIODS = {"day": timedelta(days=1), "week": timedelta(days=7)}

router = APIRouter(include_in_schema=False)


@router.get("/page/away")
async def show_away_page(
    deps: AppDeps,
    caller: Reader,
    display: Shown,
    period: Annotated[Literal["day", "week"] | None, Query()] = None,
    since: Annotated[AwareDatetime | None, Query()] = None,
) -> Response:
    """Show what happened since the user last looked, since a time, or in a period."""
    start = since if period is None else display.now - _PERIODS[period]
    summary = await away.summarise(deps, caller.user, since=start)
    questions = await browse.questions(deps, caller.user, None, limit=MAX_CARDS)
    cards = [
        show_question(row.question, row.conversation_id, row.title, display)
        for row in questions.items
    ]
    return await respond(
        "pages/away.html",
        display,
        away=show_away(summary, display),
        cards=cards,
        period=period or "",
        is_cut=summary.is_cut,
    )


@router.get("/page/away/offer")
async def show_offer(
    deps: AppDeps,
    caller: Reader,
    display: Shown,
    since: Annotated[AwareDatetime, Query()],
) -> Response:
    """Offer the page in a line, if anything happened since a time that the user has not seen."""
    seen = await away.load_since(deps, caller.user)
    start: datetime = min(max(since, seen), display.now)
    summary = await away.summarise(deps, caller.user, since=start)
    return await respond("pages/away_offer.html", display, offer=offer_away(summary, display))
