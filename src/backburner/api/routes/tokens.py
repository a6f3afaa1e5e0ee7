"""`/api/tokens` and `/api/sessions`: the caller's API tokens and browser sessions."""

from fastapi import APIRouter, Response

from backburner.actions.accounts import credentials
from backburner.api.http.auth import Reader, Writer
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.openapi import BODY_ERRORS, error_responses
from backburner.api.http.pages import PageOut, Paging, make_page
from backburner.api.schemas.token import CreatedTokenOut, CredentialOut, NewTokenBody
from backburner.core.accounts import CredentialKind
from backburner.core.schedule.phrases import parse_duration

router = APIRouter(prefix="/api", tags=["tokens"])


@router.post("/tokens", summary="Create a token", status_code=201, responses=error_responses(429))
async def create_token(
    body: NewTokenBody, caller: Writer, response: Response, deps: AppDeps
) -> CreatedTokenOut:
    """Create a token, with no more scopes than the credential of this request has.

    Work that it hands out has only those things of yours that `uses` and `connections` name.
    """
    lifetime = parse_duration(body.expires) if body.expires is not None else None
    token = await credentials.create_token(
        deps,
        caller,
        frozenset(body.scopes),
        frozenset(body.uses),
        frozenset(body.connections or ()),
        name=body.name,
        lifetime=lifetime,
    )
    response.headers["cache-control"] = "no-store"
    return CreatedTokenOut(id=token.id, token=token.secret, expires_at=token.expires_at)


@router.get("/tokens", summary="List your tokens")
async def list_tokens(caller: Reader, deps: AppDeps, paging: Paging) -> PageOut[CredentialOut]:
    """List your valid tokens."""
    page = await credentials.list_credentials(
        deps, caller.user, CredentialKind.TOKEN, paging.after(str), limit=paging.limit
    )
    return make_page(page, lambda token: CredentialOut.of(token, caller))


@router.delete(
    "/tokens/{token_id}",
    summary="Revoke a token",
    status_code=204,
    responses=error_responses(*BODY_ERRORS),
)
async def revoke_token(token_id: str, caller: Writer, deps: AppDeps) -> None:
    """Revoke a token immediately."""
    await credentials.revoke_credential(deps, caller.user, token_id, CredentialKind.TOKEN)


@router.get("/sessions", summary="List your sessions")
async def list_sessions(caller: Reader, deps: AppDeps, paging: Paging) -> PageOut[CredentialOut]:
    """List the browsers that you are signed in with."""
    page = await credentials.list_credentials(
        deps, caller.user, CredentialKind.SESSION, paging.after(str), limit=paging.limit
    )
    return make_page(page, lambda session: CredentialOut.of(session, caller))


@router.delete(
    "/sessions/{session_id}",
    summary="End a session",
    status_code=204,
    responses=error_responses(*BODY_ERRORS),
)
async def end_session(session_id: str, caller: Writer, deps: AppDeps) -> None:
    """Sign another browser out."""
    await credentials.revoke_credential(deps, caller.user, session_id, CredentialKind.SESSION)
