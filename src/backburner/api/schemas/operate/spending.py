"""Spending of users, and their limits, as operators see them."""

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import BaseModel, Field

from backburner.actions.operate.spending import UserSpending
from backburner.api.schemas.base import RequestBody, example, strict_example
from backburner.api.schemas.spending import AllowanceStatusOut, AmountOut
from backburner.core.allowance import AllowanceScope

_AMOUNT = {"micros": 30_000, "tokens": 9_000}

LimitText = Annotated[str, Field(max_length=100)]


class UserAllowancesBody(RequestBody):
    """Fields that are left out stay unchanged."""

    model_config = strict_example(allowances={"day": "5 USD", "user": None})

    allowances: dict[AllowanceScope, LimitText | None] = Field(
        description="By `day` and `user`, the most that the user may allow themselves, such as"
        " `2.50 USD, 500000 tokens`; null: no limit of yours."
    )


class UserSpendingOut(BaseModel):
    model_config = example(
        user="u_0123456789abcdefghjkmnpqrs",
        login="ada",
        name="Ada",
        zone="Europe/Berlin",
        today=_AMOUNT,
        last_30_days=_AMOUNT,
        total=_AMOUNT,
        allowances=[
            {
                "scope": "day",
                "micros": 5_000_000,
                "tokens": None,
                "spent": _AMOUNT,
                "is_used_up": False,
                "is_own": False,
                "at_most": {"scope": "day", "micros": 5_000_000, "tokens": None},
            }
        ],
    )

    user: str
    login: str | None
    name: str
    zone: str = Field(description="The time zone in which their days begin at midnight.")
    today: AmountOut
    last_30_days: AmountOut
    total: AmountOut
    allowances: Sequence[AllowanceStatusOut] = Field(description="Of a day, and in total.")

    @classmethod
    def of(cls, row: UserSpending) -> Self:
        return cls(
            user=row.user.id,
            login=row.user.login,
            name=row.user.name,
            zone=row.zone,
            today=AmountOut.of(row.today),
            last_30_days=AmountOut.of(row.last_days),
            total=AmountOut.of(row.total),
            allowances=[
                AllowanceStatusOut.of(standing, counted=True, own=row.own, ceilings=row.ceilings)
                for standing in row.allowances
            ],
        )
