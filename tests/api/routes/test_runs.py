"""`/api/runs`: what was done, and how it ended."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from support.doubles.clock import SetClock
from support.doubles.engine import Call, Fail, Spend
from support.requirements import requirement
from support.stage.api_stage import Asker
from support.stage.make import NOON
from support.stage.stage import Stage

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
