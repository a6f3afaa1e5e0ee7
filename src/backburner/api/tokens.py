"""API tokens, and the sessions of browsers: listed, made and ended."""

import re
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from backburner.actions import accounts
from backburner.actions.deps import Deps
from backburner.api.account_bodies import CredentialBody, Credentials, MadeToken, NewToken
from backburner.api.auth import Reader, TheDeps, Writer
from backburner.api.schemas import BODY, refusals
from backburner.core.accounts import Caller, CredentialKind
from backburner.core.errors import BadRequest
from backburner.core.phrases import parse_duration

_ID = re.compile(r"[A-Za-z0-9_]{1,64}")


def read_cursor(cursor: Annotated[str, Query(max_length=200)] = "") -> str:
    """Take the id after which a page begins."""
    if cursor and not _ID.fullmatch(cursor):
        raise BadRequest("That is no cursor.", hint="Take it from `next` as it is.")
    return cursor


Cursor = Annotated[str, Depends(read_cursor)]
Most = Annotated[int, Query(alias="limit", ge=1, le=200)]


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
        made = await accounts.create_token(
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
        await accounts.end_credential(deps, caller.user, token, CredentialKind.TOKEN)


def _add_lists(router: APIRouter) -> None:
    @router.get("/tokens", summary="List your tokens", responses=refusals())
    async def list_tokens(
        caller: Reader, deps: TheDeps, cursor: Cursor, most: Most = 50
    ) -> Credentials:
        """List the tokens you have that are good."""
        return await _page(deps, caller, CredentialKind.TOKEN, cursor, most)

    @router.get("/sessions", summary="List your sessions", responses=refusals())
    async def list_sessions(
        caller: Reader, deps: TheDeps, cursor: Cursor, most: Most = 50
    ) -> Credentials:
        """List the browsers you are signed in with."""
        return await _page(deps, caller, CredentialKind.SESSION, cursor, most)


async def _page(
    deps: Deps, caller: Caller, kind: CredentialKind, cursor: str, most: int
) -> Credentials:
    found = await accounts.credentials(deps, caller.user, kind, after=cursor, most=most + 1)
    items = [CredentialBody.of(one, caller.credential) for one in found[:most]]
    return Credentials(items=items, next=items[-1].id if len(found) > most else None)


def _add_sessions(router: APIRouter) -> None:
    @router.delete(
        "/sessions/{session}",
        summary="End a session",
        status_code=204,
        responses=refusals(*BODY, 404),
    )
    async def end_session(session: str, caller: Writer, deps: TheDeps) -> None:
        """Sign another browser out."""
        await accounts.end_credential(deps, caller.user, session, CredentialKind.SESSION)
