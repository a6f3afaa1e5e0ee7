"""`/api/questions`: listing, answering once, putting off."""

import asyncio
from datetime import timedelta

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import End
from support.requirements import requirement
from support.stage.api_stage import Asker
from support.stage.stage import Stage

from backburner.core.conversation import Conversation

MINUTE = timedelta(minutes=1)
ONE_OF = "Send either an `answer` or `values`."


async def asking(stage: Stage, kind: str = "confirmation", title: str = "Work") -> Conversation:
    options = {"options": ["left", "right"]} if kind == "choice" else {}
    question = {"type": kind, "prompt": "Well?", **options}
    stage.engine.then(End({"needs_input": True, "message": "Hm.", "question": question}))
    task = await stage.task(title=title)
    await stage.work()
    return task


@requirement("A-api", "A-fields")
async def test_an_open_question_is_shown_and_answered(ask: Asker, stage: Stage) -> None:
    task = await asking(stage)

    (shown,) = (await ask.get("/api/questions"))["items"]
    assert (shown["prompt"], shown["options"]) == ("Well?", ["yes", "no"])
    assert (shown["conversation_id"], shown["title"]) == (task.id, "Work")
    conversation = await ask.get(f"/api/conversations/{task.id}")
    assert conversation["status"] == "waiting_input"
    assert conversation["state"]["pending_question"]["id"] == shown["id"]
    assert conversation["task"]["needs_you"]

    answered = await ask.do("POST", f"/api/questions/{shown['id']}/answer", {"answer": True})

    assert answered["status"] == "background"
    assert answered["questions"] == []
    await stage.work()
    assert "The user answered: yes" in stage.engine.requests[-1].prompt
    assert (await ask.get("/api/questions"))["items"] == []


async def test_a_question_is_answered_once_and_with_what_fits(ask: Asker, stage: Stage) -> None:
    task = await asking(stage, "choice")
    path = f"/api/questions/{stage.question(task).id}/answer"

    wrong = await ask("POST", path, {"answer": "up"})
    assert wrong.status_code == 400
    assert "left, right" in wrong.json()["hint"]
    assert (await ask("POST", path, {"answer": 7})).status_code == 422
    for body in ({}, {"answer": "left", "values": {}}):
        neither = await ask("POST", path, body)
        assert (neither.status_code, neither.json()["detail"]) == (400, ONE_OF)
    form = await ask("POST", path, {"values": {"way": "left"}})
    assert (form.status_code, form.json()["hint"]) == (400, "Send an `answer`.")
    await ask.do("POST", path, {"answer": "Left"})

    assert (await ask("POST", path, {"answer": "right"})).status_code == 409


async def test_of_two_answers_at_the_same_time_one_wins(ask: Asker, stage: Stage) -> None:
    task = await asking(stage)
    path = f"/api/questions/{stage.question(task).id}/answer"

    answers = await asyncio.gather(*(ask("POST", path, {"answer": "yes"}) for _ in range(5)))

    assert sorted(one.status_code for one in answers) == [200, 409, 409, 409, 409]


async def test_a_question_is_put_off(ask: Asker, stage: Stage, clock: SetClock) -> None:
    task = await asking(stage)
    path = f"/api/questions/{stage.question(task).id}/snooze"

    later = await ask.do("POST", path, {"for": "2 days"})

    assert later["remind_at"] == "2026-11-18T12:00:00Z"
    clock.advance(timedelta(days=1))
    assert not await stage.reminder.run_once()
    for wrong in ("soon", "", "-1h"):
        assert (await ask("POST", path, {"for": wrong})).status_code == 400
    await stage.answer(task, "yes")
    assert (await ask("POST", path, {"for": "1h"})).status_code == 409


async def test_the_oldest_question_comes_first_page_by_page(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    for number in range(3):
        await asking(stage, title=f"{number}")
        clock.advance(MINUTE * (number % 2))

    first = await ask.get("/api/questions", limit=2)
    await asking(stage, title="new")
    second = await ask.get("/api/questions", limit=2, cursor=first["next"])

    shown = [one["title"] for page in (first, second) for one in page["items"]]
    assert sorted(shown[:2]) == ["0", "1"]
    assert sorted(shown[2:]) == ["2", "new"]


@pytest.mark.parametrize("kind", ["confirmation", "choice", "input"])
async def test_every_type_of_question_can_be_answered(ask: Asker, stage: Stage, kind: str) -> None:
    task = await asking(stage, kind)
    answer = {"confirmation": "no", "choice": "right", "input": "Whatever."}[kind]

    done = await ask.do(
        "POST", f"/api/questions/{stage.question(task).id}/answer", {"answer": answer}
    )

    assert done["questions"] == []
