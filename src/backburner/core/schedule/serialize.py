"""Schedules as JSON, as they are stored and as callers send them.

Only the format is checked here; `check_schedule` checks whether work can start with a schedule.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar, assert_never

from backburner.core.errors import BadSchedule
from backburner.core.ids import ConversationId
from backburner.core.schedule import (
    MAX_SCHEDULE_AHEAD,
    MIN_INTERVAL,
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

Choice = TypeVar("Choice", bound=StrEnum)


def to_json(schedule: Schedule) -> dict[str, Any]:
    match schedule:
        case Immediate():
            return {"type": "immediate"}
        case Scheduled(run_at):
            return {"type": "scheduled", "run_at": _time_to_json(run_at)}
        case Cron(expression, zone, catch_up):
            fields = {"cron_expression": expression, "timezone": zone, "catch_up": catch_up.value}
            return {"type": "cron", **fields}
        case Interval(every, anchor, catch_up):
            seconds = every.total_seconds()
            return {
                "type": "interval",
                "every": int(seconds) if seconds.is_integer() else seconds,
                "anchor": _time_to_json(anchor),
                "catch_up": catch_up.value,
            }
        case Event(source, config):
            return {"type": "event", "source": source, "config": dict(config)}
        case After(conversation, on, once):
            return {"type": "after", "conversation": conversation, "on": on.value, "once": once}
        case _:
            assert_never(schedule)


def from_json(value: object, *, zone: str | None = None) -> Schedule:
    """Read a schedule, refusing anything `to_json` would not write; defaults may be omitted.

    `zone` is the default time zone; None: a schedule that needs one has to name it.
    """
    if not isinstance(value, dict):
        raise BadSchedule("A schedule must be a JSON object.", hint=TYPES_HINT)
    fields = dict(value)
    kind = fields.pop("type", None)
    if not isinstance(kind, str) or kind not in READERS:
        raise BadSchedule(f"There is no schedule of type {kind!r}.", hint=TYPES_HINT)
    if kind == "cron" and fields.get("timezone") is None and zone is not None:
        fields["timezone"] = zone
    schedule = READERS[kind](fields)
    if fields:
        unknown = ", ".join(repr(name) for name in fields)
        raise BadSchedule(f"A schedule of type {kind!r} has no field {unknown}.", hint="Remove it.")
    return schedule


# Each reader removes the fields it knows, so that the rest is unknown.
Fields = dict[Any, Any]


def _cron(fields: Fields) -> Schedule:
    expression, zone = _take_text(fields, "cron_expression"), _take_text(fields, "timezone")
    return Cron(expression, zone, _take_choice(fields, "catch_up", CatchUp.ONCE))


def _interval(fields: Fields) -> Schedule:
    every, anchor = _take_duration(fields, "every"), _take_time(fields, "anchor")
    return Interval(every, anchor, _take_choice(fields, "catch_up", CatchUp.ONCE))


def _event(fields: Fields) -> Schedule:
    source, config = _take_text(fields, "source"), fields.pop("config", {})
    if not isinstance(config, dict) or not all(isinstance(name, str) for name in config):
        raise BadSchedule("`config` must be a JSON object.", hint="Use `{}` for none.")
    return Event(source, config)


def _after(fields: Fields) -> Schedule:
    conversation = ConversationId(_take_text(fields, "conversation"))
    on, once = _take_choice(fields, "on", AfterCondition.SUCCESS), fields.pop("once", False)
    if not isinstance(once, bool):
        raise BadSchedule("`once` must be true or false.", hint="Omit it for false.")
    return After(conversation, on, once)


READERS: dict[str, Callable[[Fields], Schedule]] = {
    "immediate": lambda _fields: Immediate(),
    "scheduled": lambda fields: Scheduled(_take_time(fields, "run_at")),
    "cron": _cron,
    "interval": _interval,
    "event": _event,
    "after": _after,
}
TYPES_HINT = f"`type` must be one of {', '.join(READERS)}."


def _take_text(fields: Fields, name: str) -> str:
    text = fields.pop(name, None)
    if not isinstance(text, str) or not text:
        raise BadSchedule(f"`{name}` is required and must be text.", hint="Put it in quotes.")
    return text


def _take_choice(fields: Fields, name: str, default: Choice) -> Choice:
    choices = type(default)
    try:
        return choices(fields.pop(name, default))
    except ValueError:
        raise BadSchedule(f"`{name}` is invalid.", hint=f"Use {' or '.join(choices)}.") from None


def _take_duration(fields: Fields, name: str) -> timedelta:
    seconds = fields.pop(name, None)
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if (
        not is_number
        or not MIN_INTERVAL.total_seconds() <= seconds <= MAX_SCHEDULE_AHEAD.total_seconds()
    ):
        raise BadSchedule(
            f"`{name}` must be a number of seconds, from one to ten years.",
            hint="Use, for example, 1800 for half an hour.",
        )
    return timedelta(seconds=seconds)


def _take_time(fields: Fields, name: str) -> datetime:
    text = _take_text(fields, name)
    try:
        moment = datetime.fromisoformat(text)
        # Python would accept any letter between date and time.
        if moment.utcoffset() is not None and text[10:11] in {"T", " "}:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise BadSchedule(
        f"`{name}` must be an ISO time with an offset.",
        hint="Use, for example, `2027-01-31T09:00:00+01:00`, or `Z` for UTC.",
    )


def _time_to_json(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()
