"""Signing in and out, and passwords."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from backburner.actions.accounts import credentials
from backburner.actions.accounts import sign_in as entry
from backburner.actions.accounts.credentials import IssuedCredential
from backburner.api.http.auth import COOKIE, Anybody, TheDeps, Writer
from backburner.api.http.origins import check_page, is_encrypted, origin_of
from backburner.api.http.problems import Problem
from backburner.api.schemas.account import (
    ChangePassword,
    OnceOnly,
    RedeemReset,
    SignedIn,
    SignIn,
    bare,
)
from backburner.api.schemas.base import BODY, refusals

#: The session ends by itself long before; the cookie just has to outlive it.
COOKIE_LIVES = 400 * 24 * 3600

#: For whatever signs a browser in: no page of somebody else may do it, with an account of theirs.
OurPage = Depends(check_page)


def address_of(request: Request) -> str:
    return request.client.host if request.client else ""


Address = Annotated[str, Depends(address_of)]


def let_in(request: Request, response: Response, session: IssuedCredential) -> SignedIn:
    """Hand a browser its session."""
    response.set_cookie(
        COOKIE,
        session.secret,
        max_age=COOKIE_LIVES,
        path="/",
        secure=is_encrypted(request),
        httponly=True,
        samesite="lax",
    )
    response.headers["cache-control"] = "no-store"
    return SignedIn(id=session.id, expires_at=session.expires_at)


def once_only(request: Request, response: Response, made: IssuedCredential, page: str) -> OnceOnly:
    """Show a secret; in its link it is behind the #, which browsers keep to themselves."""
    response.headers["cache-control"] = "no-store"
    link = f"{origin_of(request)}/{page}#{made.secret}"
    return OnceOnly(secret=made.secret, link=link, expires_at=made.expires_at)


def build_router() -> APIRouter:
    router = APIRouter(prefix="/api", tags=["signing in"])
    _add_signing_in(router)
    _add_signing_out(router)
    _add_passwords(router)
    return router


def _add_signing_in(router: APIRouter) -> None:
    @router.post(
        "/sign-in",
        summary="Sign in",
        dependencies=[OurPage],
        responses=refusals(*BODY, 415, 429),
    )
    async def sign_in(
        body: SignIn, request: Request, response: Response, deps: TheDeps, address: Address
    ) -> SignedIn:
        """Begin a session with a link or a password; the one the browser had ends."""
        before = request.cookies.get(COOKIE, "")
        if body.link is not None:
            session = await entry.sign_in_by_link(
                deps, bare(body.link), address=address, before=before
            )
            wrong = ("This link was used, or is too old.", "`backburner user link` makes another.")
        else:
            password = body.password.get_secret_value() if body.password else ""
            session = await entry.sign_in(
                deps, body.login or "", password, address=address, before=before
            )
            wrong = ("The login or the password is wrong.", "")
        if session is None:
            raise Problem(401, *wrong)
        return let_in(request, response, session)

    @router.post("/sign-in-links", summary="Make a sign-in link", responses=refusals(*BODY))
    async def make_sign_in_link(
        caller: Anybody, request: Request, response: Response, deps: TheDeps
    ) -> OnceOnly:
        """Make a link that signs you in once, within a few minutes."""
        made = await entry.make_own_link(deps, caller)
        return once_only(request, response, made, "sign-in")


def _add_signing_out(router: APIRouter) -> None:
    @router.post("/sign-out", summary="Sign out", status_code=204, responses=refusals(*BODY))
    async def sign_out(caller: Anybody, response: Response, deps: TheDeps) -> None:
        """End the session or the token that this request comes with."""
        await credentials.end_credential(deps, caller.user, caller.credential, caller.kind)
        response.delete_cookie(COOKIE, path="/", httponly=True, samesite="lax")

    @router.post(
        "/sign-out-everywhere",
        summary="Sign out everywhere",
        status_code=204,
        responses=refusals(*BODY),
    )
    async def sign_out_everywhere(caller: Writer, response: Response, deps: TheDeps) -> None:
        """End every session and token you have, and links that were not used."""
        await credentials.sign_out_everywhere(deps, caller.user)
        response.delete_cookie(COOKIE, path="/", httponly=True, samesite="lax")


def _add_passwords(router: APIRouter) -> None:
    @router.put(
        "/password",
        summary="Set your password",
        responses=refusals(*BODY, 409, 429),
    )
    async def change_password(
        body: ChangePassword,
        caller: Anybody,
        request: Request,
        response: Response,
        deps: TheDeps,
        address: Address,
    ) -> SignedIn:
        """Set a password. Every session and token ends; you get a new session."""
        session = await entry.change_password(
            deps,
            caller,
            login=body.login,
            current=body.current.get_secret_value(),
            password=body.password.get_secret_value(),
            address=address,
        )
        return let_in(request, response, session)

    @router.post(
        "/password/reset",
        summary="Set a new password with a reset",
        dependencies=[OurPage],
        responses=refusals(*BODY, 415, 429),
    )
    async def reset_password(
        body: RedeemReset, request: Request, response: Response, deps: TheDeps, address: Address
    ) -> SignedIn:
        """Use what an operator gave you. Every session and token ends; you get a new session."""
        password = body.password.get_secret_value()
        session = await entry.redeem_reset(deps, bare(body.reset), password, address=address)
        if session is None:
            raise Problem(401, "This reset was used, or is too old.", "Ask for another.")
        return let_in(request, response, session)
