"""What may be spent, in money and tokens: how much is left, what to set aside, when it is over.

Money is counted in millionths of a dollar, as whole numbers: sums of many small amounts stay exact.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from enum import StrEnum

from backburner.core.errors import BadRequest
from backburner.core.schedule.cron import find_zone

MILLION = 1_000_000
_LIMIT_UNITS = {"usd": "micros", "tokens": "tokens"}
_PRICE_UNITS = {
    "in": "input",
    "out": "output",
    "cache read": "cache_read",
    "cache write": "cache_write",
}


class AllowanceScope(StrEnum):
    """What an allowance is for. A conversation's counts everything it handed out to others."""

    RUN = "run"
    CONVERSATION = "conversation"
    USER = "user"
    DAY = "day"  #: One user's, from midnight to midnight in their zone.


@dataclass(frozen=True, slots=True)
class Amount:
    """Money and tokens together: spent, reserved, or left."""

    micros: int = 0
    tokens: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.micros + other.micros, self.tokens + other.tokens)


@dataclass(frozen=True, slots=True)
class Allowance:
    """A limit; None is no limit of that sort."""

    scope: AllowanceScope
    micros: int | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """Of one model, in millionths of a dollar for a million tokens."""

    input: int
    output: int
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """What one call of a model used."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True, slots=True)
class Cost:
    amount: Amount
    #: False: nobody said what this model costs, so only its tokens count.
    priced: bool


@dataclass(frozen=True, slots=True)
class AllowanceState:
    """An allowance with what is already spent and set aside under it."""

    allowance: Allowance
    spent: Amount
    reserved: Amount = Amount()


def parse_limit(text: str, scope: AllowanceScope) -> Allowance:
    """Read a limit in words: money, tokens or both, as in "2.50 USD, 500000 tokens"; or none."""
    found: dict[str, int] = {}
    for part in [] if text.strip().casefold() == "none" else text.split(","):
        number, _, unit = part.strip().partition(" ")
        name = _LIMIT_UNITS.get(unit.strip().casefold())
        if name is None or name in found:
            raise BadRequest(
                f"{text!r} is not a limit.", hint="Say 2.50 USD, 500000 tokens, both, or none."
            )
        found[name] = _number(number, times=MILLION if name == "micros" else 1)
    return Allowance(scope, found.get("micros"), found.get("tokens"))


def parse_price(text: str) -> Price:
    """Read what a model costs, in dollars for a million tokens, as in "3 in, 15 out"."""
    found: dict[str, int] = {}
    for part in text.split(","):
        number, _, unit = part.strip().partition(" ")
        name = _PRICE_UNITS.get(unit.strip().casefold())
        if name is None or name in found:
            raise BadRequest(
                f"{text!r} is not a price.",
                hint="Say dollars for a million tokens: 3 in, 15 out, 0.3 cache read,"
                " 3.75 cache write.",
            )
        found[name] = _number(number, times=MILLION)
    if not {"input", "output"} <= found.keys():
        raise BadRequest(f"{text!r} is not a whole price.", hint="Say what in and out cost.")
    return Price(**found)


def find_price(model: str, prices: Mapping[str, Price]) -> Price | None:
    """Return the price under the longest prefix of the model's name."""
    prefix = max((name for name in prices if model.startswith(name)), key=len, default=None)
    return None if prefix is None else prices[prefix]


def cost(usage: Usage, price: Price | None) -> Cost:
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


def left(standing: AllowanceState) -> Amount | None:
    """Say what is left under an allowance, never less than nothing; None: it has no limit."""
    allowance, used = standing.allowance, standing.spent + standing.reserved
    if allowance.micros is None and allowance.tokens is None:
        return None
    unlimited = 2**62
    return Amount(
        max(0, (unlimited if allowance.micros is None else allowance.micros) - used.micros),
        max(0, (unlimited if allowance.tokens is None else allowance.tokens) - used.tokens),
    )


def used_up(standings: Iterable[AllowanceState]) -> Allowance | None:
    """Find the first allowance under which nothing more may be spent."""
    for standing in standings:
        rest = left(standing)
        if rest is not None and (rest.micros == 0 or rest.tokens == 0):
            return standing.allowance
    return None


def raise_by(allowance: Allowance, more: Amount) -> Allowance:
    raised = Allowance(
        allowance.scope,
        None if allowance.micros is None else allowance.micros + more.micros,
        None if allowance.tokens is None else allowance.tokens + more.tokens,
    )
    if more.micros < 0 or more.tokens < 0 or raised == allowance:
        raise BadRequest(
            "That does not raise the allowance.", hint="Add to what it limits: money or tokens."
        )
    return raised


def day_of(moment: datetime, *, zone: str) -> tuple[datetime, datetime]:
    """Give the user's day that a moment falls in, as the UTC times of both its midnights."""
    tz = find_zone(zone)
    today = moment.astimezone(tz).date()
    start = datetime.combine(today, time(), tz)
    end = datetime.combine(today + timedelta(days=1), time(), tz)
    return start.astimezone(UTC), end.astimezone(UTC)


def _number(text: str, *, times: int) -> int:
    try:
        exact = Decimal(text) * times
    except InvalidOperation:
        exact = Decimal("NaN")
    if not exact.is_finite() or exact < 0 or exact > 2**53 or exact != exact.to_integral_value():
        raise BadRequest(f"{text!r} is not an amount.", hint="Say a number such as 2.50.")
    return int(exact)
