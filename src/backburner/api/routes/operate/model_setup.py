"""`/api/operate/models`: the setup of models, for an operator in person."""

from typing import Annotated

from fastapi import APIRouter, Path

from backburner.actions.models import setup
from backburner.api.http.auth import ModelOperator
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.openapi import error_responses
from backburner.api.schemas.operate.model_setup import (
    ModelRolesBody,
    ModelSetupOut,
    ModelTestOut,
    OfferedModelsOut,
    SavedModelBody,
    TriedModelBody,
)

router = APIRouter(prefix="/api/operate/models", tags=["operate"])

ProfilePath = Annotated[str, Path(description="The name of the profile.", max_length=1000)]


@router.get("", summary="List models with their setup", responses=error_responses(409))
async def list_model_setup(deps: AppDeps, _: ModelOperator) -> ModelSetupOut:
    """List all profiles: kind, address, whether there is a key, and whether the model works."""
    return ModelSetupOut.of(await setup.list_setup(deps))


@router.patch("", summary="Choose the default models", responses=error_responses(409))
async def choose_models(
    deps: AppDeps, caller: ModelOperator, body: ModelRolesBody
) -> ModelSetupOut:
    """Choose the models of chats and of background work, without a restart."""
    return ModelSetupOut.of(await setup.choose(deps, caller.user, body.to_roles()))


@router.post("/test", summary="Test a model", responses=error_responses(404, 409))
async def try_model(deps: AppDeps, _: ModelOperator, body: TriedModelBody) -> ModelTestOut:
    """Send a model one short request, which may take up to a minute. Nothing is stored."""
    return ModelTestOut.of(await setup.try_entry(deps, body.to_entry(), body.profile))


@router.post("/offered", summary="List the models of a server", responses=error_responses(404, 409))
async def list_offered_models(
    deps: AppDeps, _: ModelOperator, body: TriedModelBody
) -> OfferedModelsOut:
    """List what a server offers, to choose from. Nothing is stored."""
    return OfferedModelsOut.of(await setup.list_offered(deps, body.to_entry(), body.profile))


@router.put("/{profile}", summary="Set up a model", responses=error_responses(409))
async def save_model(
    profile: ProfilePath, deps: AppDeps, caller: ModelOperator, body: SavedModelBody
) -> ModelSetupOut:
    """Store a model in the data folder of this server, and use it without a restart.

    It is not tested. Its key is never shown again. An error changes nothing.
    """
    state = await setup.save(deps, caller.user, profile, body.to_entry(), body.use_for)
    return ModelSetupOut.of(state)


@router.delete(
    "/{profile}", summary="Remove a model", status_code=204, responses=error_responses(409)
)
async def remove_model(profile: ProfilePath, deps: AppDeps, caller: ModelOperator) -> None:
    """Remove a model and its key. Chats must have another one."""
    await setup.remove(deps, caller.user, profile)
