"""`/api/away`: what happened while somebody was away."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, BaseModel, ConfigDict

from backburner.actions import away
from backburner.api.http.auth import Reader, TheDeps, Writer
from backburner.api.schemas.base import BODY, refusals
from backburner.ports import RunCounts

_COUNTS = {"succeeded": 12, "failed": 1, "skipped": 0, "cancelled": 0}
_EXAMPLE: dict[str, Any] = {
    "since": "2026-03-02T18:00:00Z",
    "until": "2026-03-03T07:30:00Z",
    "totals": _COUNTS,
    "ran": [
        {
            "conversation": "c_1",
            "title": "Watch CI",
            "counts": _COUNTS,
            "last_at": "2026-03-03T07:00:00Z",
            "failure": "The model does not answer.",
        }
    ],
    "needs": [
        {
            "question": "q_1",
            "conversation": "c_1",
            "title": "Watch CI",
            "purpose": "approval",
            "prompt": "May I run the tests again?",
            "asked_at": "2026-03-03T06:00:00Z",
        }
    ],
    "spent": {"micros": 120_000, "tokens": 54_000, "is_all_priced": True},
    "told": [
        {
            "notice": "n_1",
            "conversation": "c_1",
            "kind": "result",
            "text": "The build is green again.",
            "created_at": "2026-03-03T07:00:00Z",
        }
    ],
}


class Counts(BaseModel):
    succeeded: int
    failed: int
    skipped: int
    cancelled: int


class RanHere(BaseModel):
    conversation: str
    title: str
    counts: Counts
    last_at: datetime
    failure: str | None


class Needs(BaseModel):
    question: str
    conversation: str
    title: str
    purpose: str
    prompt: str
    asked_at: datetime


class Spent(BaseModel):
    micros: int
    tokens: int
    is_all_priced: bool


class Told(BaseModel):
    notice: str
    conversation: str
    kind: str
    text: str
    created_at: datetime


class Summary(BaseModel):
    """What ran by itself, what needs an answer, what it cost, and what was told."""

    model_config = ConfigDict(json_schema_extra={"example": _EXAMPLE})

    since: datetime
    until: datetime
    totals: Counts
    ran: list[RanHere]
    needs: list[Needs]
    spent: Spent
    told: list[Told]


class Seen(BaseModel):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"until": _EXAMPLE["until"]}}
    )

    #: The `until` of what was shown, so that nothing since then is taken for seen.
    until: AwareDatetime | None = None


class Since(BaseModel):
    model_config = ConfigDict(json_schema_extra={"example": {"since": _EXAMPLE["until"]}})

    since: datetime


def build_router() -> APIRouter:
    router = APIRouter(prefix="/api", tags=["away"])

    @router.get("/away", summary="Sum up what happened while you were away", responses=refusals())
    async def summarise_absence(
        deps: TheDeps, caller: Reader, since: Annotated[AwareDatetime | None, Query()] = None
    ) -> Summary:
        """Tell what happened since a time; without one, since you last said you had seen it."""
        found = await away.summarise(deps, caller.user, since=since)
        return _shown(found)

    @router.post("/away/seen", summary="Say that you have seen it", responses=refusals(*BODY))
    async def end_absence(deps: TheDeps, caller: Writer, body: Seen | None = None) -> Since:
        """Note what has been seen; the next summary begins there."""
        until = None if body is None else body.until
        return Since(since=await away.come_back(deps, caller.user, until=until))

    return router


def _shown(found: away.AwaySummary) -> Summary:
    amount = found.spent.amount
    return Summary(
        since=found.since,
        until=found.until,
        totals=_counted(found.totals),
        ran=[
            RanHere(
                conversation=one.conversation,
                title=one.title,
                counts=_counted(one.counts),
                last_at=one.last_at,
                failure=one.failure,
            )
            for one in found.ran
        ],
        needs=[Needs(**asdict(one)) for one in found.needs],
        spent=Spent(
            micros=amount.micros, tokens=amount.tokens, is_all_priced=found.spent.is_all_priced
        ),
        told=[Told(**asdict(one)) for one in found.told],
    )


def _counted(counts: RunCounts) -> Counts:
    return Counts(**asdict(counts))
