"""Tasks over the API: set up, listed by status, changed, answered, tried, stopped and deleted."""

from datetime import timedelta
from typing import Any

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import End, Fail, Spend
from support.requirements import requirement
from support.stage.api_stage import AskAs, Asker
from support.stage.make import USER
from support.stage.stage import PLACE, Stage

from backburner.actions.origin import Origin
from backburner.actions.schedules import Timing
from backburner.actions.work.tasks import NewTask, add
from backburner.core.accounts import Scope
from backburner.core.conversation import Conversation, Kind, Status
from backburner.core.errors import EngineFailed
from backburner.core.ids import ConversationId

#: Its next time is never while a test runs.
NEW = {"name": "watch-ci", "prompt": "Look at CI.", "when": "every monday at 3:33"}


async def make(ask: Asker, **changes: Any) -> Any:
    return await ask.do("POST", "/api/tasks", NEW | changes)


async def proposed(stage: Stage) -> Conversation:
    chat = await stage.chat()
    new = NewTask(name="watch-ci", prompt="Look.", timing=Timing("every monday at 3:33"))
    made = await add(stage.deps, Origin(USER, chat.id), new, proposed_because="It broke.")
    return made.work


def load(stage: Stage, which: str) -> Conversation:
    return stage.database.run(lambda tx: tx.conversations.load(USER, ConversationId(which)))


async def refused(ask: Asker, path: str, body: Any = None, method: str = "POST") -> tuple[int, str]:
    answer = await ask(method, path, body)
    assert not answer.is_success, answer.text
    return answer.status_code, answer.json()["detail"]


@requirement("B-task", "B-fields", "A-api")
async def test_a_task_is_set_up_with_all_its_fields(ask: Asker, stage: Stage) -> None:
    made = await make(
        ask,
        kind="scheduled",
        description="For us.",
        notify="always",
        max_runs=30,
        timeout=60,
        tools=["look", "look"],
        reports_to=[{"channel": PLACE, "target": "me"}],
    )

    assert made == await ask.get(f"/api/tasks/{made['id']}")
    assert {name: made[name] for name in ("name", "prompt", "description", "notify")} == {
        "name": "watch-ci",
        "prompt": "Look at CI.",
        "description": "For us.",
        "notify": "always",
    }
    assert (made["status"], made["kind"], made["created_by"]) == ("active", "scheduled", "user")
    assert (made["max_runs"], made["run_count"], made["timeout"]) == (30, 0, 60)
    assert (made["tools"], made["reports_to"]) == (
        ["look"],
        [{"channel": PLACE, "target": "me"}],
    )
    assert made["schedule_in_words"] == "at 03:33 on Monday (UTC)"
    assert len(made["next_times"]) == 3
    assert made["last_result_hash"] is made["last_run_at"] is made["event_source"] is None
    assert load(stage, made["id"]).kind is Kind.TASK


@requirement("B-kinds")
@pytest.mark.parametrize(
    ("time", "kind"),
    [
        ({"interval": "30m"}, "scheduled"),
        ({"kind": "oneshot"}, "oneshot"),
        ({"when": "in 5 days"}, "oneshot"),
    ],
)
async def test_a_task_is_of_the_kind_its_time_makes_it(
    ask: Asker, time: dict[str, Any], kind: str
) -> None:
    body = {"name": "a", "prompt": "b", **time}
    made = await ask.do("POST", "/api/tasks", body)

    assert (made["kind"], made["event_source"], made["event_config"]) == (kind, None, None)


@pytest.mark.parametrize("source", ["file", "carrier pigeon"])
async def test_a_task_that_no_event_can_start_is_refused(ask: Asker, source: str) -> None:
    schedule = {"type": "event", "source": source, "config": {}}
    answer = await ask("POST", "/api/tasks", {"name": "a", "prompt": "b", "schedule": schedule})

    assert (answer.status_code, answer.json()["detail"]) == (400, "Events cannot start work yet.")
    assert "Give a time instead, such as `every 5m`" in answer.json()["hint"]
    assert (await ask.get("/api/tasks"))["items"] == []


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"name": ""}, 422),
        ({"prompt": ""}, 422),
        ({"when": None}, 400),
        ({"interval": "1h"}, 400),
        ({"kind": "oneshot"}, 400),
        ({"profile": "genius"}, 400),
        ({"reports_to": [{"channel": "pigeon", "target": "me"}]}, 400),
        ({"when": None, "after": "nothing"}, 404),
        ({"colour": "red"}, 422),
    ],
)
async def test_what_cannot_be_a_task_is_refused(
    ask: Asker, changes: dict[str, Any], status: int
) -> None:
    assert (await ask("POST", "/api/tasks", NEW | changes)).status_code == status
    assert (await ask.get("/api/tasks"))["items"] == []


@requirement("B-status")
async def test_tasks_are_listed_by_status_a_page_at_a_time(ask: Asker, stage: Stage) -> None:
    made = {name: (await make(ask, name=name))["id"] for name in ("active", "paused", "done")}
    await ask.do("POST", f"/api/tasks/{made['paused']}/pause")
    await ask.do("POST", f"/api/tasks/{made['done']}/cancel", {"reason": "Enough."})
    made["proposed"] = (await proposed(stage)).id
    chat = await stage.chat()
    schedule = {"when": "every monday at 3:33", "what": "Look."}
    await ask.do("PUT", f"/api/conversations/{chat.id}/schedule", schedule)

    async def listed(**query: Any) -> list[str]:
        return [one["id"] for one in (await ask.get("/api/tasks", **query))["items"]]

    assert set(await listed(status="active")) == {chat.id, made["active"]}
    for status in ("paused", "done", "proposed"):
        assert await listed(status=status) == [made[status]]
    assert await listed(status="failed") == []
    everything = await listed()
    assert set(everything) == {chat.id, *made.values()} - {made["done"]}
    first = await ask.get("/api/tasks", limit=3)
    rest = await ask.get("/api/tasks", limit=3, cursor=first["next"])
    assert [one["id"] for one in first["items"] + rest["items"]] == everything
    assert rest["next"] is None


async def test_a_task_is_changed_in_part(ask: Asker) -> None:
    made = await make(ask, max_runs=3, tools=["look"], timeout=60)
    path = f"/api/tasks/{made['id']}"
    renamed = await ask.do("PATCH", path, {"name": "ci", "interval": "5d", "max_runs": None})
    freed = await ask.do("PATCH", path, {"tools": None, "timeout": None, "notify": "never"})

    assert (renamed["name"], renamed["max_runs"], renamed["tools"]) == ("ci", None, ["look"])
    assert renamed["schedule_in_words"] == "every 5 days"
    assert (freed["tools"], freed["timeout"], freed["notify"]) == (None, None, "never")
    assert freed["prompt"] == "Look at CI."
    assert await refused(ask, path, {"prompt": None}, "PATCH") == (
        400,
        "`prompt` cannot be null.",
    )
    assert (await refused(ask, path, {"prompt": " "}, "PATCH"))[0] == 400
    nowhere = {"reports_to": [{"channel": "pigeon", "target": "me"}]}
    assert (await refused(ask, path, nowhere, "PATCH"))[0] == 400


@requirement("B-chaining")
async def test_a_task_comes_after_another_and_no_chain_leads_back(ask: Asker) -> None:
    first = await make(ask, name="build")
    then = await make(ask, name="deploy", when=None, after="build", after_on="any")
    path = f"/api/tasks/{first['id']}"

    assert (then["after"], then["schedule"]["on"]) == (first["id"], "any")
    status, detail = await refused(ask, path, {"after": "deploy"}, "PATCH")
    assert (status, detail[:24]) == (400, "This would never start: ")
    schedule = {"schedule": {"type": "after", "conversation": then["id"]}}
    back = f"/api/conversations/{first['id']}/schedule"
    assert (await refused(ask, back, schedule, "PUT"))[0] == 400


@requirement("B-propose")
async def test_a_proposal_is_approved_as_it_was_shown(ask: Asker, stage: Stage) -> None:
    task = await proposed(stage)
    path = f"/api/tasks/{task.id}"
    shown = (await ask.get(path))["questions"][0]
    await ask.do("PATCH", path, {"prompt": "Look twice."})
    old = {"question_id": shown["id"]}
    assert (await refused(ask, f"{path}/approve", old))[0] == 409
    assert (await refused(ask, f"{path}/reject", old))[0] == 409
    now = (await ask.get(path))["questions"][0]
    assert "Look twice." in now["prompt"]

    begun = await ask.do("POST", f"{path}/approve", {"question_id": now["id"]})

    assert (begun["status"], begun["questions"]) == ("active", [])
    assert (await refused(ask, f"{path}/approve"))[0] == 409


async def test_a_proposal_is_dismissed_and_no_longer_listed(ask: Asker, stage: Stage) -> None:
    task = await proposed(stage)
    assert await ask.do("POST", f"/api/tasks/{task.id}/reject") is None

    assert (await ask("GET", f"/api/tasks/{task.id}")).status_code == 404
    assert (await ask.get("/api/tasks", status="done"))["items"] == []


@requirement("B-retry")
async def test_a_task_can_go_on_after_failures_and_be_told_of_instead(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    made = await make(ask, on_repeated_failure="notify")
    path = f"/api/tasks/{made['id']}"
    for _ in range(3):
        stage.engine.then(Fail(EngineFailed("Broken.")))
        await ask.do("POST", f"{path}/run-now")
        await stage.work()
        clock.advance(timedelta(hours=1))

    shown = await ask.get(path)
    assert (shown["status"], shown["on_repeated_failure"]) == ("active", "notify")
    assert stage.notices() == ["The work failed repeatedly: Broken. It continues at its next time."]
    changed = await ask.do("PATCH", path, {"on_repeated_failure": "pause"})
    assert changed["on_repeated_failure"] == "pause"
    assert (await ask("PATCH", path, {"on_repeated_failure": None})).status_code == 400


@requirement("B-status", "B-retry")
async def test_a_task_that_failed_twice_is_listed_as_paused_with_the_reason(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    made = await make(ask)
    path = f"/api/tasks/{made['id']}"
    for _ in range(2):
        stage.engine.then(Fail(EngineFailed("Broken.")))
        await ask.do("POST", f"{path}/run-now")
        await stage.work()
        clock.advance(timedelta(hours=1))

    shown = await ask.get(path)
    assert (shown["status"], shown["pause_reason"]) == ("paused", "failures")
    for status, found in (("paused", [made["id"]]), ("failed", []), ("active", [])):
        items = (await ask.get("/api/tasks", status=status))["items"]
        assert [one["id"] for one in items] == found
    assert (await ask.do("POST", f"{path}/resume"))["pause_reason"] is None


@requirement("B-run-now")
async def test_a_task_is_paused_resumed_and_run(ask: Asker, stage: Stage) -> None:
    made = await make(ask)
    path = f"/api/tasks/{made['id']}"
    paused = await ask.do("POST", f"{path}/pause")
    assert (await refused(ask, f"{path}/pause"))[0] == 409
    resumed = await ask.do("POST", f"{path}/resume")
    stage.engine.then(Spend(7), End({"complete": True, "result": "green"}))
    await ask.do("POST", f"{path}/run-now")
    await stage.work()

    assert (paused["status"], resumed["status"]) == ("paused", "active")
    (run,) = (await ask.get(f"{path}/runs"))["items"]
    assert (run["status"], run["result"], run["tokens"]) == ("success", "green", 7)
    assert (await ask.get(path))["run_count"] == 1


async def test_a_preview_says_what_is_known_of_its_cost(ask: Asker, stage: Stage) -> None:
    made = await make(ask)
    path = f"/api/tasks/{made['id']}"
    before = await ask.get(f"{path}/preview")
    stage.engine.then(Spend(7), End({"complete": True}))
    await ask.do("POST", f"{path}/run-now")
    await stage.work()
    after = await ask.get(f"{path}/preview")

    assert before["cost"] is None
    assert len(before["next_times"]) == len(before["next_times_in_words"]) == 5
    cost = after["cost"]
    assert cost.pop("runs_per_month") in (4, 5)
    month = cost.pop("tokens_per_month")
    assert month in (28, 35)
    assert cost == {
        "based_on": "the last 1 run of its own",
        "tokens_per_run": 7,
        "usd_per_run": None,
        "usd_per_month": None,
    }


async def test_a_task_is_tried_out(ask: Asker, stage: Stage, clock: SetClock) -> None:
    made = await make(ask)
    clock.advance(timedelta(minutes=1))
    tried = await ask.do("POST", f"/api/tasks/{made['id']}/test-run")
    await stage.work()

    assert tried["task_id"] == made["id"]
    job = await ask.get(f"/api/conversations/{tried['conversation_id']}")
    assert (job["batch"], job["job"]["status"]) == ("test run", "completed")
    after = await ask.get(f"/api/tasks/{made['id']}")
    # `updated_at` changes: the result is added to the task as a message.
    unchanged = ("run_count", "next_run_at", "last_result_hash", "last_run_at", "status")
    assert {name: after[name] for name in unchanged} == {name: made[name] for name in unchanged}


async def test_a_task_is_cancelled_with_a_reason_and_deleted(ask: Asker, stage: Stage) -> None:
    made = await make(ask)
    path = f"/api/tasks/{made['id']}"
    await ask.do("POST", f"{path}/cancel", {"reason": "It was merged."})
    assert load(stage, made["id"]).status is Status.ARCHIVED
    assert stage.said(load(stage, made["id"])) == ["It was cancelled: It was merged."]
    await ask.do("DELETE", path)

    assert (await ask("GET", path)).status_code == 404


async def test_a_chat_with_work_is_a_task_that_cannot_be_deleted_as_one(
    ask: Asker, stage: Stage
) -> None:
    chat = await stage.chat()
    path = f"/api/tasks/{chat.id}"
    assert (await ask("GET", path)).status_code == 404
    assert (await ask("GET", f"{path}/runs")).status_code == 404
    assert (await ask("POST", f"{path}/pause")).status_code == 404
    schedule = {"when": "every monday at 3:33", "what": "Look."}
    await ask.do("PUT", f"/api/conversations/{chat.id}/schedule", schedule)

    assert (await ask.get(path))["prompt"] == "Look."
    assert (await refused(ask, path, method="DELETE"))[0] == 409
    await ask.do("POST", f"{path}/cancel")
    assert stage.load(chat).status is Status.ACTIVE
    assert (await ask("GET", path)).status_code == 404


@requirement("B-limit")
async def test_one_task_too_many_is_refused_with_what_could_be_stopped(ask: Asker) -> None:
    for number in range(20):
        await make(ask, name=f"task {number}")
    answer = await ask("POST", "/api/tasks", NEW)

    assert answer.status_code == 429
    problem = answer.json()
    assert problem["detail"] == "Limit reached: 20 active tasks."
    assert problem["hint"].startswith("Pause or cancel one first: task ")
    assert all(f"task {number}" in problem["hint"] for number in range(20))


async def test_a_task_set_up_twice_with_one_key_is_there_once(ask: Asker) -> None:
    headers = {"idempotency-key": "one"}
    answers = [await ask("POST", "/api/tasks", NEW, headers=headers) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert len((await ask.get("/api/tasks"))["items"]) == 1


async def test_a_task_is_given_an_allowance_by_who_may_consent(ask: Asker, ask_as: AskAs) -> None:
    made = await make(ask, allowance="$2")

    standing = (await ask.get(f"/api/conversations/{made['id']}/stats"))["allowance"]
    assert (standing["micros"], standing["is_own"]) == (2_000_000, True)
    assert (await refused(ask, "/api/tasks", {**NEW, "name": "b", "allowance": "2"}))[0] == 400

    token = await ask_as(USER, Scope.READ, Scope.WRITE)
    status, detail = await refused(token, "/api/tasks", {**NEW, "name": "c", "allowance": "$2"})
    assert (status, detail) == (403, "This token may not consent for its user.")
    assert [one["name"] for one in (await ask.get("/api/tasks"))["items"]] == ["watch-ci"]


async def test_a_task_can_be_set_up_paused_and_tried_before_it_starts(
    ask: Asker, stage: Stage
) -> None:
    made = await make(ask, when="now", paused=True)
    assert (made["status"], made["pause_reason"], made["next_times"]) == ("paused", "user", [])
    await stage.work()
    assert stage.engine.requests == []

    await ask.do("POST", f"/api/tasks/{made['id']}/test-run")
    await stage.work()
    assert (await ask.get(f"/api/tasks/{made['id']}"))["run_count"] == 0
    assert (await ask.do("POST", f"/api/tasks/{made['id']}/resume"))["status"] == "active"
    await stage.work()
    assert (await ask.get(f"/api/tasks/{made['id']}"))["run_count"] == 1
