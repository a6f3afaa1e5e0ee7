"""`/api/away`: a summary of what happened while the user was away."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AwareDatetime

from backburner.actions import away
from backburner.api.http.auth import Reader, Writer
from backburner.api.http.dependencies import AppDeps
from backburner.api.schemas.away import AwaySeenBody, AwaySinceOut, AwaySummaryOut

router = APIRouter(prefix="/api/away", tags=["away"])


@router.get("", summary="Summarize your absence")
async def get_away_summary(
    deps: AppDeps, caller: Reader, since: Annotated[AwareDatetime | None, Query()] = None
) -> AwaySummaryOut:
    """Summarize what happened since a time; by default since the last summary that you saw."""
    return AwaySummaryOut.of(await away.summarise(deps, caller.user, since=since))


@router.post("/seen", summary="Mark the summary as seen")
async def mark_away_seen(
    deps: AppDeps, caller: Writer, body: AwaySeenBody | None = None
) -> AwaySinceOut:
    """Mark everything up to a time as seen. The next summary starts there."""
    until = None if body is None else body.until
    return AwaySinceOut(since=await away.mark_seen(deps, caller.user, until=until))
