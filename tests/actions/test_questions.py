"""Questions remind, can be put off, and run out into what they say they do."""

from datetime import timedelta

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import End
from support.requirements import requirement
from support.stage.make import STRANGER
from support.stage.stage import Stage

from backburner.actions import questions
from backburner.core.errors import BadAnswer, BadRequest, Conflict, NotFound

DAY = timedelta(days=1)


def asking(**more: object) -> End:
    question = {"type": "choice", "prompt": "Which?", "options": ["left", "right"], **more}
    return End({"needs_input": True, "message": "Hm.", "question": question})


@requirement("Z-remind")
async def test_an_open_question_is_brought_up_again_less_and_less_often(
    stage: Stage, clock: SetClock
) -> None:
    stage.engine.then(asking())
    await stage.task()
    await stage.work()

    for wait in (DAY, 2 * DAY, 4 * DAY):
        assert not await stage.reminder.run_once()
        clock.advance(wait)
        assert await stage.reminder.run_once()
        assert not await stage.reminder.run_once()

    assert stage.notices() == ["Which?"] * 4


@requirement("Z-remind")
async def test_a_question_that_is_put_off_is_brought_up_then(stage: Stage, clock: SetClock) -> None:
    stage.engine.then(asking())
    task = await stage.task()
    await stage.work()
    question = stage.question(task)

    await questions.snooze(stage.deps, task.user_id, question.id, 3 * DAY)
    clock.advance(2 * DAY)
    assert not await stage.reminder.run_once()
    clock.advance(DAY)
    assert await stage.reminder.run_once()

    with pytest.raises(BadRequest):
        await questions.snooze(stage.deps, task.user_id, question.id, timedelta())


@requirement("Z-remind")
async def test_a_question_that_runs_out_has_its_default(stage: Stage, clock: SetClock) -> None:
    stage.engine.then(asking(default="left", expires_in="12h"))
    task = await stage.task()
    await stage.work()
    clock.advance(timedelta(hours=12))

    await stage.reminder.run_once()
    await stage.work()

    told = stage.engine.requests[-1].prompt
    assert "Nobody answered in time; the default applies: left" in told
    assert "The user answered" not in told
    assert any("Nobody answered in time" in text for text in stage.said(task))


async def test_what_is_no_answer_changes_nothing(stage: Stage) -> None:
    stage.engine.then(asking())
    task = await stage.task()
    await stage.work()
    question = stage.question(task)

    with pytest.raises(BadAnswer) as caught:
        await stage.answer(task, "up")
    assert caught.value.options == ("left", "right")
    stage.user(STRANGER)
    with pytest.raises(NotFound):
        await questions.answer(stage.deps, STRANGER, question.id, "left")
    assert stage.question(task) == question

    await stage.answer(task, "left")
    with pytest.raises(Conflict):
        await questions.answer(stage.deps, task.user_id, question.id, "right")
    with pytest.raises(Conflict):
        await questions.snooze(stage.deps, task.user_id, question.id, DAY)
