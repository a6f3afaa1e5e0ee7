"""`/api/spend`: what was spent, and what may be."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Self

from fastapi import APIRouter, Query
from pydantic import AfterValidator, BaseModel, Field

from backburner.actions.accounts import profile
from backburner.api.http.auth import Reader, TheDeps
from backburner.api.schemas.base import as_id, example, refusals
from backburner.core import allowance
from backburner.core.allowance import AllowanceScope, AllowanceState, Amount
from backburner.core.ids import ConversationId


class AmountOut(BaseModel):
    micros: int = Field(description="Millionths of a US dollar.")
    tokens: int

    @classmethod
    def of(cls, amount: Amount) -> Self:
        return cls(micros=amount.micros, tokens=amount.tokens)


class StandingOut(BaseModel):
    scope: AllowanceScope
    micros: int | None = Field(description="What may be spent; null: no limit.")
    tokens: int | None
    spent: AmountOut | None = Field(description="Null where it goes for each one apart.")
    is_used_up: bool

    @classmethod
    def of(cls, standing: AllowanceState, *, counted: bool) -> Self:
        return cls(
            scope=standing.allowance.scope,
            micros=standing.allowance.micros,
            tokens=standing.allowance.tokens,
            spent=AmountOut.of(standing.spent) if counted else None,
            is_used_up=counted and allowance.find_exhausted([standing]) is not None,
        )


class DayOut(BaseModel):
    begins_at: datetime
    spent: AmountOut


class SpendOut(BaseModel):
    model_config = example(
        zone="Europe/Berlin",
        total={"micros": 1_250_000, "tokens": 410_000},
        today={"micros": 30_000, "tokens": 9_000},
        conversation=None,
        allowances=[
            {
                "scope": "day",
                "micros": 5_000_000,
                "tokens": None,
                "spent": {"micros": 30_000, "tokens": 9_000},
                "is_used_up": False,
            }
        ],
        days=[{"begins_at": "2026-11-15T23:00:00Z", "spent": {"micros": 30_000, "tokens": 9_000}}],
    )

    zone: str = Field(description="Days begin at midnight there.")
    total: AmountOut
    today: AmountOut
    conversation: AmountOut | None = Field(description="With all that it handed out.")
    allowances: Sequence[StandingOut]
    days: Sequence[DayOut] = Field(description="The last 30, as far as something was spent.")

    @classmethod
    def of(cls, found: profile.SpendStatement) -> Self:
        counted = {AllowanceScope.USER, AllowanceScope.DAY}
        if found.conversation is not None:
            counted.add(AllowanceScope.CONVERSATION)
        return cls(
            zone=found.zone,
            total=AmountOut.of(found.total),
            today=AmountOut.of(found.today),
            conversation=AmountOut.of(found.conversation) if found.conversation else None,
            allowances=[
                StandingOut.of(one, counted=one.allowance.scope in counted)
                for one in found.standings
            ],
            days=[DayOut(begins_at=day, spent=AmountOut.of(spent)) for day, spent in found.days],
        )


OfConversation = Annotated[str, Query(description="Its id."), AfterValidator(as_id)]


def build_router() -> APIRouter:
    router = APIRouter(prefix="/api", tags=["spend"])

    @router.get("/spend", summary="See what was spent", responses=refusals(404))
    async def get_spend(
        deps: TheDeps, caller: Reader, conversation_id: OfConversation | None = None
    ) -> SpendOut:
        """See what was spent and may be: in all, today, and in one conversation if asked for."""
        which = conversation_id and ConversationId(conversation_id)
        return SpendOut.of(await profile.spent(deps, caller.user, which or None))

    return router
