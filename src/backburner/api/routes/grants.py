"""`/api/grants`: list and revoke grants."""

from datetime import datetime

from fastapi import APIRouter

from backburner.actions import browse, grants
from backburner.api.http.auth import Reader, Writer
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.pages import PageOut, Paging, make_page
from backburner.api.schemas.base import ConversationIdPath, GrantIdPath
from backburner.api.schemas.grant import GrantOut

router = APIRouter(prefix="/api", tags=["grants"])


@router.get("/grants", summary="List all grants")
async def list_all_grants(deps: AppDeps, caller: Reader, paging: Paging) -> PageOut[GrantOut]:
    """List the grants of all conversations, newest first."""
    page = await browse.all_grants(
        deps, caller.user, paging.after(datetime, str), limit=paging.limit
    )
    return make_page(page, GrantOut.of)


@router.get("/conversations/{conversation_id}/grants", summary="List the grants of a conversation")
async def list_grants(
    conversation_id: ConversationIdPath, deps: AppDeps, caller: Reader
) -> PageOut[GrantOut]:
    """List the grants of a conversation on one page, newest first."""
    rows = await browse.grants(deps, caller.user, conversation_id)
    return PageOut(items=[GrantOut.of(row) for row in rows], next=None)


@router.delete("/grants/{grant_id}", summary="Revoke a grant", status_code=204)
async def revoke_grant(grant_id: GrantIdPath, deps: AppDeps, caller: Writer) -> None:
    """Revoke a grant. The next call that it covered asks for approval again."""
    await grants.revoke(deps, caller.user, grant_id)
