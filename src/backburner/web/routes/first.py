"""New conversations: what can be said, and, while there is no model, how to set one up."""

from fastapi import APIRouter
from starlette.responses import Response

from backburner.actions.accounts import page_facts
from backburner.actions.deps import Deps
from backburner.api.http.auth import Reader
from backburner.api.http.dependencies import AppDeps
from backburner.core.accounts import Caller, Scope
from backburner.web.display import Display
from backburner.web.rendering import respond
from backburner.web.routes.chat import list_commands
from backburner.web.routes.lists import Shown, show_navigation, show_user
from backburner.web.routes.model_setup import may_set_up

router = APIRouter(include_in_schema=False)


@router.get("/page/")
async def show_start(deps: AppDeps, caller: Reader) -> Response:
    """Show the list on a phone once there is something in it, and what can be said elsewhere."""
    return await _show_new(deps, caller, is_list=True)


@router.get("/page/new")
async def show_new(deps: AppDeps, caller: Reader) -> Response:
    return await _show_new(deps, caller, is_list=False)


@router.get("/page/more")
async def show_more(deps: AppDeps, caller: Reader) -> Response:
    """Show the pages that the tab bar of a phone has no place for."""
    facts = await page_facts.load_facts(deps, caller.user)
    display = Display(facts.now, facts.profile.zone)
    return await respond(
        "pages/more.html",
        display,
        nav=show_navigation(facts),
        who=show_user(facts),
        is_operator=caller.may(Scope.OPERATE),
    )


@router.get("/page/keys")
async def show_keys(display: Shown) -> Response:
    return await respond("pages/keys.html", display)


async def _show_new(deps: Deps, caller: Caller, *, is_list: bool) -> Response:
    facts = await page_facts.load_facts(deps, caller.user)
    model = "" if facts.is_demo else deps.default_profile
    return await respond(
        "pages/new.html",
        Display(facts.now, facts.profile.zone),
        at="list" if is_list and facts.has_conversations else "new",
        zone=facts.profile.zone,
        is_demo=facts.is_demo,
        model=model,
        commands=list_commands(None),
        may_set_up=may_set_up(caller),
    )
