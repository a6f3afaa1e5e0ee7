"""`/api/conversations/{id}/schedule`, and what a schedule would mean."""

from typing import Any

import pytest
from support.requirements import requirement
from support.stage.api_stage import Asker, read_rows
from support.stage.stage import Stage

from backburner.core.schedule.serialize import to_json

PATH = "/api/conversations"
CRON = {"type": "cron", "cron_expression": "0 9 * * 1-5", "timezone": "Europe/Berlin"}


@requirement("A-api")
@pytest.mark.parametrize("when", [{"when": "every weekday at 9"}, {"schedule": CRON}])
async def test_a_chat_is_put_in_the_background_in_words_or_in_full(
    ask: Asker, stage: Stage, when: dict[str, Any]
) -> None:
    await ask.do("PUT", "/api/me", {"zone": "Europe/Berlin"})
    chat = await stage.chat()

    shown = await ask.do("PUT", f"{PATH}/{chat.id}/schedule", {**when, "what": "Look."})

    assert (shown["status"], shown["state"]["context"]) == ("background", {"prompt": "Look."})
    assert shown["schedule"] == {**CRON, "catch_up": "once"}
    assert shown["next_times"] == [f"2026-11-{day}T08:00:00Z" for day in (17, 18, 19)]
    assert shown["next_times_in_words"][0] == "Tue 17 Nov 2026, 09:00 CET"
    assert "Europe/Berlin" in shown["schedule_in_words"]


@requirement("A-cron")
@pytest.mark.parametrize("timezone", [{}, {"timezone": None}])
async def test_a_cron_schedule_without_a_zone_is_in_the_zone_of_its_user(
    ask: Asker, stage: Stage, timezone: dict[str, None]
) -> None:
    await ask.do("PUT", "/api/me", {"zone": "Europe/Berlin"})
    chat = await stage.chat()
    plain = {"type": "cron", "cron_expression": "0 9 * * *", **timezone}
    body = {"schedule": plain, "what": "Look."}

    shown = await ask.do("PUT", f"{PATH}/{chat.id}/schedule", body)
    made = await ask.do("POST", "/api/tasks", {"name": "a", "prompt": "b", "schedule": plain})

    assert shown["schedule"]["timezone"] == made["schedule"]["timezone"] == "Europe/Berlin"
    assert shown["next_run_at"] == "2026-11-17T08:00:00Z"


async def test_another_time_leaves_what_is_to_be_done(ask: Asker, stage: Stage) -> None:
    task = await stage.task()
    shown = await ask.do("PUT", f"{PATH}/{task.id}/schedule", {"when": "every 2h"})

    assert shown["schedule"]["every"] == 7200
    assert shown["state"]["context"]["prompt"] == "Do it."


@requirement("A-api")
async def test_a_schedule_is_cleared(ask: Asker, stage: Stage) -> None:
    task = await stage.task()

    shown = await ask.do("DELETE", f"{PATH}/{task.id}/schedule")

    assert (shown["schedule"], shown["status"], shown["ended_as"]) == (None, "active", "cancelled")
    assert (await ask("DELETE", f"{PATH}/{task.id}/schedule")).status_code == 409


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"when": "every full moon", "what": "Look."}, 400),
        ({"when": "every 30m"}, 400),
        ({"when": "every 30m", "what": " "}, 400),
        ({"what": "Look."}, 400),
        ({"when": "now", "schedule": CRON, "what": "Look."}, 400),
        ({"schedule": {**CRON, "timezone": "Mars"}, "what": "Look."}, 400),
        ({"schedule": {**CRON, "seconds": 1}, "what": "Look."}, 400),
        ({"schedule": {"type": "event", "source": "a", "config": {"a": "x" * 9000}}}, 413),
        ({"schedule": {"type": "event", "source": "a", "config": {}}, "what": "Look."}, 400),
        ({"schedule": "now", "what": "Look."}, 422),
    ],
)
async def test_what_is_no_schedule_is_refused_and_changes_nothing(
    ask: Asker, stage: Stage, body: object, status: int
) -> None:
    chat = await stage.chat()
    before = read_rows(stage)

    assert (await ask("PUT", f"{PATH}/{chat.id}/schedule", body)).status_code == status

    assert read_rows(stage) == before


async def test_work_cannot_come_after_itself(ask: Asker, stage: Stage) -> None:
    chat = await stage.chat()
    body = {"what": "Look.", "schedule": {"type": "after", "conversation": chat.id}}

    assert (await ask("PUT", f"{PATH}/{chat.id}/schedule", body)).status_code == 400


async def test_a_preview_says_when_and_changes_nothing(ask: Asker, stage: Stage) -> None:
    before = read_rows(stage)
    shown = await ask.do("POST", "/api/schedule/preview", {"when": "every 30m"})

    assert shown["in_words"] == "every 30 minutes"
    assert shown["zone"] == "UTC"
    assert shown["next_times"] == [f"2026-11-16T{at}:00Z" for at in ("12:00", "12:30", "13:00")]
    assert shown["next_times_in_words"][1] == "Mon 16 Nov 2026, 12:30 UTC"
    assert (await ask("POST", "/api/schedule/preview", {"when": "at times"})).status_code == 400
    assert read_rows(stage) == before


async def test_the_same_words_are_previewed_and_set(ask: Asker, stage: Stage) -> None:
    await ask.do("PUT", "/api/me", {"zone": "Europe/Berlin"})
    chat = await stage.chat()

    shown = await ask.do("POST", "/api/schedule/preview", {"when": "weekdays at 8"})
    body = {"when": "weekdays at 8", "what": "Look."}
    made = await ask.do("PUT", f"{PATH}/{chat.id}/schedule", body)

    assert shown["in_words"] == "at 08:00 on Monday through Friday (Europe/Berlin)"
    assert (shown["schedule"], shown["warnings"]) == (made["schedule"], [])
    assert shown["next_times"] == [f"2026-11-{day}T07:00:00Z" for day in (17, 18, 19)]
    assert shown["next_times_in_words"][0] == "Tue 17 Nov 2026, 08:00 CET"


async def test_a_preview_warns_of_work_that_runs_very_often(ask: Asker) -> None:
    shown = await ask.do("POST", "/api/schedule/preview", {"when": "every 10s"})

    assert shown["warnings"] == ["It runs every 10 seconds, up to 8,640 times a day."]


@pytest.mark.parametrize(
    ("when", "detail", "hint"),
    [
        ("every full moon", "'every full moon' is not a schedule.", "every weekday at 9"),
        (
            "today at 9",
            "2026-11-16 at 09:00 (Europe/Berlin) is in the past.",
            "It is now 2026-11-16, 13:00; choose a later time.",
        ),
    ],
)
async def test_words_that_cannot_be_set_are_refused_with_what_can(
    ask: Asker, when: str, detail: str, hint: str
) -> None:
    await ask.do("PUT", "/api/me", {"zone": "Europe/Berlin"})

    answer = await ask("POST", "/api/schedule/preview", {"when": when})

    assert answer.status_code == 400
    assert answer.json()["detail"] == detail
    assert hint in answer.json()["hint"]


async def test_what_is_shown_as_a_schedule_is_taken_as_one(ask: Asker, stage: Stage) -> None:
    task = await stage.task()
    await ask.do("PUT", f"{PATH}/{task.id}/schedule", {"when": "every monday at 9:30"})
    shown = (await ask.get(f"{PATH}/{task.id}"))["schedule"]

    again = await ask.do("PUT", f"{PATH}/{task.id}/schedule", {"schedule": shown})

    assert again["schedule"] == shown
    assert stage.load(task).schedule is not None
    assert to_json(stage.load(task).schedule) == shown  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["conversations/{}/schedule", "tasks/{}"])
async def test_other_words_leave_what_becomes_of_missed_times(ask: Asker, path: str) -> None:
    skipping = {"type": "cron", "cron_expression": "0 8 * * *", "catch_up": "skip"}
    body = {"name": "watch", "prompt": "Look.", "schedule": skipping}
    made = await ask.do("POST", "/api/tasks", body)
    method = "PUT" if path.endswith("schedule") else "PATCH"

    for when in ("weekdays at 9:00", "every 2 hours"):
        changed = await ask.do(method, f"/api/{path.format(made['id'])}", {"when": when})
        assert changed["schedule"]["catch_up"] == "skip", when
    once = await ask.do(method, f"/api/{path.format(made['id'])}", {"when": "in 2 hours"})
    assert once["schedule"]["type"] == "scheduled"
    # Whoever gives a schedule in full says it themselves.
    whole = {"schedule": {"type": "cron", "cron_expression": "0 8 * * *"}}
    changed = await ask.do(method, f"/api/{path.format(made['id'])}", whole)
    assert changed["schedule"]["catch_up"] == "once"


@requirement("A-cron")
async def test_missed_times_are_skipped_without_another_time(ask: Asker, stage: Stage) -> None:
    task = await stage.task()
    before = await ask.do("PUT", f"{PATH}/{task.id}/schedule", {"when": "every 30m"})

    skips = await ask.do("PUT", f"{PATH}/{task.id}/schedule", {"catch_up": "skip"})
    assert skips["schedule"] == {**before["schedule"], "catch_up": "skip"}
    assert skips["next_times"] == before["next_times"]
    assert skips["state"] == before["state"]

    moved = await ask.do("PUT", f"{PATH}/{task.id}/schedule", {"when": "every 2h"})
    assert moved["schedule"]["catch_up"] == "skip"
    again = {"when": "every 2h", "catch_up": "once"}
    both = await ask.do("PUT", f"{PATH}/{task.id}/schedule", again)
    assert both["schedule"]["catch_up"] == "once"


async def test_a_task_is_made_and_changed_to_skip_missed_times(ask: Asker) -> None:
    new = {"name": "a", "prompt": "b", "when": "every 30m", "catch_up": "skip"}
    made = await ask.do("POST", "/api/tasks", new)
    changed = await ask.do("PATCH", f"/api/tasks/{made['id']}", {"catch_up": "once"})

    assert made["schedule"]["catch_up"] == "skip"
    assert changed["schedule"] == {**made["schedule"], "catch_up": "once"}


@pytest.mark.parametrize(
    "body",
    [{"when": "tomorrow at 9", "what": "Look.", "catch_up": "skip"}, {"catch_up": "skip"}],
)
async def test_work_that_misses_no_times_has_nothing_to_skip(
    ask: Asker, stage: Stage, body: object
) -> None:
    chat = await stage.chat()
    before = read_rows(stage)

    refused = await ask("PUT", f"{PATH}/{chat.id}/schedule", body)

    assert (refused.status_code, "hint" in refused.json()) == (400, True)
    assert read_rows(stage) == before
