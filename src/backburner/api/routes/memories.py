"""`/api/memories`: what is remembered across conversations, each under a key."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import AfterValidator, Field

from backburner.actions import browse, memories
from backburner.actions.memories import MAX_KEY_CHARS, MAX_MEMORY_CHARS, MAX_QUERY_CHARS
from backburner.api.http import pages
from backburner.api.http.auth import Reader, TheDeps, Writer
from backburner.api.http.pages import USUAL, Cursor, Limit, Page
from backburner.api.schemas.base import BODY, Body, example, refusals
from backburner.api.schemas.shown import MemoryOut
from backburner.core.validation import check_text


class NewMemory(Body):
    model_config = example(text="Takes it black.")

    text: str = Field(description=f"Up to {MAX_MEMORY_CHARS:,} characters.")


Words = Annotated[
    str | None,
    Query(
        description=f"Words to look for, up to {MAX_QUERY_CHARS:,} characters; the last may be a"
        " beginning. All that is found is on one page."
    ),
]


def _as_key(text: str) -> str:
    return check_text("The key", text, limit=MAX_KEY_CHARS)


Key = Annotated[str, Path(description="Its key; may have slashes."), AfterValidator(_as_key)]


def build_router() -> APIRouter:
    router = APIRouter(prefix="/api", tags=["memories"])
    path = "/memories/{key:path}"

    @router.get("/memories", summary="List memories", responses=refusals(413))
    async def list_memories(
        deps: TheDeps,
        caller: Reader,
        q: Words = None,
        limit: Limit = USUAL,
        cursor: Cursor = None,
    ) -> Page[MemoryOut]:
        """List what is remembered, by key; or the best of what has any of the words, best first."""
        if q is not None:
            best = await memories.search(deps, caller.user, q, limit=limit)
            return Page(items=[MemoryOut.of(one) for one in best], next=None)
        found = await browse.memories(deps, caller.user, pages.read(cursor, str), limit=limit)
        return pages.show(found, MemoryOut.of)

    @router.get(path, summary="Look at a memory", responses=refusals(404, 413))
    async def get_memory(key: Key, deps: TheDeps, caller: Reader) -> MemoryOut:
        return MemoryOut.of(await browse.memory(deps, caller.user, key))

    @router.put(
        path,
        summary="Remember something",
        responses={**refusals(404, 429, *BODY), 201: {"model": MemoryOut, "description": "New."}},
    )
    async def put_memory(
        key: Key, body: NewMemory, response: Response, deps: TheDeps, caller: Writer
    ) -> MemoryOut:
        """Remember something under a key, in place of what was there."""
        memory, is_new = await memories.remember(deps, caller.user, key, body.text)
        response.status_code = 201 if is_new else 200
        return MemoryOut.of(memory)

    @router.delete(path, summary="Forget", status_code=204, responses=refusals(404, 413))
    async def delete_memory(key: Key, deps: TheDeps, caller: Writer) -> None:
        await memories.forget(deps, caller.user, key)

    return router
