"""`/api/runs`: what was done, and how it ended."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from support.doubles.clock import SetClock
from support.doubles.engine import Call, Fail, Spend, Wait
from support.requirements import requirement
from support.stage.api_stage import Asker
from support.stage.make import NOON
from support.stage.provider import DOWN
from support.stage.stage import Stage
from support.stage.until import until

from backburner.core.errors import EngineFailed
from backburner.core.schedule import Interval

HOUR = timedelta(hours=1)
EVERY_HOUR = Interval(HOUR, anchor=NOON)


@requirement("A-api")
async def test_a_run_shows_its_calls_in_order(ask: Asker, stage: Stage, clock: SetClock) -> None:
    async def take_a_while(_: Mapping[str, Any]) -> str:
        clock.advance(timedelta(seconds=1))
        return "Green."

    stage.tools.handlers["look"] = take_a_while
    stage.engine.then(Spend(7), Call("look", {"at": "CI"}), Call("slow"))
    stage.tools.let_go.set()
    task = await stage.task()
    await stage.work()

    (listed,) = (await ask.get(f"/api/conversations/{task.id}/runs"))["items"]
    shown = await ask.get(f"/api/runs/{listed['id']}")

    assert shown.items() >= listed.items()
    assert (shown["kind"], shown["status"], shown["tokens"]) == ("background", "success", 7)
    assert (shown["profile"], shown["escalated_from"]) == ("scripted", None)
    assert (shown["failure"], shown["skipped"]) == (None, None)
    first, second = shown["tool_calls"]
    assert (first["tool"], first["arguments"]) == ("look", {"at": "CI"})
    assert (first["result"], first["ended_at"]) == ("Green.", "2026-11-16T12:00:01Z")
    assert (first["state"], first["read_only"], first["failed"]) == ("done", True, False)
    assert (second["tool"], second["result"]) == ("slow", "slow is done.")


async def test_a_failed_run_says_why_and_a_skipped_one_what_it_stands_for(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    stage.engine.then(Fail(EngineFailed("The model is down.")))
    task = await stage.task(EVERY_HOUR)
    await stage.work()
    clock.advance(5 * HOUR)
    await stage.work()

    runs = (await ask.get(f"/api/conversations/{task.id}/runs"))["items"]

    by_status = {run["status"]: run for run in runs}
    assert by_status["failure"]["failure"]["message"] == "The model is down."
    skipped = by_status["skipped"]["skipped"]
    assert skipped["reason"] == "missed"
    assert skipped["first_at"] == "2026-11-16T13:00:00Z"
    assert skipped["count"] == 4
    words = "machine off or busy, or model unavailable (4 times)"
    assert skipped["in_words"] == words


async def test_pages_of_runs_go_back_from_the_newest(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    task = await stage.task(EVERY_HOUR)
    path = f"/api/conversations/{task.id}/runs"
    for _ in range(5):
        await stage.work()
        clock.advance(HOUR)

    everything = [run["id"] for run in (await ask.get(path))["items"]]
    first = await ask.get(path, limit=2)
    await stage.work()
    second = await ask.get(path, limit=2, cursor=first["next"])
    third = await ask.get(path, limit=2, cursor=second["next"])

    shown = [run["id"] for page in (first, second, third) for run in page["items"]]
    assert (shown, third["next"]) == (everything, None)
    assert len(set(shown)) == 5


@requirement("B-now")
async def test_a_conversation_task_and_job_say_what_they_are_doing_now(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    for _ in range(2):
        stage.engine.then(Call("look", {"at": "CI"}), Call("slow", {"api_key": "hunter2"}))
    task = await stage.task(EVERY_HOUR, title="Watch CI")
    chat = await stage.chat()
    job = await ask.do(
        "POST", "/api/jobs", {"conversation": chat.id, "description": "Job", "prompt": "Do it."}
    )
    paths = [f"/api/conversations/{task.id}", f"/api/tasks/{task.id}", f"/api/jobs/{job['id']}"]
    assert [(await ask.get(path))["running"] for path in paths] == [None, None, None]

    await stage.take_up()
    await until(lambda: len(stage.tools.calls) == 4)
    clock.advance(HOUR)

    for path in paths:
        running = (await ask.get(path))["running"]
        assert running["started_at"] == "2026-11-16T12:00:00Z"
        assert (running["kind"], running["activity"]) == ("background", "calling")
        assert (running["doing"], running["calls"]) == ("slow: api_key=[hidden]", 2)
        assert (running["call"]["tool"], running["call"]["state"]) == ("slow", "started")
    for path in ("/api/conversations?all=true", "/api/tasks", "/api/jobs"):
        shown = {one["id"]: one["running"] for one in (await ask.get(path))["items"]}
        assert all(shown[which] for which in {task.id, job["id"]} & set(shown))
    stage.tools.let_go.set()
    await stage.idle()
    assert [(await ask.get(path))["running"] for path in paths] == [None, None, None]


@requirement("B-now")
async def test_ones_own_runs_are_listed_by_status(
    ask: Asker, mate: Asker, stage: Stage, clock: SetClock
) -> None:
    stage.engine.then(Call("look"), Call("slow"))
    task = await stage.task(EVERY_HOUR, title="Watch CI")
    await stage.take_up()
    await until(lambda: len(stage.tools.calls) == 2)

    (shown,) = (await ask.get("/api/runs", status="running"))["items"]
    assert (shown["conversation_id"], shown["title"]) == (task.id, "Watch CI")
    assert (shown["status"], shown["running"]["doing"]) == ("running", "slow")
    assert (await mate.get("/api/runs"))["items"] == []
    calls = (await ask.get(f"/api/runs/{shown['id']}/calls"))["items"]
    assert {(call["tool"], call["state"]) for call in calls} == {
        ("slow", "started"),
        ("look", "done"),
    }
    assert (await mate("GET", f"/api/runs/{shown['id']}/calls")).status_code == 404
    stage.tools.let_go.set()
    await stage.idle()
    clock.advance(HOUR)
    await stage.work()

    assert (await ask.get("/api/runs"))["items"] == []
    first = await ask.get("/api/runs", status="success", limit=1)
    second = await ask.get("/api/runs", status="success", limit=1, cursor=first["next"])
    ended = [run["id"] for page in (first, second) for run in page["items"]]
    assert ended == [run.id for run in stage.history(task)]
    assert first["items"][0]["running"] is None
    assert (await ask("GET", "/api/runs", params={"status": "gone"})).status_code == 422


@requirement("B-now")
async def test_a_run_in_progress_is_listed_with_its_progress_and_cost(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    go_on = asyncio.Event()
    stage.engine.then(Spend(7), Wait(go_on))
    await stage.task(EVERY_HOUR, title="Watch CI")
    await stage.take_up()
    await stage.engine.began.wait()
    turn = stage.only_run().claim.turn
    stage.database.run(lambda tx: tx.runs.save_progress(turn, "Read 40 of 120 files"))
    clock.advance(timedelta(seconds=5))

    (shown,) = (await ask.get("/api/runs"))["items"]

    assert shown["progress"]["text"] == "Read 40 of 120 files"
    assert (shown["worked_seconds"], shown["spent"]["tokens"]) == (5, 7)
    assert (shown["waits_for"], shown["resumes_at"]) == (None, None)
    go_on.set()
    await stage.idle()


@requirement("B-now")
async def test_a_queued_run_says_what_it_waits_for(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    await stage.task(EVERY_HOUR, title="Waits")
    stage.engine.then(DOWN)
    await stage.work()
    clock.advance(timedelta(seconds=1))

    (shown,) = (await ask.get("/api/runs", status="queued"))["items"]

    assert shown["waits_for"].startswith("It waits: ")
    assert shown["resumes_at"] == "2026-11-16T12:00:00Z"
    assert (shown["running"], shown["worked_seconds"]) == (None, 0)


async def test_runs_that_have_ended_are_listed_whatever_became_of_them(
    ask: Asker, mate: Asker, stage: Stage, clock: SetClock
) -> None:
    stage.engine.then(Spend(7))
    stage.engine.then(Fail(EngineFailed("Broken.")))
    task = await stage.task(EVERY_HOUR)
    for _ in range(2):
        await stage.work()
        clock.advance(HOUR)

    first = await ask.get("/api/runs", status="ended", limit=1)
    second = await ask.get("/api/runs", status="ended", limit=1, cursor=first["next"])

    runs = [*first["items"], *second["items"]]
    assert [run["id"] for run in runs] == [run.id for run in stage.history(task)]
    assert [run["status"] for run in runs] == ["failure", "success"]
    assert runs[1]["spent"]["tokens"] == 7
    assert (await mate.get("/api/runs", status="ended"))["items"] == []
