"""Allowances: exact costs, remainders that are never negative, and local days."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.stage.make import NOON

from backburner.core.allowance import (
    Allowance,
    AllowanceScope,
    AllowanceState,
    Amount,
    Cost,
    Price,
    Usage,
    call_cost,
    cap,
    find_exhausted,
    find_price,
    format_limit,
    local_day,
    parse_limit,
    parse_price,
    raise_by,
    remaining,
)
from backburner.core.errors import BadRequest, BadSchedule

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
TICK = timedelta.resolution
PRICES = {
    "model": Price(1_000_000, 2_000_000),
    "model-large": Price(15_000_000, 75_000_000, cache_read=1_500_000, cache_write=18_750_000),
}
ZONES = sorted(available_timezones() - {"localtime", "Factory"})

counts = st.integers(0, 10**9)
amounts = st.builds(Amount, counts, counts)
allowances = st.builds(
    Allowance, st.sampled_from(AllowanceScope), st.none() | counts, st.none() | counts
)
standings = st.builds(AllowanceState, allowances, amounts, amounts)


def test_a_call_costs_the_sum_of_its_parts() -> None:
    usage = Usage(input=1_000, output=200, cache_read=50_000, cache_write=4_000)

    assert call_cost(usage, find_price("model-large", PRICES)) == Cost(
        Amount(micros=15_000 + 15_000 + 75_000 + 75_000, tokens=55_200), priced=True
    )


def test_less_than_a_millionth_of_a_dollar_counts_as_one() -> None:
    price = Price(input=1, output=0)

    assert call_cost(Usage(input=1), price).amount.micros == 1
    assert call_cost(Usage(input=1_000_000), price).amount.micros == 1
    assert call_cost(Usage(input=1_000_001), price).amount.micros == 2
    assert call_cost(Usage(output=5), price).amount.micros == 0


@given(st.lists(st.builds(Usage, counts, counts, counts, counts), max_size=5))
def test_many_calls_never_add_up_to_less_than_they_cost(usages: list[Usage]) -> None:
    price = PRICES["model-large"]
    millionths_of_micros = sum(
        usage.input * price.input
        + usage.output * price.output
        + usage.cache_read * price.cache_read
        + usage.cache_write * price.cache_write
        for usage in usages
    )

    total = sum((call_cost(usage, price).amount for usage in usages), Amount())

    assert 0 <= total.micros * 10**6 - millionths_of_micros < 10**6 * max(1, len(usages))


@pytest.mark.parametrize(
    ("model", "micros"),
    [
        ("model", 1),
        ("model-small", 1),
        ("model-large", 15),
        ("model-large-2026", 15),
    ],
)
def test_the_price_is_the_one_with_the_longest_name_that_fits(model: str, micros: int) -> None:
    assert call_cost(Usage(input=1), find_price(model, PRICES)).amount.micros == micros


@pytest.mark.parametrize("model", ["", "other", "my-model", "mode"])
def test_a_model_nobody_has_a_price_for_counts_tokens_only_and_says_so(model: str) -> None:
    assert call_cost(Usage(3, 4, 5, 6), find_price(model, PRICES)) == Cost(
        Amount(0, 18), priced=False
    )


def test_the_remainder_is_the_limit_less_spent_and_reserved_amounts() -> None:
    standing = AllowanceState(
        Allowance(AllowanceScope.DAY, 100, 1_000), Amount(30, 300), Amount(20, 200)
    )

    assert remaining(standing) == Amount(50, 500)


def test_an_unlimited_allowance_has_no_remainder() -> None:
    assert remaining(AllowanceState(Allowance(AllowanceScope.RUN), Amount(10, 10))) is None


@given(standings)
def test_the_remainder_is_never_negative(standing: AllowanceState) -> None:
    rest = remaining(standing)

    assert rest is None or (rest.micros >= 0 and rest.tokens >= 0)


@pytest.mark.parametrize(
    ("allowance", "over"),
    [
        (Allowance(AllowanceScope.DAY), False),
        (Allowance(AllowanceScope.DAY, micros=11), False),
        (Allowance(AllowanceScope.DAY, micros=10), True),
        (Allowance(AllowanceScope.DAY, micros=9), True),
        (Allowance(AllowanceScope.DAY, tokens=21), False),
        (Allowance(AllowanceScope.DAY, tokens=20), True),
        (Allowance(AllowanceScope.DAY, micros=11, tokens=20), True),
        (Allowance(AllowanceScope.DAY, micros=0), True),
    ],
)
def test_an_allowance_is_used_up_when_either_of_its_limits_is_reached(
    allowance: Allowance, *, over: bool
) -> None:
    standing = AllowanceState(allowance, Amount(6, 15), reserved=Amount(4, 5))

    assert find_exhausted([standing]) == (allowance if over else None)


def test_the_first_allowance_that_is_used_up_is_named() -> None:
    free = AllowanceState(Allowance(AllowanceScope.RUN), Amount())
    empty = AllowanceState(Allowance(AllowanceScope.USER, micros=0), Amount())
    other = AllowanceState(Allowance(AllowanceScope.DAY, micros=0), Amount())

    assert find_exhausted([free, empty, other]) == empty.allowance
    assert find_exhausted([]) is None


def test_raising_an_allowance_adds_to_the_limits_it_has() -> None:
    more = Amount(5, 50)

    assert raise_by(Allowance(AllowanceScope.DAY, 10, 100), more) == Allowance(
        AllowanceScope.DAY, 15, 150
    )
    assert raise_by(Allowance(AllowanceScope.DAY, micros=10), more) == Allowance(
        AllowanceScope.DAY, micros=15
    )
    assert raise_by(Allowance(AllowanceScope.DAY, tokens=100), more) == Allowance(
        AllowanceScope.DAY, tokens=150
    )


@pytest.mark.parametrize("more", [Amount(), Amount(-1, 5), Amount(5, -1), Amount(0, 5)])
def test_an_allowance_is_raised_by_something(more: Amount) -> None:
    with pytest.raises(BadRequest, match="does not raise"):
        raise_by(Allowance(AllowanceScope.DAY, micros=10), more)


@pytest.mark.parametrize(
    ("zone", "day", "start", "length"),
    [
        ("UTC", "2026-11-16", "2026-11-16T00:00", DAY),
        ("Europe/Berlin", "2026-03-29", "2026-03-28T23:00", 23 * HOUR),
        ("Europe/Berlin", "2026-10-25", "2026-10-24T22:00", 25 * HOUR),
        ("Australia/Lord_Howe", "2026-04-05", "2026-04-04T13:00", 24.5 * HOUR),
        # Midnight does not exist; the day begins at one.
        ("America/Havana", "2026-03-08", "2026-03-08T05:00", 23 * HOUR),
        # Midnight comes twice; the day begins with the first.
        ("America/Havana", "2026-11-01", "2026-11-01T04:00", 25 * HOUR),
        # The hour before midnight comes twice.
        ("America/Santiago", "2026-04-04", "2026-04-04T03:00", 25 * HOUR),
        ("Pacific/Kiritimati", "2026-11-16", "2026-11-15T10:00", DAY),
        # The day after it was left out.
        ("Pacific/Apia", "2011-12-29", "2011-12-29T10:00", DAY),
    ],
)
def test_a_day_lasts_from_midnight_to_midnight_whatever_the_clocks_do(
    zone: str, day: str, start: str, length: timedelta
) -> None:
    begins = datetime.fromisoformat(start).replace(tzinfo=UTC)

    for moment in (begins, begins + length / 2, begins + length - TICK):
        assert local_day(moment, zone=zone) == (begins, begins + length)
        assert moment.astimezone(ZoneInfo(zone)).date() == date.fromisoformat(day)


#: So many days take long enough without being measured.
@pytest.mark.unmeasured
def test_in_every_zone_the_days_of_a_year_follow_each_other() -> None:
    for zone in ZONES:
        moment, days = datetime(2026, 1, 1, tzinfo=UTC), 0
        while moment.year == 2026:
            start, end = local_day(moment, zone=zone)
            assert start == moment if days else start <= moment
            moment, days = end, days + 1

        assert days in (365, 366)


@given(
    st.sampled_from(ZONES),
    st.datetimes(datetime(2026, 1, 1), datetime(2037, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_a_moment_lies_in_its_day_and_days_touch(zone: str, moment: datetime) -> None:
    start, end = local_day(moment, zone=zone)

    assert start <= moment < end
    assert local_day(start, zone=zone) == local_day(end - TICK, zone=zone) == (start, end)
    assert local_day(start - TICK, zone=zone)[1] == start
    assert local_day(end, zone=zone)[0] == end


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(BadSchedule, match="no time zone 'Mars'"):
        local_day(NOON, zone="Mars")


@pytest.mark.parametrize(
    ("text", "micros", "tokens"),
    [
        ("2.50 USD, 500000 tokens", 2_500_000, 500_000),
        ("$2.50", 2_500_000, None),
        ("$ 5, 500000 tokens", 5_000_000, 500_000),
        ("10 usd", 10_000_000, None),
        ("7 Tokens", None, 7),
        ("0.000001 USD", 1, None),
        ("$ 2, 7 tokens", 2_000_000, 7),
        ("None", None, None),
    ],
)
def test_a_limit_is_read_from_words(text: str, micros: int | None, tokens: int | None) -> None:
    assert parse_limit(text, AllowanceScope.DAY) == Allowance(AllowanceScope.DAY, micros, tokens)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2",
        "2 EUR",
        "two USD",
        "$",
        "$2 USD",
        "-1 USD",
        "1 USD, 2 USD",
        "0.5 tokens",
        "1e99 USD",
        "nan USD",
    ],
)
def test_a_malformed_limit_is_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        parse_limit(text, AllowanceScope.RUN)


def test_a_price_is_read_from_words() -> None:
    assert parse_price("3 in, 15 out") == Price(3_000_000, 15_000_000)
    whole = parse_price("3 in, 15 out, 0.3 cache read, 3.75 cache write")
    assert (whole.cache_read, whole.cache_write) == (300_000, 3_750_000)


@pytest.mark.parametrize("text", ["", "3", "3 in", "3 in, 3 in, 15 out", "x in, 15 out", "3 inn"])
def test_a_malformed_price_is_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        parse_price(text)


def test_a_limit_is_lowered_to_the_most_that_is_allowed() -> None:
    day = AllowanceScope.DAY
    limit = Allowance(day, micros=10, tokens=None)

    assert cap(limit, None) == limit
    assert cap(limit, Allowance(day, 5, 100)) == Allowance(day, 5, 100)
    assert cap(limit, Allowance(day, 20)) == limit
    assert cap(Allowance(day), Allowance(day)) == Allowance(day)


def test_a_limit_is_described_in_words() -> None:
    assert format_limit(Allowance(AllowanceScope.DAY, 2_500_000, 5000)) == "$2.50 or 5,000 tokens"
    assert format_limit(Allowance(AllowanceScope.DAY, tokens=5000)) == "5,000 tokens"
    assert format_limit(Allowance(AllowanceScope.DAY)) == ""
