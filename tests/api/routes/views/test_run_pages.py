"""`/api/runs/{id}` says where a run came from and what it did; `stats` compares runs."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from support.doubles.clock import SetClock
from support.doubles.engine import Call, End, Fail, Spend, Wait
from support.stage.api_stage import NOBODYS, Asker
from support.stage.make import NOON
from support.stage.stage import Stage
from support.stage.until import until

from backburner.core.conversation import Conversation
from backburner.core.errors import EngineFailed
from backburner.core.schedule import Interval
from backburner.core.tool_policy import ALWAYS_HERE
from backburner.runs.stopping import StopReason

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
EVERY_HOUR = Interval(HOUR, anchor=NOON)


async def page(ask: Asker, stage: Stage, of: Conversation, *, back: int = 0) -> Any:
    """Read the page of a run of a conversation, the last one if nothing else is said."""
    return await ask.get(f"/api/runs/{stage.history(of)[back].id}")


def kinds(shown: Any) -> list[str]:
    return [cause["kind"] for cause in shown["causes"]]


async def test_a_run_is_shown_as_a_timeline_with_its_cost(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    async def look(_: Mapping[str, Any]) -> str:
        clock.advance(3 * SECOND)
        return "Green."

    go_on = asyncio.Event()
    stage.tools.handlers["look"] = look
    stage.engine.then(
        Wait(go_on), Spend(7), Call("look", {"at": "CI"}), Spend(5), End({"complete": True})
    )
    task = await stage.task(EVERY_HOUR, title="Watch CI")
    await stage.take_up()
    await stage.engine.began.wait()
    clock.advance(2 * SECOND)
    go_on.set()
    await stage.idle()

    shown = await page(ask, stage, task)

    steps = shown["timeline"]
    assert [(one["kind"], one["offset"], one["seconds"]) for one in steps] == [
        ("thinking", 0, 2),
        ("call", 2, 3),
        ("thinking", 5, 0),
    ]
    assert [one["in_words"] for one in steps] == [
        "Thinking, with scripted-model",
        "look: at=CI",
        "Thinking, with scripted-model",
    ]
    assert (steps[0]["model_call"]["tokens"], steps[1]["call"]["state"]) == (7, "done")
    assert shown["worked_seconds"] == 5
    cost = shown["cost"]
    assert (cost["tokens"], cost["model_calls"], cost["is_all_priced"]) == (12, 2, False)
    assert cost["input_tokens"] + cost["output_tokens"] == 12
    assert (shown["title"], shown["models"]) == ("Watch CI", ["scripted-model"])
    assert shown["outcome"] == {
        "ending": "done",
        "text": "Done; nothing to report.",
        "what_to_do": None,
    }
    assert (shown["tries"], shown["next_try"], shown["asked"]) == ([], None, [])
    assert shown["time_limit_seconds"] == stage.deps.limits.run_timeout.total_seconds()


async def test_what_a_run_was_told_is_kept_with_it(ask: Asker, stage: Stage) -> None:
    task = await stage.task(EVERY_HOUR, prompt="Look at CI.")
    await stage.work()

    shown = await page(ask, stage, task)

    assert shown["prompts"] == [stage.engine.requests[0].prompt]
    assert "Look at CI." in shown["prompts"][0]
    assert kinds(shown) == ["schedule"]
    assert shown["causes"][0]["slot_at"] == "2026-11-16T12:00:00Z"


async def test_a_message_an_answer_and_a_run_now_say_that_they_started_a_run(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    chat = await stage.chat()
    await stage.say(chat, "What is new?")
    await stage.work()
    stage.engine.then(Call("send", {"to": "them"}))
    task = await stage.task(EVERY_HOUR)
    await stage.work()
    clock.advance(SECOND)
    await stage.answer(task, ALWAYS_HERE)
    await stage.work()
    clock.advance(SECOND)
    await ask.do("POST", f"/api/conversations/{task.id}/run-now")
    await stage.work()

    said, asked = await page(ask, stage, chat), await page(ask, stage, task, back=2)
    answered, requested = await page(ask, stage, task, back=1), await page(ask, stage, task)

    assert kinds(said) == ["message"]
    assert said["causes"][0]["in_words"] == "Your message: What is new?"
    assert said["outcome"]["text"] == "It answered."
    assert (kinds(asked), asked["outcome"]["ending"]) == (["schedule"], "asked")
    assert [one["purpose"] for one in asked["asked"]] == ["approval"]
    assert asked["asked"][0]["answer"] == ALWAYS_HERE
    assert kinds(answered) == ["answer"]
    assert answered["causes"][0]["question_id"] == asked["asked"][0]["id"]
    assert kinds(requested) == ["run_now"]


async def test_the_tries_at_the_same_work_lead_to_each_other(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    stage.engine.then(Fail(EngineFailed("Broken.")))
    task = await stage.task(EVERY_HOUR)
    await stage.work()
    clock.advance(HOUR)
    await stage.work()

    second, first = await page(ask, stage, task), await page(ask, stage, task, back=1)

    assert [one["id"] for one in second["tries"]] == [first["id"]]
    assert second["tries"][0]["failure"]["message"] == "Broken."
    assert first["next_try"]["id"] == second["id"]
    assert (first["outcome"]["ending"], first["outcome"]["text"]) == ("failed", "Broken.")
    assert first["outcome"]["what_to_do"].startswith("Read what the model's server says")


async def test_a_crashed_run_was_for_what_the_next_try_has_served(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    stage.engine.then(Wait())
    task = await stage.task(EVERY_HOUR)
    stage.engine.then(Wait())
    await stage.take_up()
    await stage.engine.began.wait()
    stage.kill()
    clock.advance(timedelta(minutes=2))
    await stage.rescuer.run_once()
    chat = await stage.chat()
    await stage.say(chat, "Hello?")
    await stage.take_up()
    await until(lambda: len(stage.engine.requests) >= 2)
    running = await page(ask, stage, chat)
    stage.kill()
    clock.advance(timedelta(minutes=2))
    await stage.rescuer.run_once()
    crashed = await page(ask, stage, chat)
    await stage.work()

    assert (kinds(running), running["outcome"]["ending"]) == (["message"], "running")
    assert (running["timeline"][0]["seconds"], running["prompts"]) == (None, [])
    assert (crashed["status"], crashed["failure"]["kind"]) == ("failure", "crashed")
    assert kinds(await page(ask, stage, chat, back=1)) == ["message"]
    assert (await page(ask, stage, task, back=1))["worked_seconds"] == 120


async def test_a_run_that_was_handed_back_has_worked_only_while_it_had_its_turn(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    go_on = asyncio.Event()
    stage.engine.then(Wait(go_on))
    task = await stage.task(EVERY_HOUR)
    await stage.take_up()
    await stage.engine.began.wait()
    clock.advance(SECOND)
    stage.only_run().stop.request(StopReason.DRAINING)
    await stage.idle()
    waits = await page(ask, stage, task)
    clock.advance(10 * SECOND)
    stage.engine.then(End({"complete": True}))
    await stage.work()

    shown = await page(ask, stage, task)

    assert (waits["status"], waits["outcome"]["ending"]) == ("queued", "waiting")
    assert waits["timeline"][-1]["in_words"] == "Waits for its turn"
    assert (shown["worked_seconds"], shown["status"]) == (1, "success")
    assert [(one["kind"], one["seconds"]) for one in shown["timeline"]] == [
        ("thinking", 1),
        ("waiting", 10),
    ]
    assert len(shown["prompts"]) == 2


async def test_the_last_runs_of_a_conversation_are_measured(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    task = await stage.task(EVERY_HOUR)
    for number in range(1, 23):
        stage.engine.then(Spend(number))
        await stage.work()
        clock.advance(HOUR)
    stage.engine.then(Fail(EngineFailed("Broken.")))
    await stage.work()

    stats = await ask.get(f"/api/conversations/{task.id}/stats")

    assert len(stats["runs"]) == 20
    assert [run["cost"]["tokens"] for run in stats["runs"]] == [*range(4, 23), 0]
    assert [run["status"] for run in stats["runs"]] == ["success"] * 19 + ["failure"]
    assert (stats["failed"], stats["medians"]["tokens"]) == (1, 12)
    assert (stats["root_id"], stats["allowance"]["scope"]) == (task.id, "conversation")
    assert stats["allowance"]["spent"]["tokens"] == sum(range(1, 23))


async def test_a_conversation_without_runs_has_no_medians(ask: Asker, stage: Stage) -> None:
    chat = await stage.chat()

    stats = await ask.get(f"/api/conversations/{chat.id}/stats")

    assert (stats["runs"], stats["medians"], stats["failed"]) == ([], None, 0)


async def test_nobody_elses_runs_are_shown(ask: Asker, mate: Asker, stage: Stage) -> None:
    task = await stage.task(EVERY_HOUR)
    await stage.work()

    for path in (f"/api/runs/{stage.history(task)[0].id}", f"/api/conversations/{task.id}/stats"):
        assert (await mate("GET", path)).status_code == 404
    assert (await ask("GET", f"/api/conversations/c_{NOBODYS}/stats")).status_code == 404
