"""An agent lists and stops the background work of its conversation."""

from datetime import timedelta

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import Call, End
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
from support.simulator.world import FlakyDatabase
from support.stage.make import STRANGER
from support.stage.stage import Stage

from backburner.actions.origin import Origin
from backburner.actions.work import control
from backburner.core.conversation import EndedAs, Status
from backburner.core.schedule import Interval

SECOND = timedelta(seconds=1)


async def test_the_work_of_a_conversation_is_listed(stage: Stage, clock: SetClock) -> None:
    chat = await stage.chat()
    assert await ask(stage, chat, Call("list_work")) == ["There is no background work here."]
    await ask(stage, chat, schedule(**WATCH), schedule(**STRETCH))
    (child,) = children(stage, chat)
    clock.advance(SECOND)
    paused = await stage.task(Interval(SECOND, clock.now), parent_id=chat.id, title="Old")
    await control.pause(stage.deps, Origin.by_user(chat.user_id), paused.id)

    (output,) = await ask(stage, chat, Call("list_work"))

    own, stretch, old = output.splitlines()
    assert own == (
        "This conversation: Look at the build and say when it breaks, at 09:00 on Monday through"
        " Friday (UTC). Active. Next: Tue 17 Nov 2026, 09:00 UTC, then Wed 18 Nov 2026, 09:00 UTC,"
        " then Thu 19 Nov 2026, 09:00 UTC."
    )
    assert stretch == (
        f"Task 'Stretch' ({child.id}): Remind the user to stretch, once, on Monday 16 November"
        " 2026 at 12:00:20 (UTC). Active."
    )
    assert old == f"Task 'Old' ({paused.id}): Do it, every second. Paused."


async def test_a_question_is_listed_with_what_is_asked(stage: Stage) -> None:
    chat = await stage.chat()
    stage.engine.then(schedule(what="x" * 400, when="now"))
    await stage.say(chat, "Please.")
    question = {"type": "confirmation", "prompt": "Really?"}
    stage.engine.then(End({"needs_input": True, "message": "Hm.", "question": question}))
    await stage.work()

    (output,) = await ask(stage, chat, Call("list_work"))

    assert "x […], immediately. Waits for an answer to: Really." in output


async def test_the_only_work_there_is_needs_no_name_to_be_stopped(stage: Stage) -> None:
    chat = await stage.chat()
    await ask(stage, chat, schedule(**WATCH))
    output = await ask(stage, chat, Call("stop_work"), Call("stop_work"))

    assert output == [
        "Stopped: Look at the build and say when it breaks.",
        "There is no background work here.",
    ]
    now = stage.load(chat)
    assert (now.status, now.ended_as) == (Status.ACTIVE, EndedAs.CANCELLED)


async def test_a_name_that_could_mean_several_is_asked_about(stage: Stage) -> None:
    chat = await stage.chat()
    await ask(stage, chat, schedule(**WATCH), schedule(**STRETCH), schedule(**STRETCH))
    first, second = children(stage, chat)

    output = await ask(
        stage,
        chat,
        Call("stop_work"),
        Call("stop_work", {"name": "stretch"}),
        Call("stop_work", {"name": "tea"}),
        Call("stop_work", {"name": second.id}),
        Call("stop_work", {"name": "STRETCH"}),
    )

    assert output[0].startswith(f"Several match: `this` ({WATCH['what']}), 'Stretch' (")
    assert output[1] == (
        f"Several match: 'Stretch' ({first.id}), 'Stretch' ({second.id})."
        " Name one of them, or `all`."
    )
    assert output[2] == "No work here is called 'tea'. List the work with list_work."
    assert output[3:] == ["Stopped: Remind the user to stretch."] * 2
    assert [stage.load(child).ended_as for child in (first, second)] == [EndedAs.CANCELLED] * 2
    # Who stopped it does not have to be told.
    assert not any("It was cancelled." in text for text in stage.said(chat))
    assert stage.load(chat).status is Status.BACKGROUND


async def test_everything_can_be_stopped_at_once(stage: Stage) -> None:
    chat = await stage.chat()
    await ask(stage, chat, schedule(**WATCH), schedule(**STRETCH))
    (output,) = await ask(stage, chat, Call("stop_work", {"name": "all"}))

    assert output == (
        "Stopped: Look at the build and say when it breaks; Remind the user to stretch."
    )
    assert await ask(stage, chat, Call("list_work")) == ["There is no background work here."]


async def test_a_run_does_not_stop_itself(stage: Stage) -> None:
    chat = await stage.chat()
    stage.engine.then(schedule(what="Do it.", when="every 1h"))
    await stage.say(chat, "Please.")
    stage.engine.then(Call("stop_work"), End({"complete": True, "final": True}))
    await stage.work()

    assert "End it with complete and final." in stage.engine.results[-1].text
    assert stage.load(chat).ended_as is EndedAs.COMPLETED


async def test_the_work_of_other_users_is_neither_listed_nor_stopped(stage: Stage) -> None:
    mine, theirs = await stage.chat(), await stage.chat(STRANGER)
    other = await stage.chat()
    await ask(stage, mine, schedule(**WATCH), schedule(**STRETCH))
    (child,) = children(stage, mine)
    for chat in (theirs, other):
        output = await ask(
            stage,
            chat,
            Call("list_work"),
            Call("stop_work", {"name": child.id}),
            Call("stop_work", {"name": mine.id}),
        )
        assert output[0] == "There is no background work here."
        assert all(text.startswith("No work here is called") for text in output[1:])
    assert stage.load(child).status is Status.BACKGROUND


@pytest.mark.parametrize("breaks", ["before", "after"])
async def test_work_is_stopped_though_an_answer_of_the_database_is_lost(
    flaky: FlakyDatabase, breaks: str
) -> None:
    stage = set_up(flaky)
    chat = await stage.chat()
    turn = await reply_turn(stage, chat)
    await call(stage, turn, "schedule_work", **STRETCH)
    flaky.breaks = (breaks,)
    result = await call(stage, turn, "stop_work")

    assert result.text == "Stopped: Remind the user to stretch."
    assert stage.load(chat).ended_as is EndedAs.CANCELLED
