"""`/api/conversations/{id}/timeline`: everything that happened, once, page by page."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import delete
from support.doubles.clock import SetClock
from support.doubles.engine import Call, End, Fail, Say, Spend
from support.stage.api_stage import Asker
from support.stage.make import NOON, USER
from support.stage.stage import Stage
from support.statements import scans, watched

from backburner.core.conversation import Conversation
from backburner.core.errors import EngineFailed
from backburner.core.schedule import Interval
from backburner.store import tables
from backburner.store.queries.timeline import CALLS_SHOWN, MAX_ARGUMENT_CHARS

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
HOURLY = Interval(HOUR, anchor=NOON)


def path(conversation: Conversation) -> str:
    return f"/api/conversations/{conversation.id}/timeline"


def types(shown: Any) -> list[str]:
    return [item["type"] for item in shown["items"]]


def asking(**more: object) -> End:
    question = {"type": "choice", "prompt": "Which?", "options": ["left", "right"], **more}
    return End({"needs_input": True, "message": "Hm.", "question": question})


async def test_a_chat_shows_what_was_said_and_the_run_that_answered(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    chat = await stage.chat()
    stage.engine.then(Spend(40), Call("look", {"path": "a.txt"}), Say("Here."))
    await stage.say(chat, "Look, please.")
    clock.advance(MINUTE)
    await stage.work()

    shown = await ask.get(path(chat))

    assert types(shown) == ["message", "run", "message"]
    reply, started, said = shown["items"]
    assert (reply["message"]["content"], said["message"]["content"]) == ("Here.", "Look, please.")
    assert (started["at"], started["message"]) == ("2026-11-16T12:01:00Z", None)
    assert (reply["run_id"], said["run_id"]) == (started["run_id"], None)
    run = shown["runs"][started["run_id"]]
    assert (run["kind"], run["status"], run["started_by"]) == ("reply", "success", "message")
    assert (run["seconds"], run["calls"]) == (0, 1)
    assert run["cost"] == {"micros": 0, "tokens": 40, "is_all_priced": False}
    (call,) = run["tool_calls"]
    assert (call["tool"], call["summary"], call["state"]) == ("look", "path=a.txt", "done")
    assert call["server"]
    assert shown["next"] is None


async def test_questions_show_how_they_ended_and_with_what_they_were_answered(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    stage.engine.then(asking())
    stage.engine.then(asking(default="left", expires_in="1h"))
    stage.engine.then(asking())
    stage.engine.then(asking())
    task = await stage.task(HOURLY)
    await stage.work()
    (opened,) = [one for one in (await ask.get(path(task)))["items"] if one["question"]]
    assert (opened["question"]["state"], opened["question"]["closed_at"]) == ("open", None)
    clock.advance(MINUTE)
    await ask.do("POST", f"/api/questions/{opened['question']['id']}/answer", {"answer": "right"})
    await stage.work()
    clock.advance(2 * HOUR)
    assert await stage.reminder.run_once()
    await stage.work()
    await ask.do("POST", f"/api/conversations/{task.id}/pause")
    clock.advance(MINUTE)
    await ask.do("POST", f"/api/conversations/{task.id}/run-now")
    await stage.work()
    clock.advance(MINUTE)

    shown = await ask.get(path(task))

    found = [one["question"] for one in shown["items"] if one["question"]][::-1]
    answered, expired, withdrawn, last = found
    assert [one["state"] for one in found] == ["answered", "expired", "withdrawn", "open"]
    assert [one["answer"] for one in found] == ["right", "left", None, None]
    assert answered["answered_by"] == {
        "kind": "token",
        "name": "command line of this machine",
    }
    assert (expired["answered_by"], withdrawn["answered_by"]) == (None, None)
    assert (answered["asked_at"], answered["closed_at"]) == (
        "2026-11-16T12:00:00Z",
        "2026-11-16T12:01:00Z",
    )
    assert last["run_id"] in shown["runs"]
    # The notes in the transcript say whose end they record.
    notes = [one["message"]["closes"] for one in shown["items"] if one["message"]]
    assert set(notes) - {None} == {one["id"] for one in (answered, expired, withdrawn)}


async def test_background_runs_failures_and_skipped_slots_stand_where_they_were(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    stage.engine.then(Fail(EngineFailed("The model is down.")))
    task = await stage.task(HOURLY)
    await stage.work()
    clock.advance(5 * HOUR)
    await stage.work()

    shown = await ask.get(path(task))

    assert types(shown) == ["message", "run", "skipped", "run"]
    runs = [shown["runs"][item["run_id"]] for item in shown["items"][1:]]
    assert [run["status"] for run in runs] == ["success", "skipped", "failure"]
    assert [run["started_by"] for run in runs] == ["schedule", None, "schedule"]
    assert runs[1]["skipped"]["in_words"].startswith("machine off or busy")
    assert runs[2]["failure"]["message"] == "The model is down."


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
async def test_every_item_is_on_one_page_also_those_of_the_same_moment(
    ask: Asker, stage: Stage, clock: SetClock, limit: int
) -> None:
    task = await _busy_task(ask, stage, clock)
    whole = (await ask.get(path(task), limit=200))["items"]
    assert {item["type"] for item in whole} == {"message", "run", "question", "skipped"}

    items, cursor = list[Any](), None
    while True:
        page = await ask.get(path(task), limit=limit, **({"cursor": cursor} if cursor else {}))
        assert len(page["items"]) <= limit
        assert all(item["run_id"] in page["runs"] for item in page["items"] if item["run_id"])
        items += page["items"]
        if (cursor := page["next"]) is None:
            break

    assert items == whole
    # Newest first, each kind in its own order.
    assert [item["at"] for item in items] == sorted((item["at"] for item in items), reverse=True)


async def test_a_page_goes_on_from_where_it_ended_though_something_was_added(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    task = await _busy_task(ask, stage, clock)
    whole = (await ask.get(path(task), limit=200))["items"]
    first = await ask.get(path(task), limit=4)
    await stage.say(task, "One more thing.")

    then = await ask.get(path(task), limit=200, cursor=first["next"])

    assert first["items"] + then["items"] == whole


async def test_of_many_calls_the_last_are_shown_and_long_arguments_only_counted(
    ask: Asker, stage: Stage
) -> None:
    calls = [Call("look", {"n": n}) for n in range(CALLS_SHOWN + 4)]
    long = Call("look", {"text": "x" * MAX_ARGUMENT_CHARS})
    stage.engine.then(*calls, long, Say("Done."))
    chat = await stage.chat()
    await stage.say(chat, "Look.")
    await stage.work()

    (run,) = (await ask.get(path(chat)))["runs"].values()

    assert run["calls"] == CALLS_SHOWN + 5
    assert len(run["tool_calls"]) == CALLS_SHOWN
    summaries = {call["summary"] for call in run["tool_calls"]}
    assert f"({MAX_ARGUMENT_CHARS + 12:,} characters)" in summaries


async def test_messages_stay_when_their_run_was_removed(ask: Asker, stage: Stage) -> None:
    chat = await stage.chat()
    await stage.say(chat, "Hello?")
    await stage.work()
    stage.database.run(lambda tx: tx.connection.execute(delete(tables.runs)))

    shown = await ask.get(path(chat))

    assert types(shown) == ["message", "message"]
    assert shown["items"][0]["run_id"] is not None
    assert shown["runs"] == {}


async def test_a_timeline_takes_as_many_statements_whatever_is_in_it_and_scans_nothing(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    chat = await stage.chat()
    stage.engine.then(Call("look"), Say("Here."))
    await stage.say(chat, "Look.")
    await stage.work()
    task = await _busy_task(ask, stage, clock)

    # The first request also notes the use of the token.
    await ask.get(path(chat))
    with watched(stage.database) as few:
        await ask.get(path(chat))
    with watched(stage.database) as many:
        await ask.get(path(task))

    assert len(many) <= len(few)
    reads = [
        (one, values) for one, values in many if "FROM tool_calls" in one or "FROM spend" in one
    ]
    assert len(reads) == 2
    for statement, values in reads:
        assert not scans(stage.database, statement, values), statement


@pytest.mark.parametrize("cursor", ["x", "WyJhIl0", "bnVsbA"])
async def test_an_odd_cursor_is_refused(ask: Asker, stage: Stage, cursor: str) -> None:
    chat = await stage.chat()

    answer = await ask("GET", path(chat), params={"cursor": cursor})

    assert answer.status_code == 400


async def _busy_task(ask: Asker, stage: Stage, clock: SetClock) -> Conversation:
    """Let much happen, some of it in the same moment."""
    stage.engine.then(Call("look"), Spend(9), asking())
    task = await stage.task(HOURLY)
    await stage.work()
    await stage.answer(task, "left")
    await stage.work()
    clock.advance(3 * HOUR)
    await stage.work()
    clock.advance(MINUTE)
    for text in ("Hello?", "And now?"):
        await stage.say(task, text)
        await stage.work()
    assert (await ask.get("/api/me"))["id"] == USER
    return task
