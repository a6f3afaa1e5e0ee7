"""The demo with the real actions, from a sentence to a notice; and sentences it does not know."""

from dataclasses import replace

import pytest
from support.doubles.clock import SetClock
from support.requirements import requirement
from support.stage.make import NOON
from support.stage.stage import Stage
from support.stage.talks import SECOND, say, wait

from backburner.core import transitions
from backburner.core.conversation import Author, EndedAs, Status
from backburner.core.ids import new_conversation_id
from backburner.core.question import QuestionType
from backburner.core.schedule import Immediate, Interval
from backburner.core.transitions import Brief
from backburner.engine.demo import engine
from backburner.engine.demo.engine import NO_TIME
from backburner.ports import DraftEvent, DraftPiece
from backburner.web.rendering import load_words

HELP = engine.HELP.format(command="backburner")
NOT_UNDERSTOOD = "I did not understand “Sing a song!”. Say `help` to see what I do."


@requirement("A-from-chat")
async def test_a_reminder_is_sent_at_its_time(stage: Stage, clock: SetClock) -> None:
    chat = await stage.chat()
    answer = await say(stage, chat, "Remind me in 20 seconds to stretch.")
    assert answer == "All right. Once, on Monday 16 November 2026 at 12:00:20 (UTC)."
    await wait(stage, clock, 19)
    assert stage.notices() == []

    await wait(stage, clock, 1)

    assert stage.said(chat)[-1] == "Time to stretch."
    assert stage.notices() == ["Time to stretch."]
    now = stage.load(chat)
    assert (now.status, now.ended_as) == (Status.ACTIVE, EndedAs.COMPLETED)


async def test_a_recurring_reminder_is_sent_every_time(stage: Stage, clock: SetClock) -> None:
    chat = await stage.chat()
    await say(stage, chat, "Every hour remind me to stretch")
    await wait(stage, clock, 3600)

    assert stage.notices() == ["Time to stretch."] * 2


async def test_every_sentence_of_the_first_page_works(stage: Stage) -> None:
    """They are the first thing that people try."""
    first = load_words().chat.first
    for sentence in (first.remind, first.every, first.ask):
        chat = await stage.chat()
        await stage.say(chat, sentence)
        await stage.work()
        assert stage.said(chat)[1].startswith("All right."), sentence
        assert stage.load(chat).schedule is not None


async def test_work_with_an_end_is_done_that_often(stage: Stage, clock: SetClock) -> None:
    chat = await stage.chat()
    await say(stage, chat, "Every minute, tell me the time. Stop after three times.")
    await wait(stage, clock, 60)
    await wait(stage, clock, 60)
    assert stage.load(chat).ended_as is EndedAs.COMPLETED
    await wait(stage, clock, 60)

    assert stage.notices() == [
        "It is 12:00.",
        "It is 12:01.",
        "It is 12:02. That was the last of 3, so I stop here.",
    ]
    assert stage.load(chat).schedule is None


async def test_a_name_is_picked_by_the_user(stage: Stage) -> None:
    chat = await stage.chat()
    await say(stage, chat, "Pick a name for my new cat, but ask me first.")
    question = stage.question(chat)
    assert (question.type, question.prompt) == (QuestionType.CHOICE, "Which name for your new cat?")
    assert stage.load(chat).status is Status.WAITING_INPUT

    assert await say(stage, chat, question.options[1]) == "Your new cat is called Pixel."
    assert stage.load(chat).schedule is None


@requirement("Z-ask")
async def test_a_recurring_question_is_asked_until_the_answer_is_no(
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


async def test_a_question_asked_once_ends_with_its_answer(stage: Stage, clock: SetClock) -> None:
    chat = await stage.chat()
    await say(stage, chat, "Ask me in 3 seconds whether to go on.")
    await wait(stage, clock, 3)

    assert (await say(stage, chat, "yes")).startswith("You said yes")
    assert stage.load(chat).schedule is None


async def test_background_work_can_be_listed_and_stopped(stage: Stage) -> None:
    chat = await stage.chat()
    question = "What are you working on?"
    assert "no background work" in (await say(stage, chat, question)).lower()
    assert "no background work" in (await say(stage, chat, "stop")).lower()
    await say(stage, chat, "Remind me every weekday at 9 to stretch.")
    await say(stage, chat, "Remind me in 5 minutes to drink.")

    own, task = (await say(stage, chat, question)).splitlines()[:2]
    assert "Remind me to stretch" in own
    assert "09:00 on Monday through Friday (UTC)" in own
    assert "Remind me to drink" in task
    assert "c_" in task

    unclear = await say(stage, chat, "stop")
    assert "Remind me to stretch" in unclear
    assert "Remind me to drink" in unclear
    stopped = await say(stage, chat, "stop reminding me to drink")
    assert "Remind me to drink" in stopped
    assert "Remind me to stretch" not in stopped
    assert "Remind me to stretch" in await say(stage, chat, "stop")
    assert stage.load(chat).schedule is None
    assert "no background work" in (await say(stage, chat, question)).lower()


async def test_several_requests_become_a_task_each(stage: Stage, clock: SetClock) -> None:
    chat = await stage.chat()
    await stage.say(chat, "Hello! Remind me in 20 seconds to stretch.")
    await stage.say(chat, "And remind me in 30 seconds to drink. Thanks!")
    await stage.work()
    assert len(stage.said(chat)[-1].split("\n\n")) == 2
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
        ("help. Sing a song!", f"{HELP}\n\n{NOT_UNDERSTOOD}"),
    ],
)
async def test_a_sentence_without_work_is_answered(stage: Stage, said: str, answer: str) -> None:
    chat = await stage.chat()

    assert await say(stage, chat, said) == answer
    assert stage.load(chat).schedule is None


async def test_an_invalid_time_is_explained(stage: Stage) -> None:
    chat = await stage.chat()
    answer = await say(stage, chat, "Remind me in 20 parsecs to stretch.")

    assert answer.startswith("I could not do that.")
    assert "'20 parsecs'" in answer
    assert stage.load(chat).schedule is None


async def test_an_answer_is_streamed_word_by_word(stage: Stage) -> None:
    chat = await stage.chat()
    events: list[DraftEvent] = []
    with stage.deps.drafts.listen(lambda _user, _conversation, event: events.append(event)):
        await say(stage, chat, "thanks")

    pieces = [(event.at, event.text) for event in events if isinstance(event, DraftPiece)]
    assert pieces == [(0, "You"), (3, " are"), (7, " welcome.")]


@pytest.mark.parametrize("prompt", ["Summarise my inbox, and ask before you answer.", "x" * 20_000])
async def test_work_for_a_real_model_ends_with_an_explanation(stage: Stage, prompt: str) -> None:
    task = await stage.task(Interval(SECOND, NOON), prompt=prompt)
    await stage.work()

    (said,) = stage.said(task)
    assert said.startswith("I am a demo without a language model, and I do not know how to do this")
    assert "backburner setup" in said
    assert len(said) < 500
    now = stage.load(task)
    assert (now.schedule, now.ended_as) == (None, EndedAs.COMPLETED)
    assert stage.notices() == [said]


async def test_a_job_that_has_finished_is_reported(stage: Stage) -> None:
    chat = await stage.chat()
    brief = Brief(title="Stretching", prompt="Remind me to stretch.", schedule=Immediate())
    born = transitions.start_job(
        new_conversation_id(),
        chat.user_id,
        replace(brief, parent_id=chat.id, created_by=Author.AGENT),
        now=NOON,
    )
    stage.database.run(lambda tx: tx.conversations.add(born))
    await stage.work()

    report, reply = stage.said(chat)
    assert "'Stretching'" in report
    assert "Remind me to stretch." in report
    assert reply == "“Stretching” has finished."
