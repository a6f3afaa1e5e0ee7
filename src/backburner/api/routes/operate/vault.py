"""`/api/vault`: the vault and its master keys."""

from fastapi import APIRouter

from backburner.actions.operate import vault
from backburner.api.http.auth import Operator
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.openapi import BODY_ERRORS, error_responses
from backburner.api.schemas.operate.vault import ResetOut, RotateBody, RotationOut, VaultOut

router = APIRouter(prefix="/api/vault", tags=["operate"])


@router.get("", summary="Show the vault")
async def show_vault(deps: AppDeps, _: Operator) -> VaultOut:
    """Tell whether this server can open the secrets in the database."""
    return VaultOut.of(await vault.read_status(deps))


@router.post(
    "/rotate", summary="Rotate the master key", responses=error_responses(*BODY_ERRORS, 409)
)
async def rotate_master_key(deps: AppDeps, caller: Operator, body: RotateBody) -> RotationOut:
    """Wrap all keys by a new master key, and delete the former one from its file.

    A rotation that was interrupted is continued. With PostgreSQL, the first call only makes the
    new master key: the other machines need it before the second one.
    """
    return RotationOut.of(await vault.rotate(deps, caller.user, keep_old=body.keep_old))


@router.post("/reset", summary="Delete locked secrets", responses=error_responses(*BODY_ERRORS))
async def reset_vault(deps: AppDeps, caller: Operator) -> ResetOut:
    """Delete the secrets whose master key is not here, so that users can enter them again."""
    return ResetOut(forgotten=await vault.forget_locked(deps, caller.user))
