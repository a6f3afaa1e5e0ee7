"""`/api/upcoming`: what will run, in a period."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import End, Wait
from support.stage.api_stage import Asker
from support.stage.make import MATE, NOON
from support.stage.stage import Stage

from backburner.core.schedule import After, Cron, Interval, Scheduled

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
EVERY_DAY = Interval(DAY, anchor=NOON + HOUR)
EVERY_HOUR = Interval(HOUR, anchor=NOON + HOUR)


def listed(found: Any) -> list[tuple[str, str, int]]:
    return [(one["title"], one["at"], one["count"]) for one in found["entries"]]


async def test_everything_that_will_run_is_listed_in_order(ask: Asker, stage: Stage) -> None:
    daily = await stage.task(EVERY_DAY, title="Daily")
    await stage.task(EVERY_HOUR, title="Hourly")
    await stage.task(Scheduled(NOON + DAY), title="Once")
    await stage.task(After(daily.id), title="Then")
    await stage.task(EVERY_DAY, title="Theirs", user=MATE)

    found = await ask.get("/api/upcoming", days=2)

    assert (found["start"], found["end"]) == ("2026-11-16T12:00:00Z", "2026-11-18T12:00:00Z")
    assert listed(found) == [
        ("Daily", "2026-11-16T13:00:00Z", 1),
        ("Hourly", "2026-11-16T13:00:00Z", 11),
        ("Hourly", "2026-11-17T00:00:00Z", 24),
        ("Once", "2026-11-17T12:00:00Z", 1),
        ("Daily", "2026-11-17T13:00:00Z", 1),
        ("Hourly", "2026-11-18T00:00:00Z", 12),
    ]
    hourly = found["entries"][1]
    assert (hourly["until"], hourly["every_seconds"]) == ("2026-11-16T23:00:00Z", 3600)
    assert (hourly["kind"], hourly["state"], hourly["is_due"]) == ("task", "scheduled", False)
    assert hourly["schedule_in_words"] == "every hour"
    assert [one["title"] for one in found["untimed"]] == ["Then"]
    assert (found["is_cut"], found["all_paused"], found["zone"]) == (False, False, "UTC")


async def test_times_are_those_of_the_users_zone_when_clocks_change(
    ask: Asker, stage: Stage
) -> None:
    await stage.task(Cron("0 9 * * *", "America/New_York"), title="Daily")
    await ask.do("PUT", "/api/me", {"zone": "America/New_York"})
    period = {"from": "2027-03-13T00:00:00-05:00", "to": "2027-03-15T12:00:00-04:00"}

    found = await ask.get("/api/upcoming", **period)

    assert [one["at_in_words"] for one in found["entries"]] == [
        "Sat 13 Mar 2027, 09:00 EST",
        "Sun 14 Mar 2027, 09:00 EDT",
        "Mon 15 Mar 2027, 09:00 EDT",
    ]


async def test_paused_work_is_listed_on_request_and_marked(ask: Asker, stage: Stage) -> None:
    task = await stage.task(EVERY_DAY)
    await ask.do("POST", f"/api/conversations/{task.id}/pause")

    assert listed(await ask.get("/api/upcoming", days=2)) == []
    with_paused = await ask.get("/api/upcoming", days=2, paused=True)
    assert [one["state"] for one in with_paused["entries"]] == ["paused", "paused"]


async def test_work_that_waits_for_its_user_is_marked(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    question = {"type": "input", "prompt": "Which branch?"}
    asks = {"needs_input": True, "message": "One thing.", "question": question}
    stage.engine.then(End(asks))
    task = await stage.task(EVERY_DAY)
    clock.advance(HOUR)
    await stage.work()
    assert stage.load(task).questions

    found = await ask.get("/api/upcoming", days=2)

    assert {one["state"] for one in found["entries"]} == {"needs_you"}


async def test_due_work_is_marked_until_it_runs(ask: Asker, stage: Stage, clock: SetClock) -> None:
    await stage.task(EVERY_DAY)
    clock.advance(2 * HOUR)
    due = await ask.get("/api/upcoming", days=1)
    go_on = asyncio.Event()
    stage.engine.then(Wait(go_on))
    await stage.take_up()
    running = await ask.get("/api/upcoming", days=1)
    go_on.set()
    await stage.idle()

    assert [(one["at"], one["is_due"]) for one in due["entries"]] == [
        ("2026-11-16T14:00:00Z", True),
        ("2026-11-17T13:00:00Z", False),
    ]
    assert [(one["at"], one["is_due"]) for one in running["entries"]] == [
        ("2026-11-17T13:00:00Z", False)
    ]


async def test_the_last_runs_of_work_end_its_entries(ask: Asker, stage: Stage) -> None:
    await stage.task(EVERY_DAY, max_runs=2)

    assert len((await ask.get("/api/upcoming", days=31))["entries"]) == 2


async def test_jobs_that_begin_now_are_no_part_of_a_plan(ask: Asker, stage: Stage) -> None:
    chat = await stage.chat()
    job = {"conversation": chat.id, "description": "Job", "prompt": "Do it."}
    await ask.do("POST", "/api/jobs", job)

    assert (await ask.get("/api/upcoming"))["entries"] == []


async def test_it_says_that_everything_is_paused(ask: Asker, stage: Stage) -> None:
    await stage.task(EVERY_DAY)
    await ask.do("PUT", "/api/me", {"paused": True})

    assert (await ask.get("/api/upcoming"))["all_paused"] is True


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2026-11-16T12:00:00Z", "2026-11-16T12:00:00Z"),
        ("2026-11-16T12:00:00Z", "2026-11-15T12:00:00Z"),
        ("2026-11-16T12:00:00Z", "2026-12-18T12:00:00Z"),
    ],
)
async def test_other_periods_are_refused(ask: Asker, start: str, end: str) -> None:
    answer = await ask("GET", "/api/upcoming", params={"from": start, "to": end})

    assert answer.status_code == 400
    assert answer.json()["detail"] == "`to` must be after `from`, and at most 31 days later."


@pytest.mark.parametrize("start", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"])
async def test_the_ends_of_the_calendar_are_refused(ask: Asker, start: str) -> None:
    answer = await ask("GET", "/api/upcoming", params={"from": start})

    assert answer.status_code == 400
    assert answer.json()["detail"] == "`from` is more than ten years away."


async def test_a_past_period_has_nothing(ask: Asker, stage: Stage) -> None:
    await stage.task(EVERY_DAY)
    past = {"from": "2026-11-01T12:00:00Z", "to": "2026-11-10T12:00:00Z"}

    assert (await ask.get("/api/upcoming", **past))["entries"] == []
