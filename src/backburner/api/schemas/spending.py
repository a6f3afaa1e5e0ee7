"""Spending and allowances."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Self

from pydantic import BaseModel, Field

from backburner.actions.accounts import profile
from backburner.api.schemas.base import RequestBody, example, strict_example
from backburner.core import allowance
from backburner.core.allowance import Allowance, AllowanceScope, AllowanceState, Amount
from backburner.core.conversation import Kind
from backburner.ports import ConversationSpending


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

    @classmethod
    def of_limit(cls, limit: Allowance) -> "AllowanceOut":
        return AllowanceOut(scope=limit.scope, micros=limit.micros, tokens=limit.tokens)


class AllowanceStatusOut(AllowanceOut):
    spent: AmountOut | None = Field(
        description="Null where the allowance applies to each run or conversation separately."
    )
    is_used_up: bool
    is_own: bool = Field(description="You have set it, or answered so; else it is the default.")
    at_most: AllowanceOut | None = Field(
        description="The most that an operator allows you; null: nothing was said."
    )

    @classmethod
    def of(
        cls,
        standing: AllowanceState,
        *,
        counted: bool,
        own: Sequence[Allowance],
        ceilings: Sequence[Allowance],
    ) -> Self:
        scope = standing.allowance.scope
        ceiling = next((one for one in ceilings if one.scope is scope), None)
        return cls(
            is_own=any(one.scope is scope for one in own),
            at_most=None if ceiling is None else AllowanceOut.of_limit(ceiling),
            scope=standing.allowance.scope,
            micros=standing.allowance.micros,
            tokens=standing.allowance.tokens,
            spent=AmountOut.of(standing.spent) if counted else None,
            is_used_up=counted and allowance.find_exhausted([standing]) is not None,
        )


class ConversationAllowanceBody(RequestBody):
    model_config = strict_example(limit="5 USD")

    limit: Annotated[str, Field(max_length=100)] | None = Field(
        description="Such as `2.50 USD, 500000 tokens` or `none`; null: the server's default."
    )


class DailySpendOut(BaseModel):
    begins_at: datetime
    spent: AmountOut


class ConversationSpendOut(BaseModel):
    conversation_id: str
    title: str
    kind: Kind
    spent: AmountOut

    @classmethod
    def of(cls, spending: ConversationSpending) -> Self:
        return cls(
            conversation_id=spending.id,
            title=spending.title,
            kind=spending.kind,
            spent=AmountOut.of(spending.spent),
        )


class SpendingOut(BaseModel):
    model_config = example(
        zone="Europe/Berlin",
        total={"micros": 1_250_000, "tokens": 410_000},
        today={"micros": 30_000, "tokens": 9_000},
        conversation=None,
        conversation_id=None,
        allowances=[
            {
                "scope": "day",
                "micros": 5_000_000,
                "tokens": None,
                "spent": {"micros": 30_000, "tokens": 9_000},
                "is_used_up": False,
                "is_own": True,
                "at_most": {"scope": "day", "micros": 10_000_000, "tokens": None},
            }
        ],
        days=[{"begins_at": "2026-11-15T23:00:00Z", "spent": {"micros": 30_000, "tokens": 9_000}}],
        top=[
            {
                "conversation_id": "c_0123456789abcdefghjkmnpqrs",
                "title": "Watch CI",
                "kind": "task",
                "spent": {"micros": 900_000, "tokens": 300_000},
            }
        ],
    )

    zone: str = Field(description="The time zone in which days begin at midnight.")
    total: AmountOut
    today: AmountOut
    conversation: AmountOut | None = Field(description="With all jobs that it started.")
    conversation_id: str | None = Field(
        default=None, description="The conversation whose allowance counts: that at the top."
    )
    allowances: Sequence[AllowanceStatusOut]
    days: Sequence[DailySpendOut] = Field(
        description="Days with spending among the last 30, today first."
    )
    top: Sequence[ConversationSpendOut] = Field(
        description="The ten conversations that have spent most, with all jobs that they started,"
        " among the 500 that changed last."
    )

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
            conversation_id=statement.root,
            allowances=[
                AllowanceStatusOut.of(
                    standing,
                    counted=standing.allowance.scope in counted,
                    own=statement.own,
                    ceilings=statement.ceilings,
                )
                for standing in statement.allowances
            ],
            days=[
                DailySpendOut(begins_at=day, spent=AmountOut.of(amount))
                for day, amount in statement.days
            ],
            top=[ConversationSpendOut.of(one) for one in statement.top],
        )
