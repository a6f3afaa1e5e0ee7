"""`/api/memories`: memories across conversations, each under a key."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import AfterValidator

from backburner.actions import browse, memories
from backburner.actions.memories import MAX_KEY_CHARS, MAX_QUERY_CHARS
from backburner.api.http.auth import Reader, Writer
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.openapi import error_responses
from backburner.api.http.pages import PageOut, Paging, make_page
from backburner.api.schemas.memory import MemoryOut, NewMemoryBody
from backburner.core.validation import check_text

router = APIRouter(prefix="/api/memories", tags=["memories"])


def _check_key(text: str) -> str:
    return check_text("The key", text, limit=MAX_KEY_CHARS)


KeyPath = Annotated[
    str, Path(description="The key; may contain slashes."), AfterValidator(_check_key)
]
WordsQuery = Annotated[
    str | None,
    Query(
        description=f"Words to search for, up to {MAX_QUERY_CHARS:,} characters; the last may be a"
        " prefix. All matches are on one page."
    ),
]


@router.get("", summary="List memories", responses=error_responses(413))
async def list_memories(
    deps: AppDeps, caller: Reader, paging: Paging, q: WordsQuery = None
) -> PageOut[MemoryOut]:
    """List memories by key, or search for words, best match first."""
    if q is not None:
        matches = await memories.search(deps, caller.user, q, limit=paging.limit)
        return PageOut(items=[MemoryOut.of(memory) for memory in matches], next=None)
    page = await browse.memories(deps, caller.user, paging.after(str), limit=paging.limit)
    return make_page(page, MemoryOut.of)


@router.get("/{key:path}", summary="Get a memory", responses=error_responses(413))
async def get_memory(key: KeyPath, deps: AppDeps, caller: Reader) -> MemoryOut:
    return MemoryOut.of(await browse.memory(deps, caller.user, key))


@router.put(
    "/{key:path}",
    summary="Save a memory",
    responses={**error_responses(429), 201: {"model": MemoryOut, "description": "Created."}},
)
async def save_memory(
    key: KeyPath, body: NewMemoryBody, response: Response, deps: AppDeps, caller: Writer
) -> MemoryOut:
    """Save a text under a key, replacing any previous one."""
    memory, is_new = await memories.remember(deps, caller.user, key, body.text)
    response.status_code = 201 if is_new else 200
    return MemoryOut.of(memory)


@router.delete(
    "/{key:path}", summary="Delete a memory", status_code=204, responses=error_responses(413)
)
async def delete_memory(key: KeyPath, deps: AppDeps, caller: Writer) -> None:
    await memories.forget(deps, caller.user, key)
