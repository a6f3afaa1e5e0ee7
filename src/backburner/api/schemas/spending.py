"""Spending and allowances."""

from collections.abc import Sequence
from datetime import datetime
from typing import Self

from pydantic import BaseModel, Field

from backburner.actions.accounts import profile
from backburner.api.schemas.base import example
from backburner.core import allowance
from backburner.core.allowance import AllowanceScope, AllowanceState, Amount


class AmountOut(BaseModel):
    micros: int = Field(description="Millionths of a US dollar.")
    tokens: int

    @classmethod
    def of(cls, amount: Amount) -> Self:
        return cls(micros=amount.micros, tokens=amount.tokens)


class AllowanceOut(BaseModel):
    scope: AllowanceScope
    micros: int | None = Field(description="Millionths of a US dollar; null: no limit.")
    tokens: int | None


class AllowanceStatusOut(AllowanceOut):
    spent: AmountOut | None = Field(
        description="Null where the allowance applies to each run or conversation separately."
    )
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


class DailySpendOut(BaseModel):
    begins_at: datetime
    spent: AmountOut


class SpendingOut(BaseModel):
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

    zone: str = Field(description="The time zone in which days begin at midnight.")
    total: AmountOut
    today: AmountOut
    conversation: AmountOut | None = Field(description="With all jobs that it started.")
    allowances: Sequence[AllowanceStatusOut]
    days: Sequence[DailySpendOut] = Field(description="Days with spending among the last 30.")

    @classmethod
    def of(cls, statement: profile.SpendStatement) -> Self:
        counted = {AllowanceScope.USER, AllowanceScope.DAY}
        if statement.conversation is not None:
            counted.add(AllowanceScope.CONVERSATION)
        return cls(
            zone=statement.zone,
            total=AmountOut.of(statement.total),
            today=AmountOut.of(statement.today),
            conversation=AmountOut.of(statement.conversation) if statement.conversation else None,
            allowances=[
                AllowanceStatusOut.of(standing, counted=standing.allowance.scope in counted)
                for standing in statement.allowances
            ],
            days=[
                DailySpendOut(begins_at=day, spent=AmountOut.of(amount))
                for day, amount in statement.days
            ],
        )
