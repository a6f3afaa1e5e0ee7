"""An agent schedules and changes background work from a chat."""

from datetime import timedelta
from typing import Any

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import End
from support.people.tool_calls import (
    STRETCH,
    WATCH,
    ask,
    call,
    children,
    reply_turn,
    schedule,
    set_up,
)
from support.requirements import requirement
from support.simulator.world import FlakyDatabase
from support.stage.make import NOON
from support.stage.stage import Stage

from backburner.actions.origin import Origin
from backburner.actions.work import control
from backburner.core import transitions
from backburner.core.conversation import Author, Destination, Kind, Notify, Status
from backburner.core.question import Purpose
from backburner.core.routing import Routes
from backburner.core.schedule import Cron, Interval, Scheduled
from backburner.store.db import Database

SECOND = timedelta(seconds=1)


def move_to(stage: Stage, zone: str) -> None:
    stage.database.run(
        lambda tx: tx.connection.exec_driver_sql("UPDATE users SET zone = ?", (zone,))
    )


@requirement("A-from-chat")
async def test_work_asked_for_in_a_chat_becomes_the_work_of_that_conversation(
    stage: Stage, clock: SetClock
) -> None:
    chat = await stage.chat()
    move_to(stage, "Europe/Berlin")
    (output,) = await ask(stage, chat, schedule(**WATCH))

    now = stage.load(chat)
    assert (now.status, now.schedule) == (
        Status.BACKGROUND,
        Cron("0 9 * * 1-5", "Europe/Berlin"),
    )
    assert now.state.context["prompt"] == WATCH["what"]
    assert now.state.step == "At the beginning."
    assert output == (
        "Scheduled as the work of this conversation,"
        " at 09:00 on Monday through Friday (Europe/Berlin)."
        " Next: Tue 17 Nov 2026, 09:00 CET, then Wed 18 Nov 2026, 09:00 CET,"
        " then Thu 19 Nov 2026, 09:00 CET (Europe/Berlin). It is active."
    )
    clock.advance(timedelta(days=1))
    await stage.work()
    assert WATCH["what"] in stage.engine.requests[-1].prompt
    assert stage.load(chat).run_count == 1


async def test_work_names_a_chat_that_nobody_has_named(stage: Stage) -> None:
    chat, named = await stage.chat(), await stage.chat()
    rename = transitions.rename(stage.load(named), "Mine")
    stage.database.run(lambda tx: tx.conversations.save(rename))
    for one in (chat, named):
        await ask(stage, one, schedule(**WATCH, title="Watch CI"))

    assert [stage.load(one).title for one in (chat, named)] == ["Watch CI", "Mine"]


@requirement("A-from-chat", "B-origin")
async def test_a_conversation_that_has_work_gets_a_task_under_it_that_reports_there(
    stage: Stage, clock: SetClock
) -> None:
    chat = await stage.chat()
    await ask(stage, chat, schedule(**WATCH))
    stage.database.run(
        lambda tx: tx.connection.exec_driver_sql(
            "UPDATE conversations SET reports_to = ?", ('[["outside", "me"]]',)
        )
    )
    (output,) = await ask(stage, chat, schedule(**STRETCH))

    (child,) = children(stage, chat)
    assert (child.kind, child.title, child.created_by) == (Kind.TASK, "Stretch", Author.USER)
    assert child.schedule == Scheduled(NOON + 20 * SECOND)
    assert child.reports_to == (Destination("outside", "me"),)
    assert output == (
        f"Scheduled as a separate task that reports here, 'Stretch' ({child.id}), once, on Monday"
        " 16 November 2026 at 12:00:20 (UTC). It is active."
    )
    assert stage.load(chat).schedule == Cron("0 9 * * 1-5", "UTC")

    clock.advance(20 * SECOND)
    stage.engine.then(End({"complete": True, "message": "Stretch now."}))
    await stage.work()
    assert stage.said(chat)[-1] == "Stretch: Stretch now."


@requirement("A-from-chat")
async def test_each_of_several_things_becomes_a_separate_task(stage: Stage) -> None:
    chat = await stage.chat()
    await ask(stage, chat, schedule(**WATCH, separate=True), schedule(**STRETCH, separate=True))

    assert {child.title for child in children(stage, chat)} == {WATCH["what"], "Stretch"}
    assert stage.load(chat).schedule is None


@requirement("B-routing")
async def test_a_task_under_a_chat_goes_to_the_background_profile_and_the_chat_stays(
    database: Database,
) -> None:
    routes = Routes(names=("scripted", "local"), chat="scripted", background="local")
    stage = set_up(database, routes=routes)
    chat = await stage.chat()
    await ask(stage, chat, schedule(**WATCH), schedule(**STRETCH))

    (child,) = children(stage, chat)
    assert (stage.load(chat).profile, child.profile) == ("scripted", "local")


async def test_work_scheduled_by_a_background_run_waits_for_approval(stage: Stage) -> None:
    chat = await stage.chat()
    stage.engine.then(schedule(what="Do it.", when="now"))
    await stage.say(chat, "Please.")
    stage.engine.then_as(lambda _: (schedule(**WATCH), End({"complete": True})))
    await stage.work()

    (child,) = children(stage, chat)
    (question,) = child.questions
    assert (child.status, question.purpose) == (Status.WAITING_INPUT, Purpose.PROPOSAL)
    assert WATCH["what"] in question.prompt
    assert "at 09:00 on Monday through Friday (UTC)" in question.prompt
    assert "Nothing runs before the owner approves it" in stage.engine.results[-1].text
    assert stage.notices()[-1] == question.prompt

    await stage.answer(child, "yes")
    assert stage.load(child).status is Status.BACKGROUND


async def test_work_scheduled_after_reading_outside_text_waits_for_approval(
    stage: Stage,
) -> None:
    chat = await stage.chat()
    turn = await reply_turn(stage, chat)
    stage.database.run(lambda tx: tx.turns.mark_outside_text(turn))
    result = await call(stage, turn, "schedule_work", **WATCH)

    assert result.text.startswith("Proposed as")
    assert stage.load(chat).schedule is None
    (child,) = children(stage, chat)
    assert child.questions[0].purpose is Purpose.PROPOSAL

    result = await call(stage, turn, "schedule_work", **STRETCH, change="Look at the build")
    assert result.text.startswith("Only proposed, for 'Look at the build")
    assert stage.load(child) == child


async def test_work_is_changed_where_it_is(stage: Stage) -> None:
    chat = await stage.chat()
    await ask(stage, chat, schedule(**WATCH), schedule(**STRETCH))
    output = await ask(
        stage,
        chat,
        schedule(what="", when="every 2h", change="this"),
        schedule(what="Say: tea.", when="every 1h", change="stretch", notify="always"),
    )

    now, (child,) = stage.load(chat), children(stage, chat)
    assert now.schedule == Interval(timedelta(hours=2), NOON)
    assert now.state.context["prompt"] == WATCH["what"]
    assert child.schedule == Interval(timedelta(hours=1), NOON)
    assert (child.state.context["prompt"], child.notify) == ("Say: tea.", Notify.ALWAYS)
    assert all(text.startswith("Changed.") for text in output)
    assert "every 2 hours. Next: Mon 16 Nov 2026, 12:00 UTC, then" in output[0]


async def test_only_one_piece_of_work_is_changed_at_a_time(stage: Stage) -> None:
    chat = await stage.chat()
    await ask(stage, chat, schedule(**WATCH), schedule(**STRETCH))
    (output,) = await ask(stage, chat, schedule(what="", when="now", change="all"))

    assert "Only one task can be changed at a time." in output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"what": "Do it.", "when": "soon"}, "'soon' is not a schedule. Use, for example"),
        ({"what": " ", "when": "now"}, "Work needs a description."),
        ({"what": " ", "when": "now", "separate": True}, "Work needs a name and a prompt."),
        ({"what": "x" * 30_000, "when": "now"}, "the limit is 24,000"),
        ({"what": "Do it.", "when": "now", "title": "x" * 201}, "schedule_work was not called."),
        ({"what": "Do it.", "when": "now", "change": "tea"}, "No work here is called 'tea'."),
        ({"what": "Do it."}, "when: Field required"),
    ],
)
async def test_an_invalid_request_for_work_is_refused_and_leaves_nothing(
    stage: Stage, arguments: dict[str, Any], said: str
) -> None:
    chat = await stage.chat()
    (output,) = await ask(stage, chat, schedule(**arguments))

    assert said in output
    assert stage.engine.results[-1].failed
    assert (stage.load(chat).schedule, children(stage, chat)) == (None, [])


async def test_scheduling_is_refused_at_the_limit_on_active_tasks(stage: Stage) -> None:
    chat = await stage.chat()
    for _ in range(stage.deps.limits.max_tasks):
        await stage.task(Scheduled(NOON + SECOND), parent_id=chat.id)
    (output,) = await ask(stage, chat, schedule(**STRETCH, separate=True))
    assert "Limit reached: 20 active tasks." in output
    assert len(children(stage, chat)) == 20

    await control.cancel(stage.deps, Origin.by_user(chat.user_id), children(stage, chat)[0].id)
    (output,) = await ask(stage, chat, schedule(**STRETCH, separate=True))
    assert output.startswith("Scheduled as a separate task that reports here, 'Stretch'")


async def test_new_work_can_start_after_the_last_has_ended(stage: Stage, clock: SetClock) -> None:
    chat = await stage.chat()
    await ask(stage, chat, schedule(**STRETCH))
    clock.advance(20 * SECOND)
    stage.engine.then(End({"complete": True, "message": "Stretch.", "state_update": {"n": 1}}))
    await stage.work()
    await ask(stage, chat, schedule(**WATCH))

    now = stage.load(chat)
    assert (now.state.context["prompt"], now.state.data) == (WATCH["what"], {})
    assert children(stage, chat) == []


async def test_work_of_a_waiting_conversation_starts_after_the_answer(
    stage: Stage, clock: SetClock
) -> None:
    chat = await stage.chat()
    await ask(stage, chat, schedule(**STRETCH))
    clock.advance(20 * SECOND)
    question = {"type": "confirmation", "prompt": "Really?"}
    stage.engine.then(End({"needs_input": True, "message": "Hm.", "question": question}))
    await stage.work()
    (output,) = await ask(stage, chat, schedule(what="", when="every 2h", change="this"))

    assert output.endswith("It starts when the open question has been answered.")


@pytest.mark.parametrize("breaks", ["before", "after"])
@pytest.mark.parametrize("separate", [False, True])
async def test_work_is_scheduled_once_though_an_answer_of_the_database_is_lost(
    flaky: FlakyDatabase, breaks: str, *, separate: bool
) -> None:
    stage = set_up(flaky)
    chat = await stage.chat()
    turn = await reply_turn(stage, chat)
    flaky.breaks = (breaks,)
    result = await call(stage, turn, "schedule_work", **STRETCH, separate=separate)

    assert result.text.endswith("It is active.")
    scheduled = [one for one in (stage.load(chat), *children(stage, chat)) if one.schedule]
    assert [one.schedule_revision for one in scheduled] == [1]
    assert (scheduled[0].id == chat.id) is not separate


async def test_an_agent_that_has_lost_the_turn_schedules_nothing(
    stage: Stage, clock: SetClock
) -> None:
    chat = await stage.chat()
    turn = await reply_turn(stage, chat)
    clock.advance(timedelta(minutes=1))
    await stage.rescuer.run_once()
    result = await call(stage, turn, "schedule_work", **STRETCH)

    assert result.failed
    assert stage.load(chat).schedule is None
