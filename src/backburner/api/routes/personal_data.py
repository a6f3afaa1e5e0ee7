"""`/api/export` and `/api/erase`: everything that is the caller's, taken out or deleted."""

from fastapi import APIRouter
from fastapi.responses import StreamingResponse
from pydantic import Field

from backburner.actions import personal_data
from backburner.api.http.auth import Reader, TheDeps, Writer
from backburner.api.schemas.base import BODY, Body, example, refusals


class Confirmed(Body):
    model_config = example(confirm=personal_data.ERASE_CONFIRMATION)

    confirm: str = Field(
        max_length=100, description=f'Exactly "{personal_data.ERASE_CONFIRMATION}".'
    )


def build_router() -> APIRouter:
    router = APIRouter(prefix="/api", tags=["mine"])

    @router.get(
        "/export",
        summary="Take out everything that is yours",
        response_class=StreamingResponse,
        responses={200: {"content": {"application/json": {"example": _EXAMPLE}}}, **refusals()},
    )
    async def export_all(caller: Reader, deps: TheDeps) -> StreamingResponse:
        """Stream one JSON document: profile, conversations, messages, runs and all the rest."""
        return StreamingResponse(
            personal_data.export(deps, caller.user),
            media_type="application/json",
            headers={
                "content-disposition": 'attachment; filename="backburner-export.json"',
                "cache-control": "no-store",
            },
        )

    @router.post(
        "/erase",
        summary="Erase everything that is yours, for good",
        status_code=204,
        responses=refusals(409, *BODY),
    )
    async def erase_all(caller: Writer, deps: TheDeps, body: Confirmed) -> None:
        """Stop what runs, then delete conversations, memories, files, sign-ins and the account."""
        await personal_data.erase(deps, caller.user, body.confirm)

    return router


_EXAMPLE = {
    "format": personal_data.FORMAT,
    "version": personal_data.VERSION,
    "exported_at": "2026-11-16T12:00:00Z",
    "profile": {"id": "u_0", "name": "Ann", "zone": "Europe/Berlin"},
    "conversations": [],
    "messages": [],
}
