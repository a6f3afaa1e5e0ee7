"""A test run makes no call that needs consent: it asks about all of them at once, for its task."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import Call, End, Fail, ScriptedEngine, Wait
from support.requirements import requirement
from support.stage.make import MATE, NOON, USER
from support.stage.stage import Stage

from backburner.actions import questions
from backburner.actions.origin import Origin
from backburner.actions.work import control, preview
from backburner.actions.work.control import TaskChanges
from backburner.bus.local import LocalBus
from backburner.core.conversation import Conversation, EndedAs, Status
from backburner.core.errors import Conflict, EngineFailed, NotFound
from backburner.core.question import NO, YES, Purpose
from backburner.core.schedule import Cron
from backburner.core.tool_policy import ALWAYS_HERE, Grant
from backburner.core.work.task_test_run import NOT_MADE
from backburner.runs.stopping import StopReason
from backburner.store.db import Database

MONDAYS = Cron("33 3 * * 1", "UTC")
DONE = End({"complete": True, "message": "Green."})
ANN, BOB = Call("send", {"to": "Ann"}), Call("send", {"to": "Bob"})
MAKE = Call("command", {"command": "make"})


async def tried(stage: Stage, task: Conversation, *script: Any) -> Conversation:
    """Do a test run of a task to its end."""
    stage.engine.then(*script)
    job = await preview.start_test_run(stage.deps, task.user_id, task.id)
    await stage.work()
    return job


async def run(stage: Stage, task: Conversation, *script: Any) -> None:
    stage.engine.then(*script)
    await control.run_now(stage.deps, Origin.by_user(task.user_id), task.id)
    await stage.work()


def grants(stage: Stage, conversation: Conversation) -> Sequence[Grant]:
    user = conversation.user_id
    return stage.database.run(lambda tx: tx.grants.valid(user, conversation.id))


def arguments_of(binding: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [bound["arguments"] for bound in binding["calls"]]


@requirement("Z-approve")
async def test_a_test_run_goes_on_and_asks_once_about_all_calls(stage: Stage) -> None:
    task = await stage.task(MONDAYS)
    job = await tried(stage, task, ANN, Call("look"), BOB, ANN, DONE)

    assert stage.tools.calls == [("look", {})]
    assert [result.text for result in stage.engine.results] == [
        NOT_MADE,
        "look is done.",
        NOT_MADE,
        NOT_MADE,
    ]
    (asked,) = stage.load(job).questions
    assert (asked.purpose, asked.options) == (Purpose.APPROVAL, (YES, ALWAYS_HERE, NO))
    assert arguments_of(asked.binds_to) == [{"to": "Ann"}, {"to": "Bob"}]
    assert asked.prompt.splitlines()[1:] == ['1. send {"to":"Ann"}', '2. send {"to":"Bob"}']
    assert "made none of these calls" in asked.prompt
    assert "depend on earlier ones" in asked.prompt
    assert (stage.load(job).ended_as, stage.said(task)) == (
        EndedAs.COMPLETED,
        ["Test run of Work: Green."],
    )
    assert stage.load(task) == task
    assert len(stage.notices()) == 1


@requirement("Z-grants")
async def test_a_yes_is_for_the_next_runs_of_the_task_and_for_each_call_once(
    either: Database,
) -> None:
    stage = Stage(either, LocalBus(), ScriptedEngine())
    task = await stage.task(MONDAYS)
    job = await tried(stage, task, ANN, BOB, DONE)
    await stage.answer(job, YES)
    await stage.work()

    # The test run does not go on.
    assert (stage.load(job).status, len(stage.engine.requests)) == (Status.ACTIVE, 1)
    assert (len(grants(stage, task)), grants(stage, job)) == (2, ())
    await run(stage, task, BOB, Call("send", {"to": "Eve"}))
    assert stage.tools.calls == [("send", {"to": "Bob"})]
    assert arguments_of(stage.question(task).binds_to) == [{"to": "Eve"}]


async def test_always_here_lasts_for_the_calls_of_which_it_can_be_said(stage: Stage) -> None:
    task = await stage.task(MONDAYS)
    job = await tried(stage, task, ANN, MAKE, DONE)
    assert "'always here' allows these only once: 2." in stage.question(job).prompt
    await stage.answer(job, ALWAYS_HERE)

    lasting, once = sorted(grants(stage, task), key=lambda grant: grant.call is not None)
    assert (lasting.tool, lasting.call, lasting.expires_at) == ("send", None, None)
    assert (once.tool, once.call is None) == ("command", False)
    await run(stage, task, BOB, MAKE, ANN, MAKE)
    assert [name for name, _ in stage.tools.calls] == ["send", "command", "send"]
    assert arguments_of(stage.question(task).binds_to) == [{"command": "make"}]


async def test_always_here_is_not_offered_for_a_list_of_which_nothing_can_last(
    stage: Stage,
) -> None:
    task = await stage.task(MONDAYS)
    job = await tried(stage, task, MAKE, DONE)

    assert stage.question(job).options == (YES, NO)
    assert "only once" not in stage.question(job).prompt


async def test_after_a_no_the_task_asks_as_before(stage: Stage) -> None:
    task = await stage.task(MONDAYS)
    job = await tried(stage, task, ANN, DONE)
    await stage.answer(job, NO)
    await run(stage, task, ANN)

    assert (stage.tools.calls, grants(stage, task)) == ([], ())
    assert stage.question(task).purpose is Purpose.APPROVAL


async def test_a_yes_lasts_until_the_next_run_however_far_that_is(
    stage: Stage, clock: SetClock
) -> None:
    task = await stage.task(Cron("0 12 1 * *", "UTC"))
    job = await tried(stage, task, ANN, DONE)
    await stage.answer(job, YES)
    next_run_at = stage.load(task).next_run_at
    assert next_run_at is not None
    assert next_run_at - NOON > timedelta(days=7)
    clock.advance(next_run_at - clock.now)
    stage.engine.then(ANN, DONE)
    await stage.work()

    assert stage.tools.calls == [("send", {"to": "Ann"})]


async def test_what_the_task_may_do_is_done_in_its_test_run_and_not_asked_for(
    stage: Stage,
) -> None:
    task = await stage.task(MONDAYS)
    await stage.answer(await tried(stage, task, ANN, DONE), ALWAYS_HERE)
    await stage.answer(await tried(stage, task, MAKE, DONE), YES)
    job = await tried(stage, task, ANN, MAKE, DONE)

    # What is allowed once is kept for the task.
    assert (stage.tools.calls, stage.load(job).questions) == ([("send", {"to": "Ann"})], ())
    assert len(grants(stage, task)) == 2


async def test_a_yes_that_has_expired_is_asked_for_again(stage: Stage, clock: SetClock) -> None:
    task = await stage.task(MONDAYS)
    await control.pause(stage.deps, Origin.by_user(USER), task.id)
    await stage.answer(await tried(stage, task, MAKE, DONE), YES)
    clock.advance(timedelta(days=7))
    assert stage.load(await tried(stage, task, MAKE, DONE)).questions == ()
    clock.advance(timedelta(days=7))

    job = await tried(stage, task, MAKE, DONE)

    assert arguments_of(stage.question(job).binds_to) == [{"command": "make"}]
    assert stage.tools.calls == []


async def test_a_task_that_was_changed_meanwhile_gets_nothing(stage: Stage) -> None:
    task = await stage.task(MONDAYS, title="watch")
    job = await tried(stage, task, ANN, DONE)
    changes = TaskChanges(terms=lambda terms: replace(terms, prompt="Do something else."))
    await control.update(stage.deps, Origin.by_user(USER), task.id, changes)
    for answer in (YES, ALWAYS_HERE):
        with pytest.raises(Conflict, match="was changed after this test run"):
            await stage.answer(job, answer)

    assert (grants(stage, task), stage.load(job).status) == ((), Status.WAITING_INPUT)
    await stage.answer(job, NO)


async def test_the_question_of_a_test_run_is_withdrawn_with_its_task(stage: Stage) -> None:
    task = await stage.task(MONDAYS, title="watch")
    job = await tried(stage, task, ANN, DONE)
    asked = stage.question(job)
    with pytest.raises(Conflict, match="waits for your answer"):
        await preview.start_test_run(stage.deps, USER, task.id)
    await control.cancel_and_archive(stage.deps, Origin.by_user(USER), task.id)

    assert stage.load(job).questions == ()
    with pytest.raises(Conflict):
        await questions.answer(stage.deps, USER, asked.id, YES)


async def test_nobody_else_can_answer_for_a_test_run(stage: Stage) -> None:
    stage.user(MATE)
    job = await tried(stage, await stage.task(MONDAYS), ANN, DONE)
    with pytest.raises(NotFound):
        await questions.answer(stage.deps, MATE, stage.question(job).id, YES)


async def test_at_most_twenty_calls_are_asked_about_and_the_rest_is_said(stage: Stage) -> None:
    task = await stage.task(MONDAYS)
    calls = [Call("send", {"to": number}) for number in range(23)]
    job = await tried(stage, task, *calls, calls[22], DONE)

    asked = stage.question(job)
    assert arguments_of(asked.binds_to) == [{"to": number} for number in range(20)]
    assert "Not listed: 3 more." in asked.prompt
    await stage.answer(job, YES)
    assert len(grants(stage, task)) == 20


async def test_calls_that_are_too_long_to_be_shown_together_are_not_asked_about(
    stage: Stage,
) -> None:
    task = await stage.task(MONDAYS)
    calls = [Call("send", {"to": f"{number} {'x' * 3_000}"}) for number in range(10)]
    job = await tried(stage, task, *calls, DONE)

    asked = stage.question(job)
    assert len(arguments_of(asked.binds_to)) == 6
    assert "Not listed: 4 more." in asked.prompt
    assert len(asked.prompt) < 25_000


async def test_a_call_in_a_test_run_is_not_made_whatever_the_run_comes_to(stage: Stage) -> None:
    task = await stage.task(MONDAYS)
    needs_input = {"type": "input", "prompt": "Which one?"}
    job = await tried(
        stage, task, ANN, End({"needs_input": True, "message": "?", "question": needs_input})
    )

    of_gate, of_agent = sorted(stage.load(job).questions, key=lambda asked: asked.purpose)
    assert (of_agent.prompt, arguments_of(of_gate.binds_to)) == ("Which one?", [{"to": "Ann"}])
    # It has been asked about already.
    stage.engine.then(ANN, BOB, DONE)
    await questions.answer(stage.deps, USER, of_agent.id, "This one.")
    await questions.answer(stage.deps, USER, of_gate.id, YES)
    await stage.work()
    assert arguments_of(stage.question(job).binds_to) == [{"to": "Bob"}]
    assert (stage.tools.calls, len(grants(stage, task))) == ([], 1)


async def test_a_test_run_that_fails_asks_as_well(stage: Stage) -> None:
    task = await stage.task(MONDAYS)
    job = await tried(stage, task, ANN, Fail(EngineFailed("It broke.", permanent=True)))

    asked = [question for question in stage.load(job).questions if question.binds_to]
    assert [arguments_of(question.binds_to) for question in asked] == [[{"to": "Ann"}]]
    assert stage.tools.calls == []


async def test_a_test_run_that_is_handed_back_asks_first(stage: Stage) -> None:
    task = await stage.task(MONDAYS)
    stage.engine.then(ANN, Call("look"), Wait())
    job = await preview.start_test_run(stage.deps, USER, task.id)
    await stage.take_up()
    await stage.tools.started["look"].wait()
    stage.only_run().stop.request(StopReason.DRAINING)
    await stage.idle()
    assert arguments_of(stage.question(job).binds_to) == [{"to": "Ann"}]

    stage.engine.then(BOB, DONE)
    await stage.answer(job, YES)
    await stage.work()

    assert arguments_of(stage.question(job).binds_to) == [{"to": "Bob"}]
    assert stage.tools.calls == [("look", {})]


async def test_a_message_to_a_test_run_is_answered_as_in_any_chat(stage: Stage) -> None:
    job = await tried(stage, await stage.task(MONDAYS), DONE)
    stage.engine.then(ANN)
    await stage.say(job, "Send it.")
    await stage.work()
    await stage.answer(job, YES)
    stage.engine.then(ANN)
    await stage.work()

    assert stage.tools.calls == [("send", {"to": "Ann"})]
