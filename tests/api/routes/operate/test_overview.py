"""`/api/operate/overview` and `/api/operate/failures`: no content of users, for operators only."""

from datetime import timedelta

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import Fail
from support.stage.api_stage import AskAs
from support.stage.make import MATE, NOON, USER
from support.stage.stage import Stage

from backburner.core.accounts import Role, Scope
from backburner.core.errors import EngineFailed
from backburner.core.run import Failure, FailureKind
from backburner.worker.presence import WorkerPresence

PATHS = ("/api/operate/overview", "/api/operate/failures")


async def test_an_operator_sees_workers_queue_models_and_database(
    ask_as: AskAs, stage: Stage, clock: SetClock
) -> None:
    operator = await ask_as(USER, role=Role.OPERATOR)
    stage.deps.started_at = NOON
    seats = {"used": 0}
    gone = WorkerPresence(stage.deps, "old:1:ab", lambda: (0, 2))
    await gone.run_once()
    clock.advance(timedelta(minutes=2))
    worker = WorkerPresence(stage.deps, "new:2:cd", lambda: (seats["used"], 5))
    await worker.run_once()
    seats["used"], worker.is_draining = 3, True
    clock.advance(timedelta(seconds=10))
    await worker.run_once()
    await stage.task()
    trouble = Failure(FailureKind.UNAVAILABLE, "Overloaded.")
    stage.database.run(lambda tx: tx.outages.note("claude", trouble, probed=False))

    found = await operator.get("/api/operate/overview")

    assert found["uptime_seconds"] == 130
    assert [
        (one["name"], one["missing"], one["draining"], one["seats_used"], one["seats"])
        for one in found["workers"]
    ] == [("new:2:cd", False, True, 3, 5), ("old:1:ab", True, False, 0, 2)]
    assert found["workers"][0]["version"] == found["version"]
    assert (found["queue"]["due"], found["queue"]["running"]) == (1, 0)
    assert [(one["profile"], one["message"]) for one in found["outages"]] == [
        ("claude", "Overloaded.")
    ]
    assert found["database"]["kind"] == "sqlite"
    assert found["database"]["size_bytes"] > 0
    assert found["deliveries"] == {"waiting": 0, "failed": 0}
    assert not found["paused"]

    await worker.end()
    left = await operator.get("/api/operate/overview")
    assert [one["name"] for one in left["workers"]] == ["old:1:ab"]


async def test_failures_of_others_are_listed_in_our_words_alone(
    ask_as: AskAs, stage: Stage
) -> None:
    operator = await ask_as(USER, role=Role.OPERATOR)
    content = "the plan of a member"
    stage.user(MATE)
    stage.engine.then(Fail(EngineFailed(content, permanent=True)))
    task = await stage.task(user=MATE)
    await stage.work()
    (run,) = stage.history(task)
    denied = Failure(FailureKind.ACCESS_DENIED, "Refused.")
    stage.database.run(lambda tx: tx.outages.note("claude", denied, probed=False))

    answer = await operator("GET", "/api/operate/failures")

    items = {one["kind"]: one for one in answer.json()["items"]}
    assert content not in answer.text
    assert task.title not in answer.text
    assert (items["run"]["id"], items["run"]["user"]) == (run.id, MATE)
    assert items["run"]["message"] == "The model refused a request."
    assert (items["model"]["id"], items["model"]["user"]) == ("claude", None)


@pytest.mark.parametrize("path", PATHS)
async def test_members_and_tokens_without_the_scope_see_nothing(ask_as: AskAs, path: str) -> None:
    assert (await (await ask_as(USER))("GET", path)).status_code == 403
    token = await ask_as(MATE, Scope.READ, Scope.METRICS, role=Role.OPERATOR)
    assert (await token("GET", path)).status_code == 403
