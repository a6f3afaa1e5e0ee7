"""Users and invitations: for those who see to accounts."""

from fastapi import APIRouter, Request, Response

from backburner.actions.accounts import users
from backburner.api.http import pages
from backburner.api.http.auth import Operator, TheDeps
from backburner.api.http.pages import USUAL, Cursor, Limit, Page
from backburner.api.http.problems import Problem
from backburner.api.routes.sign_in import Address, OurPage, let_in, once_only
from backburner.api.schemas.account import (
    Accept,
    AddedUser,
    InvitationBody,
    NewInvitation,
    NewUser,
    OnceOnly,
    SignedIn,
    UserBody,
    UserChange,
    bare,
)
from backburner.api.schemas.base import BODY, refusals
from backburner.core.ids import UserId


def build_router() -> APIRouter:
    router = APIRouter(prefix="/api", tags=["users"])
    _add_users(router)
    _add_changes(router)
    _add_invitations(router)
    _add_accepting(router)
    return router


def _add_users(router: APIRouter) -> None:
    @router.get("/users", summary="List users", responses=refusals())
    async def list_users(
        _: Operator, deps: TheDeps, limit: Limit = USUAL, cursor: Cursor = None
    ) -> Page[UserBody]:
        """List everybody who has an account."""
        found = await users.users(deps, pages.read(cursor, str), limit=limit)
        return pages.show(found, UserBody.of)

    @router.post(
        "/users",
        summary="Add a user",
        status_code=201,
        responses=refusals(*BODY, 409),
    )
    async def add_user(
        body: NewUser, _: Operator, request: Request, response: Response, deps: TheDeps
    ) -> AddedUser:
        """Add somebody; hand them the link, with which they set their password."""
        user, reset = await users.add(deps, login=body.login, name=body.name, role=body.role)
        return AddedUser(user=UserBody.of(user), reset=once_only(request, response, reset, "reset"))


def _add_changes(router: APIRouter) -> None:
    @router.patch("/users/{user}", summary="Change a user", responses=refusals(*BODY, 404, 409))
    async def change_user(user: str, body: UserChange, _: Operator, deps: TheDeps) -> UserBody:
        """Change a role or a name, shut somebody out, or let them in again.

        With a new role, and when they are shut out, all their sessions and tokens end.
        """
        changed = await users.change(
            deps, UserId(user), name=body.name, role=body.role, disabled=body.disabled
        )
        return UserBody.of(changed)

    @router.post(
        "/users/{user}/reset",
        summary="Let a user set a new password",
        status_code=201,
        responses=refusals(*BODY, 404, 409),
    )
    async def allow_reset(
        user: str, _: Operator, request: Request, response: Response, deps: TheDeps
    ) -> OnceOnly:
        """Make a link with which they set a new password, once."""
        made = await users.reset_password(deps, UserId(user))
        return once_only(request, response, made, "reset")


def _add_invitations(router: APIRouter) -> None:
    @router.post(
        "/invitations",
        summary="Invite somebody",
        status_code=201,
        responses=refusals(*BODY),
    )
    async def invite_user(
        body: NewInvitation, caller: Operator, request: Request, response: Response, deps: TheDeps
    ) -> OnceOnly:
        """Make a link with which one person makes an account."""
        made = await users.invite(deps, caller, name=body.name, role=body.role)
        return once_only(request, response, made, "invitation")

    @router.get("/invitations", summary="List invitations", responses=refusals())
    async def list_invitations(
        _: Operator, deps: TheDeps, limit: Limit = USUAL, cursor: Cursor = None
    ) -> Page[InvitationBody]:
        """List the invitations that can still be used, whoever made them."""
        found = await users.invitations(deps, pages.read(cursor, str), limit=limit)
        return pages.show(found, InvitationBody.of)

    @router.delete(
        "/invitations/{invitation}",
        summary="Take an invitation back",
        status_code=204,
        responses=refusals(*BODY, 404),
    )
    async def end_invitation(invitation: str, _: Operator, deps: TheDeps) -> None:
        """End an invitation at once, whoever made it."""
        await users.uninvite(deps, invitation)


def _add_accepting(router: APIRouter) -> None:
    @router.post(
        "/invitations/accept",
        summary="Accept an invitation",
        status_code=201,
        dependencies=[OurPage],
        responses=refusals(*BODY, 409, 415, 429),
    )
    async def accept_invitation(
        body: Accept, request: Request, response: Response, deps: TheDeps, address: Address
    ) -> SignedIn:
        """Make yourself an account, and sign in."""
        session = await users.accept(
            deps,
            bare(body.invitation),
            login=body.login,
            password=body.password.get_secret_value(),
            name=body.name,
            address=address,
        )
        if session is None:
            raise Problem(401, "This invitation was used, or is too old.", "Ask for another.")
        return let_in(request, response, session)
