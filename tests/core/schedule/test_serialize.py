"""Schedules to JSON and back, and JSON that is not a schedule."""

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.requirements import requirement

from backburner.core.errors import BadSchedule
from backburner.core.ids import ConversationId
from backburner.core.schedule import (
    MAX_SCHEDULE_AHEAD,
    After,
    AfterCondition,
    CatchUp,
    Cron,
    Event,
    Immediate,
    Interval,
    Schedule,
    Scheduled,
)
from backburner.core.schedule.serialize import from_json, to_json

NOW = datetime(2026, 11, 15, 9, tzinfo=UTC)
HALF_HOUR = timedelta(minutes=30)
OTHER = ConversationId("c_other")
SHAPES: list[tuple[Schedule, dict[str, Any]]] = [
    (Immediate(), {"type": "immediate"}),
    (Scheduled(NOW), {"type": "scheduled", "run_at": "2026-11-15T09:00:00+00:00"}),
    (
        Cron("0 9 * * 1-5", "Europe/Berlin"),
        {
            "type": "cron",
            "cron_expression": "0 9 * * 1-5",
            "timezone": "Europe/Berlin",
            "catch_up": "once",
        },
    ),
    (
        Interval(HALF_HOUR, NOW, CatchUp.SKIP),
        {
            "type": "interval",
            "every": 1800,
            "anchor": "2026-11-15T09:00:00+00:00",
            "catch_up": "skip",
        },
    ),
    (
        Event("file", {"path": "notes", "deep": [1, {"a": None}]}),
        {"type": "event", "source": "file", "config": {"path": "notes", "deep": [1, {"a": None}]}},
    ),
    (
        After(OTHER, AfterCondition.ANY, once=True),
        {"type": "after", "conversation": "c_other", "on": "any", "once": True},
    ),
]


@requirement("B-kinds")
@pytest.mark.parametrize(("schedule", "value"), SHAPES)
def test_each_kind_of_schedule_has_its_own_fields(
    schedule: Schedule, value: dict[str, Any]
) -> None:
    assert to_json(schedule) == value
    assert from_json(value) == schedule


names = st.text(min_size=1, max_size=20)
moments = st.datetimes(timezones=st.just(UTC))
catch_ups = st.sampled_from(CatchUp)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
schedules = st.one_of(
    st.builds(Immediate),
    st.builds(Scheduled, moments),
    st.builds(Cron, names, names, catch_ups),
    st.builds(
        Interval, st.timedeltas(timedelta(seconds=1), MAX_SCHEDULE_AHEAD), moments, catch_ups
    ),
    st.builds(Event, names, st.dictionaries(st.text(), plain, max_size=3)),
    st.builds(After, names.map(ConversationId), st.sampled_from(AfterCondition), st.booleans()),
)


@given(schedules)
def test_a_schedule_survives_the_way_to_json_text_and_back(schedule: Schedule) -> None:
    assert from_json(json.loads(json.dumps(to_json(schedule)))) == schedule


def test_fields_with_a_default_may_be_omitted() -> None:
    anchor = NOW.isoformat()

    assert from_json({"type": "cron", "cron_expression": "x", "timezone": "y"}) == Cron("x", "y")
    assert from_json({"type": "cron", "cron_expression": "x"}, zone="z") == Cron("x", "z")
    other = {"type": "cron", "cron_expression": "x", "timezone": "y"}
    assert from_json(other, zone="z") == Cron("x", "y")
    assert from_json({"type": "immediate"}, zone="z") == Immediate()
    assert from_json({"type": "interval", "every": 1.5, "anchor": anchor}) == Interval(
        timedelta(seconds=1.5), NOW
    )
    assert from_json({"type": "event", "source": "file"}) == Event("file", {})
    assert from_json({"type": "after", "conversation": OTHER}) == After(OTHER)


@pytest.mark.parametrize("text", ["2026-11-15T10:00:00+01:00", "2026-11-15 09:00Z"])
def test_a_time_with_any_offset_is_taken_as_utc(text: str) -> None:
    schedule = from_json({"type": "scheduled", "run_at": text})

    assert schedule == Scheduled(NOW)
    assert isinstance(schedule, Scheduled)
    assert schedule.run_at.tzinfo is UTC


def test_a_time_is_written_in_utc() -> None:
    berlin = timezone(timedelta(hours=1))

    value = to_json(Scheduled(NOW.astimezone(berlin)))
    assert value["run_at"] == "2026-11-15T09:00:00+00:00"


@pytest.mark.parametrize(
    "value",
    [
        None,
        "immediate",
        [],
        {},
        {"type": None},
        {"type": []},
        {"type": "sometimes"},
        {"type": "immediate", "run_at": "2026-11-15T09:00:00Z"},
        {"type": "immediate", 1: 2},
    ],
)
def test_json_that_is_no_schedule_is_refused(value: object) -> None:
    with pytest.raises(BadSchedule) as refused:
        from_json(value)

    assert refused.value.hint


ONCE, CRON, INTERVAL, EVENT, AFTER = (value for _, value in SHAPES[1:])


def odd(whole: dict[str, Any], name: str, *values: object) -> list[tuple[object, str, object]]:
    return [(whole, name, value) for value in values]


@pytest.mark.parametrize(
    ("whole", "name", "value"),
    [
        *odd(ONCE, "run_at", None, 1, "", "soon", "2026-11-15", "2026-11-15T09:00:00"),
        *odd(ONCE, "run_at", "20261115T090000Z", "2026-11-15x09:00:00Z", "\ud800"),
        *odd(ONCE, "run_at", "9999-12-31T23:59:59-01:00"),
        *odd(CRON, "cron_expression", None, "", 5, ["* * * * *"]),
        *odd(CRON, "timezone", None, "", {}),
        *odd(CRON, "catch_up", None, "", "all", [], {}),
        *odd(INTERVAL, "every", None, "30m", 0, -1, 0.5, 10**400, 1e300),
        (INTERVAL, "every", True),
        *odd(INTERVAL, "every", math.nan, math.inf, -math.inf),
        *odd(INTERVAL, "anchor", None, 0, "2026-11-15T09:00:00"),
        *odd(EVENT, "source", None, "", 1),
        *odd(EVENT, "config", None, [], "x", {1: 2}),
        *odd(AFTER, "conversation", None, "", 1),
        *odd(AFTER, "on", None, "failure", 1),
        *odd(AFTER, "once", None, 1, "yes"),
        *((whole, "colour", "red") for _, whole in SHAPES),
    ],
)
def test_an_odd_field_is_refused(whole: dict[str, Any], name: str, value: object) -> None:
    with pytest.raises(BadSchedule) as refused:
        from_json({**whole, name: value})

    assert name in refused.value.message
    assert refused.value.hint


@given(st.dictionaries(st.sampled_from(sorted({key for _, s in SHAPES for key in s})), plain))
def test_any_json_is_read_or_refused(value: dict[str, Any]) -> None:
    for _, whole in SHAPES:
        try:
            schedule = from_json({**whole, **value, "type": whole["type"]})
        except BadSchedule:
            continue

        assert from_json(to_json(schedule)) == schedule
