"""`/api/sign-in`, `/api/sign-out` and `/api/password`."""

from fastapi import APIRouter, Request, Response

from backburner.actions.accounts import credentials
from backburner.actions.accounts import sign_in as entry
from backburner.actions.accounts.credentials import IssuedCredential
from backburner.api.http.auth import (
    SESSION_COOKIE,
    AnyCaller,
    Writer,
    read_session_secret,
    split_session_secret,
)
from backburner.api.http.dependencies import AppDeps, ClientAddress
from backburner.api.http.devices import Device
from backburner.api.http.openapi import BODY_ERRORS, error_responses
from backburner.api.http.origins import OwnPageOnly, get_origin, is_encrypted
from backburner.api.http.problems import Problem
from backburner.api.schemas.account import (
    CreatedSessionOut,
    PasswordChangeBody,
    PasswordResetBody,
    SecretLinkOut,
    SignInBody,
    read_link_secret,
)
from backburner.core.accounts import MAX_SESSION_LIFETIME

router = APIRouter(prefix="/api", tags=["sign-in"])


def start_session(
    request: Request, response: Response, session: IssuedCredential
) -> CreatedSessionOut:
    """Set the cookie of a new session, and return its other half."""
    cookie, key = split_session_secret(session.secret)
    response.set_cookie(
        SESSION_COOKIE,
        cookie,
        max_age=int(MAX_SESSION_LIFETIME.total_seconds()),
        path="/",
        secure=is_encrypted(request),
        httponly=True,
        samesite="lax",
    )
    response.headers["cache-control"] = "no-store"
    return CreatedSessionOut(
        id=session.id, user=session.user, expires_at=session.expires_at, key=key
    )


def show_secret_link(
    request: Request, response: Response, issued: IssuedCredential, *, page: str
) -> SecretLinkOut:
    """Show a secret. In the link it follows the #, which browsers do not send to a server."""
    response.headers["cache-control"] = "no-store"
    link = f"{get_origin(request)}/{page}#{issued.secret}"
    return SecretLinkOut(secret=issued.secret, link=link, expires_at=issued.expires_at)


@router.post(
    "/sign-in", summary="Sign in", dependencies=[OwnPageOnly], responses=error_responses(415, 429)
)
async def sign_in(
    body: SignInBody,
    request: Request,
    response: Response,
    deps: AppDeps,
    address: ClientAddress,
    device: Device,
) -> CreatedSessionOut:
    """Start a session with a link or a password. The browser's previous session ends."""
    before = read_session_secret(request)
    if body.link is not None:
        secret = read_link_secret(body.link)
        session = await entry.sign_in_by_link(
            deps, secret, address=address, before=before, device=device
        )
        if session is None:
            raise Problem(
                401,
                "This link was used or has expired.",
                "Create a new one with `backburner user link`.",
            )
    else:
        password = body.password.get_secret_value() if body.password else ""
        session = await entry.sign_in(
            deps, body.login or "", password, address=address, before=before, device=device
        )
        if session is None:
            raise Problem(401, "The login or the password is wrong.")
    return start_session(request, response, session)


@router.post(
    "/sign-in-links", summary="Create a sign-in link", responses=error_responses(*BODY_ERRORS)
)
async def create_sign_in_link(
    caller: AnyCaller, request: Request, response: Response, deps: AppDeps
) -> SecretLinkOut:
    """Create a link that signs you in once, within a few minutes."""
    issued = await entry.issue_own_link(deps, caller)
    return show_secret_link(request, response, issued, page="sign-in")


@router.post(
    "/sign-out", summary="Sign out", status_code=204, responses=error_responses(*BODY_ERRORS)
)
async def sign_out(caller: AnyCaller, response: Response, deps: AppDeps) -> None:
    """End the session or revoke the token of this request."""
    await credentials.revoke_credential(deps, caller.user, caller.credential, caller.kind)
    response.delete_cookie(SESSION_COOKIE, path="/", httponly=True, samesite="lax")


@router.post(
    "/sign-out-everywhere",
    summary="Sign out everywhere",
    status_code=204,
    responses=error_responses(*BODY_ERRORS),
)
async def sign_out_everywhere(caller: Writer, response: Response, deps: AppDeps) -> None:
    """End all your sessions, tokens and unused links."""
    await credentials.sign_out_everywhere(deps, caller.user)
    response.delete_cookie(SESSION_COOKIE, path="/", httponly=True, samesite="lax")


@router.put("/password", summary="Set your password", responses=error_responses(409, 429))
async def change_password(
    body: PasswordChangeBody,
    caller: AnyCaller,
    request: Request,
    response: Response,
    deps: AppDeps,
    address: ClientAddress,
    device: Device,
) -> CreatedSessionOut:
    """Set a password. All your sessions and tokens end, and a new session starts."""
    session = await entry.change_password(
        deps,
        caller,
        login=body.login,
        current=body.current.get_secret_value(),
        password=body.password.get_secret_value(),
        address=address,
        device=device,
    )
    return start_session(request, response, session)


@router.post(
    "/password/reset",
    summary="Reset your password",
    dependencies=[OwnPageOnly],
    responses=error_responses(415, 429),
)
async def reset_password(
    body: PasswordResetBody,
    request: Request,
    response: Response,
    deps: AppDeps,
    address: ClientAddress,
    device: Device,
) -> CreatedSessionOut:
    """Set a new password with a reset link from an operator.

    All your sessions and tokens end, and a new session starts.
    """
    password = body.password.get_secret_value()
    secret = read_link_secret(body.reset)
    session = await entry.redeem_reset(deps, secret, password, address=address, device=device)
    if session is None:
        raise Problem(401, "This reset link was used or has expired.", "Ask for a new one.")
    return start_session(request, response, session)
