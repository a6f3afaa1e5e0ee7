"""The models: which there are for everybody, and their setup for an operator in person."""

from fastapi import APIRouter
from starlette.responses import Response

from backburner.actions.models import profiles, setup
from backburner.api.http.auth import Reader
from backburner.api.http.dependencies import AppDeps
from backburner.core.accounts import Caller, Scope
from backburner.core.errors import Conflict
from backburner.web.rendering import respond
from backburner.web.routes.lists import Shown
from backburner.web.routes.settings import find_place
from backburner.web.views.account.model_setup import show_setup, show_uses

router = APIRouter(include_in_schema=False)


@router.get("/page/settings/model")
async def show_model(deps: AppDeps, caller: Reader, display: Shown) -> Response:
    """Tokens see what members see: only operators in person choose where keys are sent."""
    place, obstacle = find_place(caller, "model"), ""
    if may_set_up(caller):
        try:
            state = await setup.list_setup(deps)
        except Conflict as error:
            obstacle = error.message
        else:
            return await respond(
                "settings/model.html", display, place=place, setup=show_setup(state, display)
            )
    uses = await profiles.list_models(deps, caller.user)
    return await respond(
        "settings/models.html",
        display,
        place=place,
        models=show_uses(uses, deps.injection_proof),
        is_demo=deps.default_profile in deps.injection_proof,
        own_keys=deps.own_model_keys,
        obstacle=obstacle,
    )


def may_set_up(caller: Caller) -> bool:
    return caller.is_direct and caller.may(Scope.OPERATE)
