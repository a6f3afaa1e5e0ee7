"""From words to a schedule: a closed grammar of phrases, cron expressions and ISO times.

A wrong time that looks right is the worst fault a schedule can have. So what is ambiguous, or not
wholly understood, is refused with what would be right.
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
    "Say, for example, `every 30m`, `every weekday at 9`, `in 2h` or `tomorrow at 17:00`, "
    "or give a cron expression or an ISO time with an offset."
)
TIME_HINT = "Say a time such as `at 9`, `at 9:30`, `at 9am`, `at 17:00` or `at noon`."
EVERY_HINT = "Say `every day at 9`, `every monday at 9` or `every month on the 1st at 9`."
DURATION_HINT = "Say, for example, `30m`, `2h`, `1d` or `1 hour 30 minutes`."
NUMBER_HINT = "Say, for example, `in 2h`, `every 2h` or `at 2`."
DATE_HINT = "Say `2027-01-31 at 09:00`, or add an offset: `2027-01-31T09:00:00+01:00`."
DAY_HINT = "Say `every friday at 9` for each of them, or a date: `2027-01-29 at 09:00`."


@dataclass(frozen=True, slots=True)
class PhraseContext:
    """Where and when the words are said."""

    zone: ZoneInfo
    now: datetime

    @property
    def today(self) -> date:
        return self.now.astimezone(self.zone).date()


Reader = Callable[[re.Match[str], PhraseContext], Schedule]


def parse_schedule(text: str, *, zone: str, now: datetime) -> Schedule:
    """Read a schedule that starts now; clock times are those of `zone`, on the 24-hour clock.

    A single local time that comes twice, when clocks go back, is refused, naming both.
    """
    here = PhraseContext(cron.find_zone(zone), now)
    words = _tidy(text)
    for pattern, read in PHRASES:
        if found := re.fullmatch(pattern, words):
            schedule = read(found, here)
            check_schedule(schedule, now=now)
            return schedule
    raise BadSchedule(f"{words!r} is not wholly understood.", hint=PHRASE_HINT)


def parse_duration(text: str) -> timedelta:
    """Read a length of time: `30m`, `1h30m`, `1.5 hours`, `2 hours and 30 minutes`."""
    words = _tidy(text)
    found = re.fullmatch(DURATION, words)
    if not found or not words:
        raise BadSchedule(f"{words!r} is not a length of time.", hint=DURATION_HINT)
    parts = {unit: float(number) for unit, number in found.groupdict().items() if number}
    duration = timedelta(**parts)
    if not duration:
        raise BadSchedule(f"{words!r} is no time at all.", hint=DURATION_HINT)
    if duration > MAX_SCHEDULE_AHEAD:
        raise BadSchedule(f"{words!r} is more than ten years.", hint="Check the unit.")
    return duration


def _tidy(text: str) -> str:
    if len(text) > MAX_PHRASE_CHARS:
        raise BadSchedule(
            f"A schedule has at most {MAX_PHRASE_CHARS} characters.", hint=PHRASE_HINT
        )
    # Digits of other scripts would pass for digits further down.
    if not re.fullmatch(r"[\s\x20-\x7e]*", text, re.ASCII):
        raise BadSchedule(f"{text!r} has characters that no schedule has.", hint=PHRASE_HINT)
    return " ".join(text.lower().split()).removesuffix(".").rstrip()


def _at_once(_found: re.Match[str], _here: PhraseContext) -> Schedule:
    return Immediate()


def _in(found: re.Match[str], here: PhraseContext) -> Schedule:
    return Scheduled(here.now + _length(found))


def _every(found: re.Match[str], here: PhraseContext) -> Schedule:
    return Interval(_length(found), here.now)


def _length(found: re.Match[str]) -> timedelta:
    return parse_duration(f"1 {found['unit']}" if found["unit"] else found["length"])


def _on_days(days: str) -> Reader:
    """Read the times of day that go with the last three fields of a cron expression."""
    return lambda found, here: _by_clock(found["at"], days, here)


def _on_weekdays(found: re.Match[str], here: PhraseContext) -> Schedule:
    names = re.split(AND, found["days"])
    if not found["every"] and len(names) == 1 and not re.fullmatch(PLURAL, names[0]):
        raise BadSchedule(f"{found[0]!r} could mean more than one day.", hint=DAY_HINT)
    chosen = {name[:3] for name in names}
    fields = [str((nth + 1) % 7) for nth, day in enumerate(DAY_NAMES) if day[:3] in chosen]
    return _by_clock(found["at"], f"* * {','.join(fields)}", here)


def _monthly(found: re.Match[str], here: PhraseContext) -> Schedule:
    if found["last"]:
        return _by_clock(found["at"], "L * *", here)
    day = int(found["day"])
    if not 1 <= day <= 28:
        raise BadSchedule(
            f"Not every month has a day {day}.", hint="Say one from 1st to 28th, or `last day`."
        )
    return _by_clock(found["at"], f"{day} * *", here)


def _by_clock(text: str, days: str, here: PhraseContext) -> Schedule:
    texts = re.split(AND, text)
    times = [_read_time(each) for each in texts]
    halves = {each.endswith(("m", "m.")) for each in texts if each not in NAMED_TIMES}
    if len(halves) > 1:
        raise BadSchedule(f"{text!r} has am or pm for some times only.", hint="Say it for each.")
    if len({each.minute for each in times}) > 1:
        raise BadSchedule(
            f"{text!r} is more than one schedule.",
            hint="Several times must share their minute, such as `at 9:30 and 17:30`.",
        )
    hours = ",".join(str(hour) for hour in sorted({each.hour for each in times}))
    return Cron(f"{times[0].minute} {hours} {days}", here.zone.key)


def _on_day(found: re.Match[str], here: PhraseContext) -> Schedule:
    ahead = {"today": 0, "tomorrow": 1}.get(found["day"], 2)
    return _once(here.today + timedelta(days=ahead), _read_time(found["at"]), here)


def _on_date(found: re.Match[str], here: PhraseContext) -> Schedule:
    return _once(_read_date(found["date"], here), _read_time(found["at"]), here)


def _at(found: re.Match[str], here: PhraseContext) -> Schedule:
    at = _read_time(found["at"])
    is_over = max(_both_moments(here.today, at, here)) <= here.now
    return _once(here.today + timedelta(days=is_over), at, here)


def _iso(found: re.Match[str], here: PhraseContext) -> Schedule:
    _read_date(found["date"], here)
    return Scheduled(datetime.fromisoformat(found[0].upper()).astimezone(UTC))


def _once(day: date, at: time, here: PhraseContext) -> Schedule:
    first, second = _both_moments(day, at, here)
    if first == second:
        return Scheduled(first)
    local = [moment.astimezone(here.zone) for moment in (first, second)]
    said = f"{day} at {at:%H:%M} ({here.zone.key})"
    if first > second:
        raise BadSchedule(
            f"{said} does not exist: clocks go forward.",
            hint=f"Say `{local[0]:%Y-%m-%d at %H:%M}`.",
        )
    raise BadSchedule(
        f"{said} comes twice: clocks go back.",
        hint=f"Say `{local[0].isoformat()}` or `{local[1].isoformat()}`.",
    )


def _both_moments(day: date, at: time, here: PhraseContext) -> tuple[datetime, datetime]:
    """Give a local time by the offset before and after a change: the same unless one is near."""
    local = datetime.combine(day, at, here.zone)
    return local.astimezone(UTC), local.replace(fold=1).astimezone(UTC)


def _read_time(text: str) -> time:
    text = NAMED_TIMES.get(text, text)
    if found := re.fullmatch(r"(0?[1-9]|1[0-2])(?::([0-5]\d))? ?([ap])\.?m\.?", text):
        return time(int(found[1]) % 12 + 12 * (found[3] == "p"), int(found[2] or 0))
    if found := re.fullmatch(r"([01]?\d|2[0-3])(?::([0-5]\d))?", text):
        return time(int(found[1]), int(found[2] or 0))
    raise BadSchedule(f"{text!r} is not a time of day.", hint=TIME_HINT)


def _read_date(text: str, here: PhraseContext) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise BadSchedule(f"There is no day {text}.", hint=DATE_HINT) from None
    # The ends of the calendar overflow when they are moved to another zone.
    if abs(day.year - here.now.year) > 20:
        raise BadSchedule(f"{text} is too far away.", hint="Check the year.")
    return day


def _cron(found: re.Match[str], here: PhraseContext) -> Schedule:
    return Cron(found[0].upper(), here.zone.key)


def _cron_by_name(found: re.Match[str], here: PhraseContext) -> Schedule:
    if found[0] not in NAMED_CRONS:
        raise BadSchedule(f"There is no {found[0]!r}.", hint=f"Say {', '.join(NAMED_CRONS)}.")
    return Cron(NAMED_CRONS[found[0]], here.zone.key)


def _refuse(why: str, hint: str) -> Reader:
    def refuse(found: re.Match[str], _here: PhraseContext) -> Schedule:
        raise BadSchedule(f"{found[0]!r} {why}.", hint=hint)

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
#: A bare hour needs its `at`: in `every day 2`, who knows what the 2 is.
AT = r" (?:at |(?=\d+(?::| ?[ap]\.?m)|noon|midnight))(?P<at>.+)"
#: Midnight lies between two days, so it does not go with one that is named.
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
    (r"", _refuse("is no schedule", PHRASE_HINT)),
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
    (r".* midnight", _refuse("could be either end of a day", "Say `at 00:00` or `at 23:59`.")),
    (rf"{DATE}[t ].*", _refuse("is not a date and a time with an offset", DATE_HINT)),
    (rf"{DATE}|today|(?:.* )?tomorrow", _refuse("lacks a time of day", TIME_HINT)),
    (rf"{FIELD} {FIELD}(?: \S+)*", _cron),
    (r"@.*", _cron_by_name),
    (r"[+-]?\d\S*(?: [a-z.]+)?", _refuse("could mean many times", NUMBER_HINT)),
    (
        rf"(?:on |every )?(?:{PLURAL}|(?:day|week|weekday|weekend|month|year)s?)|every {ONE_DAY}",
        _refuse("lacks a time of day", EVERY_HINT),
    ),
    (r"(?:dai|week|month|year)ly", _refuse("lacks a time of day", EVERY_HINT)),
    (rf"(?:on |this |next )?{ONE_DAY}\b.*", _refuse("could mean more than one day", DAY_HINT)),
    (r"(?:tonight|this|next)\b.*", _refuse("is not exact", DATE_HINT)),
    (
        r"every (?:other|second|2nd) .+",
        _refuse("can be counted in two ways", "Say `every 2 days`, or name the days of the week."),
    ),
    (r"every (?:(?P<unit>second|minute|hour)|(?P<length>[\d.+-].*))", _every),
)
