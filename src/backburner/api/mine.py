"""`/api/export` and `/api/erase`: everything that is the caller's, taken out or deleted."""

from fastapi import APIRouter
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from backburner.actions import mine
from backburner.api.auth import Reader, TheDeps, Writer


class Confirmed(BaseModel):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"confirm": mine.CONFIRMATION}]}
    )

    confirm: str = Field(max_length=100, description=f'Exactly "{mine.CONFIRMATION}".')


def build_router() -> APIRouter:
    router = APIRouter(prefix="/api", tags=["mine"])

    @router.get(
        "/export",
        summary="Take out everything that is yours",
        response_class=StreamingResponse,
        responses={200: {"content": {"application/json": {"example": _EXAMPLE}}}, **_NOT_SIGNED_IN},
    )
    async def export(caller: Reader, deps: TheDeps) -> StreamingResponse:
        """Stream one JSON document: profile, conversations, messages, runs and all the rest."""
        return StreamingResponse(
            mine.export(deps, caller.user),
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
        responses={
            400: {"description": "It was not confirmed."},
            409: {"description": "The only operator cannot leave others behind."},
            **_NOT_SIGNED_IN,
        },
    )
    async def erase(caller: Writer, deps: TheDeps, body: Confirmed) -> None:
        """Stop what runs, then delete conversations, memories, files, sign-ins and the account."""
        await mine.erase(deps, caller.user, body.confirm)

    return router


_NOT_SIGNED_IN: dict[int | str, dict[str, str]] = {
    401: {"description": "No credential that is good."},
    403: {"description": "A credential that is not good for this."},
}
_EXAMPLE = {
    "format": mine.FORMAT,
    "version": mine.VERSION,
    "exported_at": "2026-11-16T12:00:00Z",
    "profile": {"id": "u_0", "name": "Ann", "zone": "Europe/Berlin"},
    "conversations": [],
    "messages": [],
}
