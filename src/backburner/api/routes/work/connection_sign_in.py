"""Signing in to the servers of connections: `/api/connections/.../sign-in`, and who we are."""

from collections.abc import Mapping
from datetime import timedelta

from fastapi import APIRouter, Request, Response

from backburner.actions.connections import definitions, manage, sign_in
from backburner.actions.deps import Deps
from backburner.api.http.auth import Approver
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.openapi import error_responses
from backburner.api.http.origins import get_origin
from backburner.api.http.problems import Problem
from backburner.api.routes.work.connections import ConnectionIdPath
from backburner.api.schemas.work.connection import ConnectionCheckOut
from backburner.api.schemas.work.connection_sign_in import (
    SignInAddressOut,
    SignInEndOut,
    SignInFinishBody,
    SignInStartBody,
    SignInWaitBody,
)
from backburner.core.accounts import Caller, CredentialKind
from backburner.core.connections.connection import Connection
from backburner.core.connections.oauth_client import client_document
from backburner.ports import (
    CALLBACK_PATH,
    CLIENT_DOCUMENT_PATH,
    ISSUER_CALLBACK_PATH,
    ISSUER_DOCUMENT_PATH,
)
from backburner.ports.oauth import is_issuer_key

router = APIRouter(tags=["connections"])


@router.post(
    "/api/connections/{connection_id}/sign-in",
    summary="Start to sign in",
    responses=error_responses(404, 409, 502),
)
async def start_connection_sign_in(
    connection_id: ConnectionIdPath,
    body: SignInStartBody,
    request: Request,
    response: Response,
    deps: AppDeps,
    caller: Approver,
) -> SignInAddressOut:
    """Find out where to sign in to the server of a connection. Finish it within ten minutes.

    In a browser the same session finishes; with a token, the `secret` does.
    """
    response.headers["cache-control"] = "no-store"
    # The page of the browser is where it comes back to; a command may be on another machine.
    is_browser = caller.kind is CredentialKind.SESSION
    origin = get_origin(request)
    begun = await sign_in.begin(
        deps,
        caller,
        connection_id,
        origin=origin if is_browser else deps.base_url or origin,
        client=body.client(),
        issuer=body.issuer,
        scopes=body.scopes,
    )
    return SignInAddressOut.of(begun)


@router.post(
    "/api/connections/{connection_id}/sign-in/wait",
    summary="Wait for a sign-in",
    responses=error_responses(404, 502),
)
async def wait_for_connection_sign_in(
    connection_id: ConnectionIdPath, body: SignInWaitBody, deps: AppDeps, caller: Approver
) -> SignInEndOut:
    """Wait until a browser of yours has come back, and finish. `check` is null: it has not yet."""
    secret, limit = body.secret.get_secret_value(), timedelta(seconds=body.seconds)
    found = await sign_in.wait(deps, caller, connection_id, secret, limit)
    if found is not None:
        return await _check(deps, caller, found)
    shown = await manage.show(deps, caller.user, connection_id)
    return SignInEndOut(connection_name=shown.connection.name, check=None)


@router.post(
    "/api/connections/finish-sign-in",
    summary="Finish a sign-in",
    responses=error_responses(403, 404, 502),
)
async def finish_connection_sign_in(
    body: SignInFinishBody, deps: AppDeps, caller: Approver
) -> SignInEndOut:
    """Finish with the address at the end, where the sign-in was started.

    The address of a sign-in that your terminal has started is handed on to it.
    """
    address, secret = body.address.get_secret_value(), body.secret.get_secret_value()
    end = await sign_in.finish(deps, caller, address, secret=secret)
    if end.is_finished:
        return await _check(deps, caller, end.connection)
    return SignInEndOut(connection_name=end.connection.name, check=None)


@router.get(CLIENT_DOCUMENT_PATH, summary="Describe the OAuth client", include_in_schema=False)
async def get_client_document(request: Request) -> Mapping[str, object]:
    """Describe Backburner to authorization servers that have known it by this address."""
    return _describe(request, CLIENT_DOCUMENT_PATH, CALLBACK_PATH)


@router.get(ISSUER_DOCUMENT_PATH, summary="Describe the OAuth client", include_in_schema=False)
async def get_issuer_document(request: Request, issuer_key: str) -> Mapping[str, object]:
    """Describe Backburner to one authorization server, which knows it by this address."""
    if not is_issuer_key(issuer_key):
        raise Problem(404, "There is no such document.")
    paths = (ISSUER_DOCUMENT_PATH, ISSUER_CALLBACK_PATH)
    return _describe(request, *(path.format(issuer_key=issuer_key) for path in paths))


def _describe(request: Request, path: str, redirect_path: str) -> Mapping[str, object]:
    public_url: str = request.app.state.public_url
    if not public_url.startswith("https://"):
        raise Problem(404, "This server has no public address.", "Set public_url.")
    return client_document(f"{public_url}{path}", f"{public_url}{redirect_path}")


async def _check(deps: Deps, caller: Caller, connection: Connection) -> SignInEndOut:
    """Connect at once, so that agents have the tools."""
    check = await definitions.refresh(deps, caller, connection.id)
    shown = await manage.show(deps, caller.user, connection.id)
    return SignInEndOut(connection_name=connection.name, check=ConnectionCheckOut.of(check, shown))
