"""Parses schedules: a closed grammar of phrases, cron expressions and ISO times.

A wrong time that looks right is the worst mistake a schedule can have. So text that is ambiguous
or not understood completely is refused, with a hint how to write it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from backburner.core.errors import BadSchedule
from backburner.core.schedule import (
    MAX_SCHEDULE_AHEAD,
    Cron,
    Immediate,
    Interval,
    Schedule,
    Scheduled,
    check_schedule,
    cron,
)

MAX_PHRASE_CHARS = 200
PHRASE_HINT = (
    "Use, for example, `every 30m`, `every weekday at 9`, `in 2h` or `tomorrow at 17:00`, "
    "a cron expression, or an ISO time with an offset."
)
TIME_HINT = "Use a time such as `at 9`, `at 9:30`, `at 9am`, `at 17:00` or `at noon`."
EVERY_HINT = "Use `every day at 9`, `every monday at 9` or `every month on the 1st at 9`."
DURATION_HINT = "Use, for example, `30m`, `2h`, `1d` or `1 hour 30 minutes`."
#: Whole phrases, as readers of a hint take its examples over.
IN_HINT = "Use, for example, `in 30m`, `in 2h` or `in 1 hour 30 minutes`."
INTERVAL_HINT = "Use, for example, `every 30m`, `every 2h`, `every 1d` or `every day at 9`."
NUMBER_HINT = "Use, for example, `in 2h`, `every 2h` or `at 2`."
DATE_HINT = "Use `2027-01-31 at 09:00`, or add an offset: `2027-01-31T09:00:00+01:00`."
DAY_HINT = "Use `every friday at 9` for every week, or a date: `2027-01-29 at 09:00`."


@dataclass(frozen=True, slots=True)
class PhraseContext:
    """The time zone and current time that a phrase refers to."""

    zone: ZoneInfo
    now: datetime

    @property
    def today(self) -> date:
        return self.now.astimezone(self.zone).date()


Reader = Callable[[re.Match[str], PhraseContext], Schedule]


def parse_schedule(text: str, *, zone: str, now: datetime) -> Schedule:
    """Parse a schedule that starts now; clock times are in `zone`, on the 24-hour clock.

    A single local time that occurs twice, when clocks go back, is refused; the hint names both.
    """
    context = PhraseContext(cron.find_zone(zone), now)
    words = _tidy(text)
    for pattern, read in PHRASES:
        if match := re.fullmatch(pattern, words):
            schedule = read(match, context)
            check_schedule(schedule, now=now)
            return schedule
    raise BadSchedule(f"{words!r} is not a schedule.", hint=PHRASE_HINT)


def parse_duration(text: str, *, hint: str = DURATION_HINT) -> timedelta:
    """Parse a duration: `30m`, `1h30m`, `1.5 hours`, `2 hours and 30 minutes`."""
    words = _tidy(text)
    match = re.fullmatch(DURATION, words)
    if not match or not words:
        raise BadSchedule(f"{words!r} is not a duration.", hint=hint)
    parts = {unit: float(number) for unit, number in match.groupdict().items() if number}
    duration = timedelta(**parts)
    if not duration:
        raise BadSchedule(f"{words!r} is zero.", hint=hint)
    if duration > MAX_SCHEDULE_AHEAD:
        raise BadSchedule(f"{words!r} is more than ten years.", hint="Check the unit.")
    return duration


def _tidy(text: str) -> str:
    if len(text) > MAX_PHRASE_CHARS:
        raise BadSchedule(
            f"A schedule has at most {MAX_PHRASE_CHARS} characters.", hint=PHRASE_HINT
        )
    # Digits of other scripts would match as digits below.
    if not re.fullmatch(r"[\s\x20-\x7e]*", text, re.ASCII):
        raise BadSchedule(f"{text!r} has characters that are not allowed.", hint=PHRASE_HINT)
    return " ".join(text.lower().split()).removesuffix(".").rstrip()


def _at_once(_match: re.Match[str], _context: PhraseContext) -> Schedule:
    return Immediate()


def _in(match: re.Match[str], context: PhraseContext) -> Schedule:
    return Scheduled(context.now + _length(match, IN_HINT))


def _every(match: re.Match[str], context: PhraseContext) -> Schedule:
    return Interval(_length(match, INTERVAL_HINT), context.now)


def _length(match: re.Match[str], hint: str) -> timedelta:
    length = f"1 {match['unit']}" if match["unit"] else match["length"]
    return parse_duration(length, hint=hint)


def _on_days(days: str) -> Reader:
    """Make a reader for times of day on the given day, month and weekday fields of cron."""
    return lambda match, context: _by_clock(match["at"], days, context)


def _on_weekdays(match: re.Match[str], context: PhraseContext) -> Schedule:
    names = re.split(AND, match["days"])
    if not match["every"] and len(names) == 1 and not re.fullmatch(PLURAL, names[0]):
        raise BadSchedule(f"{match[0]!r} could mean more than one day.", hint=DAY_HINT)
    chosen = {name[:3] for name in names}
    fields = [str((nth + 1) % 7) for nth, day in enumerate(DAY_NAMES) if day[:3] in chosen]
    return _by_clock(match["at"], f"* * {','.join(fields)}", context)


def _monthly(match: re.Match[str], context: PhraseContext) -> Schedule:
    if match["last"]:
        return _by_clock(match["at"], "L * *", context)
    day = int(match["day"])
    if not 1 <= day <= 28:
        raise BadSchedule(
            f"Not every month has a day {day}.",
            hint="Use a day from 1st to 28th, or `last day`.",
        )
    return _by_clock(match["at"], f"{day} * *", context)


def _by_clock(text: str, days: str, context: PhraseContext) -> Schedule:
    texts = re.split(AND, text)
    times = [_read_time(each) for each in texts]
    halves = {each.endswith(("m", "m.")) for each in texts if each not in NAMED_TIMES}
    if len(halves) > 1:
        raise BadSchedule(
            f"{text!r} has am or pm for some times only.", hint="Use it for all times."
        )
    if len({each.minute for each in times}) > 1:
        raise BadSchedule(
            f"{text!r} is more than one schedule.",
            hint="All times must have the same minute, such as `at 9:30 and 17:30`.",
        )
    hours = ",".join(str(hour) for hour in sorted({each.hour for each in times}))
    return Cron(f"{times[0].minute} {hours} {days}", context.zone.key)


def _on_day(match: re.Match[str], context: PhraseContext) -> Schedule:
    ahead = {"today": 0, "tomorrow": 1}.get(match["day"], 2)
    return _once(context.today + timedelta(days=ahead), _read_time(match["at"]), context)


def _on_date(match: re.Match[str], context: PhraseContext) -> Schedule:
    return _once(_read_date(match["date"], context), _read_time(match["at"]), context)


def _at(match: re.Match[str], context: PhraseContext) -> Schedule:
    at = _read_time(match["at"])
    is_over = max(_both_moments(context.today, at, context)) <= context.now
    return _once(context.today + timedelta(days=is_over), at, context)


def _iso(match: re.Match[str], context: PhraseContext) -> Schedule:
    _read_date(match["date"], context)
    return Scheduled(datetime.fromisoformat(match[0].upper()).astimezone(UTC))


def _once(day: date, at: time, context: PhraseContext) -> Schedule:
    first, second = _both_moments(day, at, context)
    text = f"{day} at {at:%H:%M} ({context.zone.key})"
    if max(first, second) <= context.now:
        now = context.now.astimezone(context.zone)
        raise BadSchedule(
            f"{text} is in the past.", hint=f"It is now {now:%Y-%m-%d, %H:%M}; choose a later time."
        )
    if first == second:
        return Scheduled(first)
    local = [moment.astimezone(context.zone) for moment in (first, second)]
    if first > second:
        raise BadSchedule(
            f"{text} does not exist: clocks go forward.",
            hint=f"Use `{local[0]:%Y-%m-%d at %H:%M}`.",
        )
    raise BadSchedule(
        f"{text} occurs twice: clocks go back.",
        hint=f"Use `{local[0].isoformat()}` or `{local[1].isoformat()}`.",
    )


def _both_moments(day: date, at: time, context: PhraseContext) -> tuple[datetime, datetime]:
    """Convert a local time with the offsets before and after a clock change; usually equal."""
    local = datetime.combine(day, at, context.zone)
    return local.astimezone(UTC), local.replace(fold=1).astimezone(UTC)


def _read_time(text: str) -> time:
    text = NAMED_TIMES.get(text, text)
    if match := re.fullmatch(r"(0?[1-9]|1[0-2])(?::([0-5]\d))? ?([ap])\.?m\.?", text):
        return time(int(match[1]) % 12 + 12 * (match[3] == "p"), int(match[2] or 0))
    if match := re.fullmatch(r"([01]?\d|2[0-3])(?::([0-5]\d))?", text):
        return time(int(match[1]), int(match[2] or 0))
    raise BadSchedule(f"{text!r} is not a time of day.", hint=TIME_HINT)


def _read_date(text: str, context: PhraseContext) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise BadSchedule(f"There is no day {text}.", hint=DATE_HINT) from None
    # The ends of the calendar overflow when they are converted to another zone.
    if abs(day.year - context.now.year) > 20:
        raise BadSchedule(f"{text} is too far away.", hint="Check the year.")
    return day


def _cron(match: re.Match[str], context: PhraseContext) -> Schedule:
    return Cron(match[0].upper(), context.zone.key)


def _cron_by_name(match: re.Match[str], context: PhraseContext) -> Schedule:
    if match[0] not in NAMED_CRONS:
        raise BadSchedule(
            f"There is no {match[0]!r}.", hint=f"Use one of: {', '.join(NAMED_CRONS)}."
        )
    return Cron(NAMED_CRONS[match[0]], context.zone.key)


def _refuse(why: str, hint: str) -> Reader:
    def refuse(match: re.Match[str], _context: PhraseContext) -> Schedule:
        raise BadSchedule(f"{match[0]!r} {why}.", hint=hint)

    return refuse


DAY_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
NAMED_TIMES = {"noon": "12:00", "midnight": "00:00"}
NAMED_CRONS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

NUMBER = r"\d{1,6}(?:\.\d{1,6})?"
UNITS = {"weeks": "w", "days": "d", "hours": "h|hrs?", "minutes": "m|mins?", "seconds": "s|secs?"}
DURATION = "".join(
    rf"(?:(?:^|(?<=[a-z])(?:,? and |, | )?)(?P<{unit}>{NUMBER}) ?(?:{short}|{unit}?))?"
    for unit, short in UNITS.items()
)

AND = r", and | and |, ?"
#: A bare hour needs its `at`: in `every day 2`, the 2 is ambiguous.
AT = r" (?:at |(?=\d+(?::| ?[ap]\.?m)|noon|midnight))(?P<at>.+)"
#: Midnight is between two days, so it is refused with a named day.
BY_DAY = rf"(?!.* midnight){AT}"
PLURAL = f"(?:{'|'.join(DAY_NAMES)})s"
ONE_DAY = f"(?:{PLURAL}|{'|'.join(DAY_NAMES)}|tues|thurs|{'|'.join(day[:3] for day in DAY_NAMES)})"
WEEKDAY_LIST = rf"(?P<days>{ONE_DAY}(?:(?:{AND}){ONE_DAY})*)"
MON_FRI = r"(?:every |on )?mon(?:day)?(?:-| to | through )fri(?:day)?"
NTH = r"(?:(?P<day>\d\d?)(?:st|nd|rd|th)|(?P<last>last day))"
DATE = r"(?P<date>\d{4}-\d\d-\d\d)"
CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?"
OFFSET = r"(?:z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)"
FIELD = r"[\d*][\d*,/-]*"

#: Tried from first to last.
PHRASES: tuple[tuple[str, Reader], ...] = (
    (r"", _refuse("is not a schedule", PHRASE_HINT)),
    (r"now|at once|immediately", _at_once),
    (r"in (?:an? (?P<unit>second|minute|hour|day|week)|(?P<length>[\d.+-].*))", _in),
    (r"(?P<unit>hour)ly", _every),
    (rf"(?:every day|daily){AT}", _on_days("* * *")),
    (rf"(?:every weekday|(?:on )?weekdays|{MON_FRI}){BY_DAY}", _on_days("* * 1-5")),
    (rf"(?:on )?weekends{BY_DAY}", _on_days("* * 6,0")),
    (rf"(?:(?P<every>every |weekly on )|on )?{WEEKDAY_LIST}{BY_DAY}", _on_weekdays),
    (rf"(?:every month|monthly) on the {NTH}{BY_DAY}", _monthly),
    (rf"on the {NTH} of (?:every|each) month{BY_DAY}", _monthly),
    (rf"(?P<day>today|tomorrow|(?:the )?day after tomorrow){BY_DAY}", _on_day),
    (rf"(?:on )?{DATE}(?= at ){BY_DAY}", _on_date),
    (r"at (?P<at>.+)", _at),
    (rf"{DATE}[t ]{CLOCK}{OFFSET}", _iso),
    (r".* midnight", _refuse("could be either end of a day", "Use `at 00:00` or `at 23:59`.")),
    (rf"{DATE}[t ].*", _refuse("is not a date and a time with an offset", DATE_HINT)),
    (rf"{DATE}|today|(?:.* )?tomorrow", _refuse("lacks a time of day", TIME_HINT)),
    (rf"{FIELD} {FIELD}(?: \S+)*", _cron),
    (r"@.*", _cron_by_name),
    (r"[+-]?\d\S*(?: [a-z.]+)?", _refuse("could mean several things", NUMBER_HINT)),
    (
        rf"(?:on |every )?(?:{PLURAL}|(?:day|week|weekday|weekend|month|year)s?)|every {ONE_DAY}",
        _refuse("lacks a time of day", EVERY_HINT),
    ),
    (r"(?:dai|week|month|year)ly", _refuse("lacks a time of day", EVERY_HINT)),
    (rf"(?:on |this |next )?{ONE_DAY}\b.*", _refuse("could mean more than one day", DAY_HINT)),
    (r"(?:tonight|this|next)\b.*", _refuse("is not exact", DATE_HINT)),
    (
        r"every (?:other|second|2nd) .+",
        _refuse("can be counted in two ways", "Use `every 2 days`, or name the days of the week."),
    ),
    (r"every (?:(?P<unit>second|minute|hour)|(?P<length>[\d.+-].*))", _every),
)
