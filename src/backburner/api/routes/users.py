"""`/api/users` and `/api/invitations`: accounts, managed by operators."""

from fastapi import APIRouter, Request, Response

from backburner.actions.accounts import users
from backburner.api.http.auth import DirectOperator, Operator
from backburner.api.http.dependencies import AppDeps, ClientAddress
from backburner.api.http.devices import Device
from backburner.api.http.openapi import BODY_ERRORS, error_responses
from backburner.api.http.origins import OwnPageOnly
from backburner.api.http.pages import PageOut, Paging, make_page
from backburner.api.http.problems import Problem
from backburner.api.routes.sign_in import show_secret_link, start_session
from backburner.api.schemas.account import (
    CreatedSessionOut,
    CreatedUserOut,
    InvitationAcceptanceBody,
    InvitationOut,
    NewInvitationBody,
    NewUserBody,
    SecretLinkOut,
    UserChangesBody,
    UserOut,
    read_link_secret,
)
from backburner.api.schemas.audit import AuditEntryOut
from backburner.core.ids import UserId

router = APIRouter(prefix="/api", tags=["users"])


@router.get("/users", summary="List users")
async def list_users(_: Operator, deps: AppDeps, paging: Paging) -> PageOut[UserOut]:
    """List all accounts."""
    page = await users.list_users(deps, paging.after(str), limit=paging.limit)
    return make_page(page, UserOut.of)


@router.post("/users", summary="Add a user", status_code=201, responses=error_responses(409))
async def add_user(
    body: NewUserBody, caller: DirectOperator, request: Request, response: Response, deps: AppDeps
) -> CreatedUserOut:
    """Add a user. Send them the link, with which they set their password."""
    user, reset = await users.add(
        deps, actor=caller.user, login=body.login, name=body.name, role=body.role
    )
    link = show_secret_link(request, response, reset, page="reset")
    return CreatedUserOut(user=UserOut.of(user), reset=link)


@router.patch("/users/{user_id}", summary="Update a user", responses=error_responses(409))
async def update_user(
    user_id: UserId, body: UserChangesBody, caller: Operator, deps: AppDeps
) -> UserOut:
    """Change a name or role, or disable or enable an account.

    Changing the role or disabling the account ends all its sessions and tokens. Disabling also
    stops its work, which stays paused when the account is enabled again.
    """
    user = await users.change(
        deps, user_id, actor=caller.user, name=body.name, role=body.role, disabled=body.disabled
    )
    return UserOut.of(user)


@router.post(
    "/users/{user_id}/reset",
    summary="Create a password reset",
    status_code=201,
    responses=error_responses(*BODY_ERRORS, 409),
)
async def create_password_reset(
    user_id: UserId, caller: DirectOperator, request: Request, response: Response, deps: AppDeps
) -> SecretLinkOut:
    """Create a link with which the user sets a new password, once."""
    reset = await users.reset_password(deps, user_id, actor=caller.user)
    return show_secret_link(request, response, reset, page="reset")


@router.get("/audit", summary="List administrative acts")
async def list_acts(_: Operator, deps: AppDeps, paging: Paging) -> PageOut[AuditEntryOut]:
    """List what was done to accounts and the database, by whom and when, newest first."""
    page = await users.list_acts(deps, paging.after(str), limit=paging.limit)
    return make_page(page, AuditEntryOut.of)


@router.post("/invitations", summary="Create an invitation", status_code=201)
async def create_invitation(
    body: NewInvitationBody,
    caller: DirectOperator,
    request: Request,
    response: Response,
    deps: AppDeps,
) -> SecretLinkOut:
    """Create a link with which one person creates an account."""
    invitation = await users.invite(deps, caller, name=body.name, role=body.role)
    return show_secret_link(request, response, invitation, page="invitation")


@router.get("/invitations", summary="List invitations")
async def list_invitations(_: Operator, deps: AppDeps, paging: Paging) -> PageOut[InvitationOut]:
    """List the unused invitations of all operators."""
    page = await users.list_invitations(deps, paging.after(str), limit=paging.limit)
    return make_page(page, InvitationOut.of)


@router.delete(
    "/invitations/{invitation_id}",
    summary="Revoke an invitation",
    status_code=204,
    responses=error_responses(*BODY_ERRORS),
)
async def revoke_invitation(invitation_id: str, caller: Operator, deps: AppDeps) -> None:
    """Revoke an invitation of any operator immediately."""
    await users.revoke_invitation(deps, invitation_id, actor=caller.user)


@router.post(
    "/invitations/accept",
    summary="Accept an invitation",
    status_code=201,
    dependencies=[OwnPageOnly],
    responses=error_responses(409, 415, 429),
)
async def accept_invitation(
    body: InvitationAcceptanceBody,
    request: Request,
    response: Response,
    deps: AppDeps,
    address: ClientAddress,
    device: Device,
) -> CreatedSessionOut:
    """Create your account, and sign in."""
    session = await users.accept(
        deps,
        read_link_secret(body.invitation),
        login=body.login,
        password=body.password.get_secret_value(),
        name=body.name,
        address=address,
        device=device,
    )
    if session is None:
        raise Problem(401, "This invitation was used or has expired.", "Ask for a new one.")
    return start_session(request, response, session)
