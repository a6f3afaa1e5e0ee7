"""`/api/me` and `/api/erase`: the caller's own settings and data."""

from fastapi import APIRouter

from backburner.actions import personal_data
from backburner.actions.accounts import consent, profile, users
from backburner.actions.accounts.profile import SettingsChanges
from backburner.api.http.auth import Approver, Reader, Writer
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.openapi import error_responses
from backburner.api.http.pages import PageOut
from backburner.api.schemas.audit import AuditEntryOut
from backburner.api.schemas.me import ErasureBody, MeChangesBody, MeOut
from backburner.core.accounts import Caller, CredentialKind, ZoneSource

#: Acts on one account that are shown.
MAX_ACTS = 50

router = APIRouter(prefix="/api", tags=["me"])


@router.get("/me", summary="Get your settings")
async def get_me(deps: AppDeps, caller: Reader) -> MeOut:
    return MeOut.of(await profile.load_settings(deps, caller.user))


@router.get("/me/audit", summary="List what operators did to your account")
async def list_acts_on_me(deps: AppDeps, caller: Reader) -> PageOut[AuditEntryOut]:
    """List the last acts of others on your account, such as a reset of its password."""
    entries = await users.list_acts_on(deps, caller.user, limit=MAX_ACTS)
    return PageOut(items=[AuditEntryOut.of(entry) for entry in entries], next=None)


@router.put("/me", summary="Update your settings", responses=error_responses(409))
async def update_me(body: MeChangesBody, deps: AppDeps, caller: Writer) -> MeOut:
    """Change your name, time zone or allowances, or pause background work or discovery.

    Changes of allowances and discovery need the scope `approve`.
    """
    if body.allowances is not None or body.discovery is not None:
        consent.check_scope(caller)
    changes = SettingsChanges(
        name=body.name,
        zone=body.zone,
        found_zone=_found_zone(body, caller),
        paused=body.paused,
        discovers=body.project(caller.work_uses) or body.discovery,
        limits=body.allowances or {},
    )
    settings = await profile.change_settings(deps, caller.user, changes)
    return MeOut.of(settings)


def _found_zone(body: MeChangesBody, caller: Caller) -> tuple[str, ZoneSource] | None:
    if body.found_zone is None:
        return None
    is_browser = caller.kind is CredentialKind.SESSION
    return body.found_zone, ZoneSource.BROWSER if is_browser else ZoneSource.TERMINAL


@router.post("/erase", summary="Erase your data", status_code=204, responses=error_responses(409))
async def erase_data(caller: Approver, deps: AppDeps, body: ErasureBody) -> None:
    """Stop all runs, then delete conversations, memories, files, credentials and the account."""
    await personal_data.erase(deps, caller.user, body.confirm)
