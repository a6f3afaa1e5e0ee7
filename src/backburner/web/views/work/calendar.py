"""The calendar: seven days with everything that will run, folded where it is much."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from backburner.actions.work.upcoming import PlanState, Upcoming, UpcomingEntry, UpcomingWork
from backburner.core.conversation import Kind
from backburner.core.schedule.cron import find_zone
from backburner.core.schedule.describe import MONTHS, WEEKDAYS, describe_duration
from backburner.web.display import Display
from backburner.web.rendering import count, load_words
from backburner.web.views.schedule import say_schedule

DAYS = 7
#: Weeks that can be looked ahead.
MAX_WEEKS = 52
_BURNERS = {
    PlanState.SCHEDULED: "waits",
    PlanState.NEEDS_YOU: "needs",
    PlanState.PAUSED: "paused",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownEntry:
    href: str
    title: str
    burner: str
    tone: str
    #: When, in a few letters.
    time: str
    at: datetime
    #: How often, if it is more than once.
    often: str
    note: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownDay:
    name: str
    date: str
    is_today: bool
    entries: Sequence[ShownEntry]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCalendar:
    days: Sequence[ShownDay]
    #: What runs all through these days.
    through: Sequence[ShownEntry]
    #: What runs after other work, or on events.
    untimed: Sequence[ShownEntry]
    range: str
    is_empty: bool
    all_paused: bool
    is_cut: bool
    week: int
    has_later: bool


def find_period(display: Display, week: int) -> tuple[datetime, datetime]:
    """Return the midnights between which a week lies; the first begins today."""
    first = display.local(display.now).date() + timedelta(days=DAYS * week)
    return _midnight(first, display), _midnight(first + timedelta(days=DAYS), display)


def show_calendar(found: Upcoming, display: Display, *, week: int) -> ShownCalendar:
    today = display.local(display.now).date()
    first = today + timedelta(days=DAYS * week)
    by_day = dict[date, list[ShownEntry]]()
    through = list[ShownEntry]()
    for entry in found.entries:
        begins, ends = (display.local(at).date() for at in _bounds(entry))
        is_one_day = begins == ends
        shown = show_entry(entry, display, is_one_day=is_one_day)
        (by_day.setdefault(begins, []) if is_one_day else through).append(shown)
    days = [
        _show_day(day, by_day.get(day, ()), today)
        for day in (first + timedelta(days=number) for number in range(DAYS))
    ]
    untimed = [_show_untimed(work, display) for work in found.untimed] if week == 0 else []
    words = load_words().calendar
    last = first + timedelta(days=DAYS - 1)
    return ShownCalendar(
        days=days,
        through=through,
        untimed=untimed,
        range=words.range.format(first=_name_date(first), last=_name_date(last)),
        is_empty=not (through or by_day),
        all_paused=found.all_paused,
        is_cut=found.is_cut,
        week=week,
        has_later=week < MAX_WEEKS,
    )


def show_entry(entry: UpcomingEntry, display: Display, *, is_one_day: bool) -> ShownEntry:
    words, times, work = load_words().calendar, entry.times, entry.work
    first, last = _bounds(entry)
    when, often = display.clock(first), ""
    if times.every is not None:
        number = str(times.count) if times.count < 1_000 else f"{times.count:,}"
        how_many = (
            words.or_more.format(number=number)
            if times.or_more
            else count(words.times, times.count).replace(str(times.count), number)
        )
        often = f"{words.every.format(often=describe_duration(times.every))}, {how_many}"
        if is_one_day:
            when = words.from_to.format(first=when, last=display.clock(last))
    note = _note(work, is_due=entry.is_due)
    when = str(words.due) if entry.is_due else when
    title = work.conversation.title or load_words().common.untitled
    label = [title, display.moment(first), often, note]
    return ShownEntry(
        href=_address(work),
        title=title,
        burner=_BURNERS[work.state],
        tone=work.state.value,
        time=when,
        at=first,
        often=often,
        note=note,
        label=", ".join(part for part in label if part),
    )


def _show_untimed(work: UpcomingWork, display: Display) -> ShownEntry:
    said = say_schedule(work.schedule, display)
    title = work.conversation.title or load_words().common.untitled
    return ShownEntry(
        href=_address(work),
        title=title,
        burner=_BURNERS[work.state],
        tone=work.state.value,
        time=said,
        at=display.now,
        often="",
        note=_note(work),
        label=", ".join(part for part in (title, said, _note(work)) if part),
    )


def _show_day(day: date, entries: Sequence[ShownEntry], today: date) -> ShownDay:
    return ShownDay(
        name=load_words().calendar.today if day == today else WEEKDAYS[day.weekday()],
        date=_name_date(day),
        is_today=day == today,
        entries=entries,
    )


def _bounds(entry: UpcomingEntry) -> tuple[datetime, datetime]:
    return entry.times.first_at, entry.times.last_at


def _note(work: UpcomingWork, *, is_due: bool = False) -> str:
    words = load_words().calendar
    if work.state is PlanState.NEEDS_YOU:
        return str(words.due_waits_for_you if is_due else words.waits_for_you)
    return str(words.paused) if work.state is PlanState.PAUSED else ""


def _address(work: UpcomingWork) -> str:
    place = "c" if work.conversation.kind in (Kind.JOB, Kind.DISCOVERY) else "t"
    return f"/{place}/{work.conversation.id}"


def _name_date(day: date) -> str:
    return f"{day.day}\N{NO-BREAK SPACE}{MONTHS[day.month - 1][:3]}"


def _midnight(day: date, display: Display) -> datetime:
    return datetime.combine(day, time(), find_zone(display.zone))
