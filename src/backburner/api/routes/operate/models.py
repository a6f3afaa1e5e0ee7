"""`/api/models`: the models that conversations can use."""

from fastapi import APIRouter

from backburner.actions.models import profiles
from backburner.api.http.auth import Operator, Reader
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.openapi import BODY_ERRORS, error_responses
from backburner.api.http.pages import PageOut
from backburner.api.schemas.model import ModelOut

router = APIRouter(prefix="/api/models", tags=["models"])


@router.get("", summary="List models")
async def list_models(deps: AppDeps, _: Reader) -> PageOut[ModelOut]:
    """List the profiles, and which kinds of conversation use each by default."""
    return PageOut(items=[ModelOut.of(model) for model in profiles.list_models(deps)], next=None)


@router.post("/reload", summary="Reload models", responses=error_responses(*BODY_ERRORS, 409))
async def reload_models(deps: AppDeps, caller: Operator) -> PageOut[ModelOut]:
    """Read the profiles from the settings again, without a restart.

    Runs in progress keep their model. If the settings are invalid, nothing changes.
    """
    items = await profiles.reload(deps, caller.user)
    return PageOut(items=[ModelOut.of(model) for model in items], next=None)
