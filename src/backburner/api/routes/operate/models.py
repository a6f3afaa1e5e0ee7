"""`/api/models`: the models that conversations can use."""

from typing import Annotated

from fastapi import APIRouter, Query

from backburner.actions.models import own_keys, profiles
from backburner.api.http.auth import Approver, Operator, Reader
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.openapi import BODY_ERRORS, error_responses
from backburner.api.http.pages import PageOut
from backburner.api.schemas.model import ModelKeyBody, ModelOut

router = APIRouter(prefix="/api/models", tags=["models"])

ProfileQuery = Annotated[str, Query(description="The name of the profile.", max_length=1000)]


@router.get("", summary="List models")
async def list_models(deps: AppDeps, caller: Reader) -> PageOut[ModelOut]:
    """List the profiles, and which kinds of conversation use each by default."""
    models = await profiles.list_models(deps, caller.user)
    return PageOut(items=[ModelOut.of(model) for model in models], next=None)


@router.put(
    "/key",
    summary="Use your own key",
    status_code=204,
    responses=error_responses(*BODY_ERRORS, 404),
)
async def set_own_key(deps: AppDeps, caller: Approver, body: ModelKeyBody) -> None:
    """Store a key of yours for a model; only your work uses it, from its next run on.

    It is sealed, and never shown again.
    """
    await own_keys.set_key(deps, caller.user, body.profile, body.key)


@router.delete(
    "/key",
    summary="Remove your own key",
    status_code=204,
    responses=error_responses(404),
)
async def remove_own_key(profile: ProfileQuery, deps: AppDeps, caller: Approver) -> None:
    """Use the key of the settings again."""
    await own_keys.remove_key(deps, caller.user, profile)


@router.post("/reload", summary="Reload models", responses=error_responses(*BODY_ERRORS, 409))
async def reload_models(deps: AppDeps, caller: Operator) -> PageOut[ModelOut]:
    """Read the profiles from the settings again, without a restart.

    Runs in progress keep their model. If the settings are invalid, nothing changes.
    """
    items = await profiles.reload(deps, caller.user)
    return PageOut(items=[ModelOut.of(model) for model in items], next=None)
