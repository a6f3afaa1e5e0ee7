"""Seven days of the calendar in the user's zone, also when clocks change."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from support.stage.make import NOON, conversation

from backburner.actions.work.upcoming import PlanState, Upcoming, UpcomingEntry, UpcomingWork
from backburner.core.conversation import Kind
from backburner.core.schedule import Cron, Event, Schedule
from backburner.core.schedule.calendar import PlannedTimes
from backburner.web.display import Display
from backburner.web.views.work.calendar import find_period, show_calendar

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
#: A Friday evening in Lisbon, while it is Saturday in Berlin; clocks go back on Sunday.
FRIDAY = datetime(2026, 10, 23, 22, 30, tzinfo=UTC)
DAILY = Cron("0 8 * * *", "Europe/Berlin")


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def entry(
    at: datetime, *, until: datetime | None = None, count: int = 1, **work: Any
) -> UpcomingEntry:
    every = None if until is None else (until - at) / (count - 1)
    times = PlannedTimes(count, at, until or at, every, work.pop("or_more", False))
    return UpcomingEntry(planned(**work), times, is_due=False)


def planned(
    state: PlanState = PlanState.SCHEDULED, schedule: Schedule = DAILY, **changes: Any
) -> UpcomingWork:
    usual: dict[str, Any] = {"kind": Kind.TASK, "title": "Inbox"}
    return UpcomingWork(conversation(**{**usual, **changes}), schedule, state)


def calendar(*entries: UpcomingEntry, untimed: tuple[UpcomingWork, ...] = ()) -> Upcoming:
    return Upcoming(
        start=NOON,
        end=NOON,
        zone="UTC",
        all_paused=False,
        entries=entries,
        untimed=untimed,
        is_cut=False,
    )


def test_a_week_begins_at_midnight_of_today_and_has_the_hours_that_it_has() -> None:
    berlin = Display(FRIDAY, "Europe/Berlin")
    start, end = find_period(berlin, 0)

    assert start == datetime(2026, 10, 23, 22, tzinfo=UTC)
    # Clocks go back, so these seven days have an hour more.
    assert end.astimezone(UTC) - start.astimezone(UTC) == 7 * DAY + HOUR
    assert find_period(berlin, 1)[0] == end
    shown = show_calendar(calendar(), berlin, week=0)
    assert [day.name for day in shown.days][:3] == ["Today", "Sunday", "Monday"]
    assert plain(shown.range) == "24 Oct to 30 Oct"
    lisbon = show_calendar(calendar(), Display(FRIDAY, "Europe/Lisbon"), week=0)
    assert lisbon.days[1].name == "Saturday"


def test_times_stand_under_their_local_day() -> None:
    before = datetime(2026, 10, 24, 6, tzinfo=UTC)
    after = datetime(2026, 10, 26, 7, tzinfo=UTC)
    shown = show_calendar(
        calendar(entry(before), entry(after)), Display(FRIDAY, "Europe/Berlin"), week=0
    )

    found = [[one.time for one in day.entries] for day in shown.days]
    assert found == [["8:00"], [], ["8:00"], [], [], [], []]


def test_many_times_are_one_entry_with_how_often_they_are() -> None:
    display = Display(NOON, "UTC")
    of_day = entry(NOON, until=NOON + 10 * HOUR, count=61)
    of_week = entry(NOON, until=NOON + 6 * DAY, count=8641)
    more = entry(NOON, until=NOON + 6 * DAY, count=7, or_more=True)
    shown = show_calendar(calendar(of_day, of_week, more), display, week=0)

    (only,) = shown.days[0].entries
    assert (only.time, plain(only.often)) == ("12:00 to 22:00", "every 10 minutes, 61 times")
    assert [plain(one.often) for one in shown.through] == [
        "every minute, 8,641 times",
        "every 24 hours, 7 times or more",
    ]
    assert not shown.is_empty


def test_what_is_due_is_now_and_says_whether_it_waits() -> None:
    due, asks = (
        replace(entry(NOON, state=state), is_due=True)
        for state in (PlanState.SCHEDULED, PlanState.NEEDS_YOU)
    )
    shown = show_calendar(calendar(due, asks), Display(NOON, "UTC"), week=0)

    entries = shown.days[0].entries
    assert [(one.time, one.note) for one in entries] == [("Now", ""), ("Now", "Waits for you")]


def test_what_waits_or_is_paused_says_so_and_leads_to_its_page() -> None:
    asks = entry(NOON, state=PlanState.NEEDS_YOU)
    paused = entry(NOON, state=PlanState.PAUSED, title="")
    job = entry(NOON, kind=Kind.JOB)
    event = planned(schedule=Event("file", {}))
    shown = show_calendar(
        calendar(asks, paused, job, untimed=(event,)), Display(NOON, "UTC"), week=0
    )

    entries = shown.days[0].entries
    assert [one.note for one in entries] == ["Skipped until you answer", "Paused", ""]
    assert [one.burner for one in entries] == ["needs", "paused", "waits"]
    assert entries[1].label == "Untitled, today 12:00, Paused"
    assert [one.href[:3] for one in entries] == ["/t/", "/t/", "/c/"]
    assert [one.time for one in shown.untimed] == ["Whenever file reports an event"]
    # It is no part of a later week.
    assert show_calendar(calendar(untimed=(event,)), Display(NOON, "UTC"), week=1).untimed == []
