"""Allowances: limits on spending in money and tokens, prices, and what remains.

Money is counted in whole millionths of a dollar, so that sums of many small amounts stay exact.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from enum import StrEnum

from backburner.core.errors import BadRequest
from backburner.core.schedule.cron import find_zone

MILLION = 1_000_000
_DOLLARS = re.compile(r"\A\$\s*(\S+)\Z")
_LIMIT_UNITS = {"usd": "micros", "tokens": "tokens"}
_PRICE_UNITS = {
    "in": "input",
    "out": "output",
    "cache read": "cache_read",
    "cache write": "cache_write",
}


class AllowanceScope(StrEnum):
    """The object of an allowance. A conversation's allowance includes all jobs below it."""

    RUN = "run"
    CONVERSATION = "conversation"
    USER = "user"
    DAY = "day"  #: One user's day, from midnight to midnight in their time zone.


@dataclass(frozen=True, slots=True)
class Amount:
    """Money and tokens together: spent, reserved, or left."""

    micros: int = 0
    tokens: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.micros + other.micros, self.tokens + other.tokens)


@dataclass(frozen=True, slots=True)
class Allowance:
    """A spending limit; None means unlimited."""

    scope: AllowanceScope
    micros: int | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a model, in millionths of a dollar per million tokens."""

    input: int
    output: int
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens used by one model call."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True, slots=True)
class Cost:
    amount: Amount
    #: False if the model has no known price, so that only its tokens count.
    priced: bool


@dataclass(frozen=True, slots=True)
class AllowanceState:
    """An allowance with the amounts spent and reserved under it."""

    allowance: Allowance
    spent: Amount
    reserved: Amount = Amount()


def parse_limit(text: str, scope: AllowanceScope) -> Allowance:
    """Parse a limit in money, tokens or both, as in "2.50 USD, 500000 tokens"; or "none".

    Money may also be written as "$2.50".
    """
    amounts: dict[str, int] = {}
    for part in [] if text.strip().casefold() == "none" else text.split(","):
        number, _, unit = _DOLLARS.sub(r"\1 USD", part.strip()).partition(" ")
        name = _LIMIT_UNITS.get(unit.strip().casefold())
        if name is None or name in amounts:
            raise BadRequest(
                f"{text!r} is not a limit.",
                hint="Use, for example, `2.50 USD`, `$2.50`, `500000 tokens`,"
                " `2.50 USD, 500000 tokens` or `none`.",
            )
        amounts[name] = _parse_number(number, factor=MILLION if name == "micros" else 1)
    return Allowance(scope, amounts.get("micros"), amounts.get("tokens"))


def format_limit(limit: Allowance) -> str:
    """Describe a limit in words for people."""
    money = [] if limit.micros is None else [f"${limit.micros / 1e6:,.2f}"]
    tokens = [] if limit.tokens is None else [f"{limit.tokens:,} tokens"]
    return " or ".join([*money, *tokens])


def parse_price(text: str) -> Price:
    """Parse a model's price in dollars per million tokens, as in "3 in, 15 out"."""
    prices: dict[str, int] = {}
    for part in text.split(","):
        number, _, unit = part.strip().partition(" ")
        name = _PRICE_UNITS.get(unit.strip().casefold())
        if name is None or name in prices:
            raise BadRequest(
                f"{text!r} is not a price.",
                hint="Give dollars per million tokens: 3 in, 15 out, 0.3 cache read,"
                " 3.75 cache write.",
            )
        prices[name] = _parse_number(number, factor=MILLION)
    if not {"input", "output"} <= prices.keys():
        raise BadRequest(f"{text!r} is not a complete price.", hint="Give both `in` and `out`.")
    return Price(**prices)


def find_price(model: str, prices: Mapping[str, Price]) -> Price | None:
    """Return the price under the longest prefix of the model's name."""
    prefix = max((name for name in prices if model.startswith(name)), key=len, default=None)
    return None if prefix is None else prices[prefix]


def call_cost(usage: Usage, price: Price | None) -> Cost:
    """Compute the cost of a call; without a price only its tokens count."""
    tokens = usage.input + usage.output + usage.cache_read + usage.cache_write
    if price is None:
        return Cost(Amount(0, tokens), priced=False)
    total = (
        usage.input * price.input
        + usage.output * price.output
        + usage.cache_read * price.cache_read
        + usage.cache_write * price.cache_write
    )
    # Rounded up: many small calls must never add up to less than they cost.
    return Cost(Amount(-(-total // MILLION), tokens), priced=True)


def remaining(state: AllowanceState) -> Amount | None:
    """Return what remains under an allowance, at least zero; None if it is unlimited."""
    allowance, used = state.allowance, state.spent + state.reserved
    if allowance.micros is None and allowance.tokens is None:
        return None
    unlimited = 2**62
    return Amount(
        max(0, (unlimited if allowance.micros is None else allowance.micros) - used.micros),
        max(0, (unlimited if allowance.tokens is None else allowance.tokens) - used.tokens),
    )


def find_exhausted(states: Iterable[AllowanceState]) -> Allowance | None:
    """Find the first allowance under which nothing remains."""
    for state in states:
        rest = remaining(state)
        if rest is not None and (rest.micros == 0 or rest.tokens == 0):
            return state.allowance
    return None


def raise_by(allowance: Allowance, more: Amount) -> Allowance:
    raised = Allowance(
        allowance.scope,
        None if allowance.micros is None else allowance.micros + more.micros,
        None if allowance.tokens is None else allowance.tokens + more.tokens,
    )
    if more.micros < 0 or more.tokens < 0 or raised == allowance:
        raise BadRequest(
            "That does not raise the allowance.", hint="Raise what it limits: money or tokens."
        )
    return raised


def cap(limit: Allowance, ceiling: Allowance | None) -> Allowance:
    """Lower a limit to the most that an operator allows."""
    if ceiling is None:
        return limit
    return Allowance(
        limit.scope,
        _lower(limit.micros, ceiling.micros),
        _lower(limit.tokens, ceiling.tokens),
    )


def local_day(moment: datetime, *, zone: str) -> tuple[datetime, datetime]:
    """Return the start and end, in UTC, of the local day that contains a moment."""
    tz = find_zone(zone)
    today = moment.astimezone(tz).date()
    start = datetime.combine(today, time(), tz)
    end = datetime.combine(today + timedelta(days=1), time(), tz)
    return start.astimezone(UTC), end.astimezone(UTC)


def _lower(one: int | None, other: int | None) -> int | None:
    return min((amount for amount in (one, other) if amount is not None), default=None)


def _parse_number(text: str, *, factor: int) -> int:
    try:
        exact = Decimal(text) * factor
    except InvalidOperation:
        exact = Decimal("NaN")
    if not exact.is_finite() or exact < 0 or exact > 2**53 or exact != exact.to_integral_value():
        raise BadRequest(f"{text!r} is not an amount.", hint="Use a number such as 2.50.")
    return int(exact)
