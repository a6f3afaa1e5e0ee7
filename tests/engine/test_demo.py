"""The demo from a sentence to a notice, over the real actions; and what it does not understand."""

from dataclasses import replace

import pytest
from support.doubles.clock import SetClock
from support.requirements import requirement
from support.stage.make import NOON
from support.stage.stage import Stage
from support.stage.talks import SECOND, say, wait

from backburner.core import transitions
from backburner.core.conversation import EndedAs, Status
from backburner.core.ids import new_conversation_id
from backburner.core.question import QuestionType
from backburner.core.schedule import Immediate, Interval
from backburner.core.transitions import Brief
from backburner.engine.demo.engine import HELP, NO_TIME
from backburner.ports import DraftEvent, DraftPiece

NOT_UNDERSTOOD = "I did not understand “Sing a song!”. Say `help` to see what I do."


@requirement("A-from-chat")
async def test_a_reminder_comes_when_its_time_has_come(stage: Stage, clock: SetClock) -> None:
    chat = await stage.chat()
    answer = await say(stage, chat, "Remind me in 20 seconds to stretch.")
    assert answer == (
        "All right. This conversation now works on it, once, on Monday 16 November 2026"
        " at 12:00:20 (UTC). It is active."
    )
    await wait(stage, clock, 19)
    assert stage.notices() == []

    await wait(stage, clock, 1)

    assert stage.said(chat)[-1] == "Time to stretch."
    assert stage.notices() == ["Time to stretch."]
    now = stage.load(chat)
    assert (now.status, now.ended_as) == (Status.ACTIVE, EndedAs.COMPLETED)


async def test_a_reminder_that_comes_back_is_told_of_every_time(
    stage: Stage, clock: SetClock
) -> None:
    chat = await stage.chat()
    await say(stage, chat, "Every hour remind me to stretch")
    await wait(stage, clock, 3600)

    assert stage.notices() == ["Time to stretch."] * 2


@requirement("Z-ask")
async def test_a_question_is_asked_again_until_the_answer_is_no(
    stage: Stage, clock: SetClock
) -> None:
    chat = await stage.chat()
    await say(stage, chat, "Every 3 seconds ask me whether to go on.")
    question = stage.question(chat)
    assert (question.type, question.prompt) == (QuestionType.CONFIRMATION, "Shall I go on?")
    assert stage.load(chat).status is Status.WAITING_INPUT

    assert await say(stage, chat, "yes") == "yes"
    assert stage.load(chat).status is Status.BACKGROUND
    await wait(stage, clock, 3)
    assert stage.notices() == ["Shall I go on?"] * 2

    assert await say(stage, chat, "No!") == "All right, I stop here."
    now = stage.load(chat)
    assert (now.status, now.schedule, now.ended_as) == (Status.ACTIVE, None, EndedAs.COMPLETED)


async def test_a_question_that_is_asked_once_ends_with_its_answer(
    stage: Stage, clock: SetClock
) -> None:
    chat = await stage.chat()
    await say(stage, chat, "Ask me in 3 seconds whether to go on.")
    await wait(stage, clock, 3)

    assert await say(stage, chat, "yes") == "You said yes, and that was all."
    assert stage.load(chat).schedule is None


async def test_what_goes_on_is_told_and_stopped(stage: Stage) -> None:
    chat = await stage.chat()
    asked = "What are you working on?"
    assert await say(stage, chat, asked) == "There is no background work here."
    assert await say(stage, chat, "stop") == "There is no background work here."
    await say(stage, chat, "Remind me every weekday at 9 to stretch.")
    await say(stage, chat, "Remind me in 5 minutes to drink.")

    lines = (await say(stage, chat, asked)).splitlines()
    assert lines[0].startswith(
        "This conversation: Remind me to stretch, at 09:00 on Monday through Friday (UTC). Active."
    )
    assert lines[1].startswith("Task 'Remind me to drink' (c_")

    assert "That could be any of these" in await say(stage, chat, "stop")
    assert await say(stage, chat, "stop reminding me to drink") == "Stopped: Remind me to drink."
    assert await say(stage, chat, "stop") == "Stopped: Remind me to stretch."


async def test_several_wishes_become_a_task_each(stage: Stage, clock: SetClock) -> None:
    chat = await stage.chat()
    await stage.say(chat, "Hello! Remind me in 20 seconds to stretch.")
    await stage.say(chat, "And remind me in 30 seconds to drink. Thanks!")
    await stage.work()
    assert stage.said(chat)[-1].count("A task of its own") == 2
    await wait(stage, clock, 30)

    assert sorted(stage.notices()) == ["Time to drink.", "Time to stretch."]
    assert sorted(stage.said(chat)[-2:]) == [
        "Remind me to drink: Time to drink.",
        "Remind me to stretch: Time to stretch.",
    ]


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("help", HELP),
        ("Hello!", f"Hello! {HELP}"),
        ("Thanks!", "You are welcome."),
        ("yes", "There is no open question here."),
        ("What is the capital of France?", HELP),
        ("x" * 50_000, HELP),
        ("Remind me to stretch.", NO_TIME),
        ("stop. Sing a song!", f"There is no background work here.\n\n{NOT_UNDERSTOOD}"),
    ],
)
async def test_what_it_does_not_understand_it_says(stage: Stage, said: str, answer: str) -> None:
    chat = await stage.chat()

    assert await say(stage, chat, said) == answer
    assert stage.load(chat).schedule is None


async def test_a_time_that_is_none_is_explained(stage: Stage) -> None:
    chat = await stage.chat()
    answer = await say(stage, chat, "Remind me in 20 parsecs to stretch.")

    assert answer.startswith("I could not do that. '20 parsecs' is not a duration. Use,")


async def test_an_answer_is_said_word_by_word(stage: Stage) -> None:
    chat = await stage.chat()
    events: list[DraftEvent] = []
    with stage.deps.drafts.listen(lambda _user, _conversation, event: events.append(event)):
        await say(stage, chat, "thanks")

    pieces = [(event.at, event.text) for event in events if isinstance(event, DraftPiece)]
    assert pieces == [(0, "You"), (3, " are"), (7, " welcome.")]


@pytest.mark.parametrize("prompt", ["Summarise my inbox, and ask before you answer.", "x" * 20_000])
async def test_work_meant_for_a_real_model_is_not_pretended_to_be_done(
    stage: Stage, prompt: str
) -> None:
    task = await stage.task(Interval(SECOND, NOON), prompt=prompt)
    await stage.work()

    (said,) = stage.said(task)
    assert said.startswith("I am a demo without a language model, and I do not know how to do this")
    assert "backburner setup" in said
    assert len(said) < 500
    now = stage.load(task)
    assert (now.schedule, now.ended_as) == (None, EndedAs.COMPLETED)
    assert stage.notices() == [said]


async def test_a_job_that_has_ended_is_told_of(stage: Stage) -> None:
    chat = await stage.chat()
    brief = Brief(title="Stretching", prompt="Remind me to stretch.", schedule=Immediate())
    born = transitions.start_job(
        new_conversation_id(), chat.user_id, replace(brief, parent_id=chat.id), now=NOON
    )
    stage.database.run(lambda tx: tx.conversations.add(born))
    await stage.work()

    told, reply = stage.said(chat)
    assert told.startswith(
        "The job 'Stretching' has finished. Its request was: Remind me to stretch."
    )
    assert reply == "“Stretching” has finished."
