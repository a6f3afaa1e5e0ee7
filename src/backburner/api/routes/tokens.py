"""API tokens, and the sessions of browsers: listed, made and ended."""

from fastapi import APIRouter, Response

from backburner.actions.accounts import credentials
from backburner.actions.deps import Deps
from backburner.api.http import pages
from backburner.api.http.auth import Reader, TheDeps, Writer
from backburner.api.http.pages import USUAL, Cursor, Limit, Page
from backburner.api.schemas.account import CredentialBody, MadeToken, NewToken
from backburner.api.schemas.base import BODY, refusals
from backburner.core.accounts import Caller, CredentialKind
from backburner.core.schedule.phrases import parse_duration


def build_router() -> APIRouter:
    router = APIRouter(prefix="/api", tags=["tokens"])
    _add_tokens(router)
    _add_lists(router)
    _add_sessions(router)
    return router


def _add_tokens(router: APIRouter) -> None:
    @router.post(
        "/tokens",
        summary="Make a token",
        status_code=201,
        responses=refusals(*BODY, 429),
    )
    async def create_token(
        body: NewToken, caller: Writer, response: Response, deps: TheDeps
    ) -> MadeToken:
        """Make a token that may no more than you do with this request, and for no longer."""
        lives = parse_duration(body.expires) if body.expires is not None else None
        made = await credentials.create_token(
            deps, caller, frozenset(body.scopes), name=body.name, lives=lives
        )
        response.headers["cache-control"] = "no-store"
        return MadeToken(id=made.id, token=made.secret, expires_at=made.expires_at)

    @router.delete(
        "/tokens/{token}",
        summary="Revoke a token",
        status_code=204,
        responses=refusals(*BODY, 404),
    )
    async def revoke_token(token: str, caller: Writer, deps: TheDeps) -> None:
        """End a token at once."""
        await credentials.end_credential(deps, caller.user, token, CredentialKind.TOKEN)


def _add_lists(router: APIRouter) -> None:
    @router.get("/tokens", summary="List your tokens", responses=refusals())
    async def list_tokens(
        caller: Reader, deps: TheDeps, limit: Limit = USUAL, cursor: Cursor = None
    ) -> Page[CredentialBody]:
        """List the tokens you have that are good."""
        return await _page(deps, caller, CredentialKind.TOKEN, cursor, limit)

    @router.get("/sessions", summary="List your sessions", responses=refusals())
    async def list_sessions(
        caller: Reader, deps: TheDeps, limit: Limit = USUAL, cursor: Cursor = None
    ) -> Page[CredentialBody]:
        """List the browsers you are signed in with."""
        return await _page(deps, caller, CredentialKind.SESSION, cursor, limit)


async def _page(
    deps: Deps, caller: Caller, kind: CredentialKind, cursor: str | None, limit: int
) -> Page[CredentialBody]:
    after = pages.read(cursor, str)
    found = await credentials.credentials(deps, caller.user, kind, after, limit=limit)
    return pages.show(found, lambda one: CredentialBody.of(one, caller.credential))


def _add_sessions(router: APIRouter) -> None:
    @router.delete(
        "/sessions/{session}",
        summary="End a session",
        status_code=204,
        responses=refusals(*BODY, 404),
    )
    async def end_session(session: str, caller: Writer, deps: TheDeps) -> None:
        """Sign another browser out."""
        await credentials.end_credential(deps, caller.user, session, CredentialKind.SESSION)
