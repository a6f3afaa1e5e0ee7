"""Runs from claim to commit: what the agent is told, and what becomes of how it ends."""

from dataclasses import replace
from datetime import timedelta

import pytest
import structlog
from support.doubles.clock import SetClock
from support.doubles.engine import Call, End, Fail, Say, ScriptedEngine, Spend, Wait
from support.requirements import requirement
from support.stage.make import MATE, NOON
from support.stage.stage import Stage, prompts
from support.stage.work import set_schedule

from backburner.actions import conversations
from backburner.bus.local import LocalBus
from backburner.core.conversation import EndedAs, Notify, PauseReason, State, Status
from backburner.core.errors import EngineFailed, SessionGone
from backburner.core.question import Purpose
from backburner.core.run import FailureKind, RunStatus
from backburner.core.schedule import Interval
from backburner.core.transitions import Step
from backburner.core.validation import MAX_MESSAGE_CHARS
from backburner.ports import DraftClosed, DraftEvent, DraftOpened, DraftPiece
from backburner.runs.prepare import SESSION_LOST
from backburner.store import tables

MINUTE = timedelta(minutes=1)
EVERY_MINUTE = Interval(MINUTE, anchor=NOON)


async def test_a_message_is_answered(stage: Stage) -> None:
    stage.engine.then(Say("Hel"), Say("lo."))
    chat = await stage.chat()
    await stage.say(chat, "Hi there.")

    await stage.work()

    assert stage.said(chat) == ["Hi there.", "Hello."]
    assert [run.status for run in stage.history(chat)] == [RunStatus.SUCCESS]
    (prompt,) = prompts(stage.engine, chat.id)
    assert prompt.count("Hi there.") == 1


async def test_an_agent_is_given_again_what_an_earlier_attempt_was_to_serve(stage: Stage) -> None:
    stage.engine.then(Fail(EngineFailed("The model is overloaded.")))
    chat = await stage.chat()
    for text in ("One.", "Two."):
        await stage.say(chat, text)
        await stage.work()

    items = [[item.content["text"] for item in one.items] for one in stage.engine.requests]
    assert items == [["One."], ["One.", "Two."]]


@requirement("A-session-stored")
async def test_the_agent_goes_on_in_its_own_session(stage: Stage) -> None:
    chat = await stage.chat()
    for text in ("One.", "Two."):
        await stage.say(chat, text)
        await stage.work()

    first, second = stage.engine.requests
    session = stage.load(chat).session
    assert session is not None
    assert (first.session_id, second.session_id) == (None, session.id)
    assert [entry.split(":")[0] for entry in second.memory] == ["asked", "said"]
    assert "Two." in second.prompt
    assert "One." not in second.prompt


@requirement("A-session-expired")
async def test_a_session_that_is_gone_is_begun_anew_from_what_is_known(stage: Stage) -> None:
    chat = await stage.chat()
    await stage.say(chat, "One.")
    await stage.work()
    await stage.say(chat, "Two.")
    stage.engine.then(Fail(SessionGone()))

    await stage.work()

    *_, last = stage.engine.requests
    assert last.session_id is None
    assert "One." in last.prompt
    assert "Two." in last.prompt
    assert SESSION_LOST in stage.said(chat)
    session = stage.load(chat).session
    assert session is not None
    assert session.id == "session-3"


@requirement("A-complete-once")
async def test_one_time_work_that_is_complete_is_over(stage: Stage) -> None:
    stage.engine.then(End({"complete": True, "message": "Found it.", "result": {"n": 1}}))
    task = await stage.task(notify=Notify.ALWAYS)

    await stage.work()

    now = stage.load(task)
    assert (now.status, now.schedule, now.ended_as) == (Status.ACTIVE, None, EndedAs.COMPLETED)
    assert stage.said(task) == ["Found it."]
    assert stage.notices() == ["Found it."]
    (run,) = stage.history(task)
    assert (run.status, run.result) == (RunStatus.SUCCESS, '{"n":1}')


@requirement("A-complete-cron")
async def test_recurring_work_goes_on_at_its_next_time(stage: Stage, clock: SetClock) -> None:
    task = await stage.task(EVERY_MINUTE)
    for _ in range(3):
        await stage.work()
        clock.advance(MINUTE)

    assert stage.load(task).run_count == 3
    assert [run.slot_at for run in stage.history(task)] == [
        NOON + 2 * MINUTE,
        NOON + MINUTE,
        NOON,
    ]


@requirement("B-quiet")
async def test_a_run_with_nothing_to_report_leaves_a_row_and_nothing_else(stage: Stage) -> None:
    stage.engine.then(End({"complete": True}))
    task = await stage.task(EVERY_MINUTE, notify=Notify.ALWAYS)

    await stage.work()

    assert (stage.said(task), stage.notices()) == ([], [])
    assert len(stage.history(task)) == 1


@requirement("A-continue")
async def test_work_that_is_not_done_keeps_what_it_learned(stage: Stage, clock: SetClock) -> None:
    more = {"continue": True, "state_update": {"seen": 3}, "next_step": "Count", "again_in": "20s"}
    stage.engine.then(End(more))
    task = await stage.task()
    await stage.work()

    now = stage.load(task)
    assert (now.state.data, now.state.step) == ({"seen": 3}, "Count")
    assert now.next_run_at == NOON + timedelta(seconds=20)
    assert stage.notices() == []
    clock.advance(timedelta(seconds=20))
    await stage.work()
    assert '"seen":3' in stage.engine.requests[-1].prompt


@requirement("A-needs-input", "A-waiting", "Z-ask")
async def test_work_that_asks_waits_and_goes_on_from_the_answer(
    stage: Stage, clock: SetClock
) -> None:
    asks = {
        "needs_input": True,
        "message": "I found two.",
        "question": {"type": "choice", "prompt": "Which one?", "options": ["left", "right"]},
    }
    stage.engine.then(End(asks))
    task = await stage.task(EVERY_MINUTE)
    await stage.work()
    waiting = stage.load(task)
    assert (waiting.status, waiting.pending_question) == (
        Status.WAITING_INPUT,
        waiting.questions[0],
    )
    assert (waiting.questions[0].prompt, waiting.questions[0].options) == (
        "Which one?",
        ("left", "right"),
    )
    assert stage.notices() == ["Which one?"]
    clock.advance(5 * MINUTE)
    await stage.work()
    assert len(stage.engine.requests) == 1

    await stage.answer(task, "right")
    await stage.work()

    assert "The user answered: right" in stage.engine.requests[-1].prompt
    assert stage.load(task).status is Status.BACKGROUND


@requirement("A-prompt-format")
async def test_an_outcome_that_is_none_is_asked_for_once_more(stage: Stage) -> None:
    stage.engine.then(End({"complete": "perhaps"}))
    stage.engine.then(End({"complete": True, "message": "Now it is."}))
    task = await stage.task()

    await stage.work()

    assert "not a valid outcome" in stage.engine.requests[1].prompt
    assert stage.engine.requests[1].session_id == "session-1"
    assert stage.said(task) == ["Now it is."]


async def test_without_a_valid_outcome_a_run_has_failed(stage: Stage) -> None:
    for _ in range(2):
        stage.engine.then(End(text="All fine!"))
    task = await stage.task()

    await stage.work()

    (run,) = stage.history(task)
    assert run.failure is not None
    assert run.failure.kind is FailureKind.INCOMPLETE
    # For a person: what the model did wrong in which field is in the log.
    assert run.failure.message == (
        "The model 'scripted' did not end its work in the required form, twice in a row. It may be"
        " too small for background work: try another."
    )
    assert stage.load(task).ended_as is None


@requirement("B-retry")
async def test_a_task_that_fails_twice_is_paused_and_its_owner_told(
    stage: Stage, clock: SetClock
) -> None:
    for _ in range(2):
        stage.engine.then(Fail(EngineFailed("The model is overloaded.")))
    task = await stage.task(Interval(60 * MINUTE, anchor=NOON))
    await stage.work()
    first = stage.load(task)
    assert first.next_run_at == NOON + timedelta(seconds=30)
    clock.advance(timedelta(seconds=30))

    await stage.work()

    paused = stage.load(task)
    assert (paused.status, paused.pause_reason) == (Status.ACTIVE, PauseReason.FAILURES)
    assert any("overloaded" in text for text in stage.notices())


async def test_a_failure_that_trying_cannot_mend_stops_at_once(stage: Stage) -> None:
    stage.engine.then(Fail(EngineFailed("The key is wrong.", permanent=True)))
    task = await stage.task()

    await stage.work()

    assert stage.load(task).ended_as is EndedAs.ERROR
    assert len(stage.engine.requests) == 1


async def test_what_asks_to_be_left_alone_is_left_alone(stage: Stage) -> None:
    busy = EngineFailed("Too many requests.", retry_after=timedelta(minutes=7))
    stage.engine.then(Fail(busy))
    task = await stage.task()

    await stage.work()

    assert stage.load(task).next_run_at == NOON + timedelta(minutes=7)


async def test_a_reply_that_fails_says_so_and_is_served(stage: Stage) -> None:
    stage.engine.then(Fail(EngineFailed("The model is overloaded.")))
    chat = await stage.chat()
    await stage.say(chat, "Hello?")

    await stage.work()

    assert stage.said(chat)[1:] == [
        "I could not answer: The model is overloaded. You can try again."
    ]
    await stage.work()
    assert len(stage.engine.requests) == 1


async def test_what_nobody_expected_is_a_failed_run(stage: Stage) -> None:
    def breaks(_: object) -> list[object]:
        raise ZeroDivisionError

    stage.engine.then_as(breaks)  # type: ignore[arg-type]
    chat = await stage.chat()
    await stage.say(chat, "Hello?")

    await stage.work()

    assert stage.said(chat)[-1].startswith("I could not answer: Something unexpected")


@requirement("A-timeout", "B-timeout")
async def test_a_run_that_takes_too_long_has_failed_and_is_tried_again(
    stage: Stage, clock: SetClock
) -> None:
    stage.engine.then(Wait())
    task = await stage.task(run_timeout=timedelta(milliseconds=50))

    await stage.work()

    (run,) = stage.history(task)
    assert run.failure is not None
    assert run.failure.kind is FailureKind.TIMEOUT
    assert stage.engine.underway == 0
    assert stage.load(task).status is Status.BACKGROUND
    clock.advance(MINUTE)
    await stage.work()
    assert stage.load(task).ended_as is EndedAs.COMPLETED


@requirement("A-timeout")
async def test_recurring_work_of_a_chat_goes_on_and_is_told_of_after_three_timeouts(
    stage: Stage, clock: SetClock
) -> None:
    chat = await stage.chat()
    state = State({"prompt": "Look."})
    await set_schedule(stage.deps, chat.user_id, chat.id, EVERY_MINUTE, state=state)
    quick = replace(stage.load(chat), run_timeout=timedelta(milliseconds=50))
    stage.database.run(lambda tx: tx.conversations.save(Step(conversation=quick)))
    told = list[int]()
    for _ in range(4):
        stage.engine.then(Wait())
        await stage.work()
        told.append(len(stage.notices()))
        clock.advance(10 * MINUTE)

    assert told == [0, 0, 1, 1]
    assert stage.notices()[0].startswith("The work failed repeatedly: The run took too long.")
    assert stage.load(chat).status is Status.BACKGROUND


async def test_without_an_engine_a_message_is_answered_with_what_is_missing(stage: Stage) -> None:
    chat = await stage.chat()
    await stage.say(chat, "Hello?")
    stage.deps.engines.clear()  # type: ignore[attr-defined]

    await stage.work()

    assert "No model is set up" in stage.said(chat)[-1]


@requirement("B-max-runs")
async def test_a_task_stops_after_as_many_runs_as_it_may_have(
    stage: Stage, clock: SetClock
) -> None:
    task = await stage.task(EVERY_MINUTE, max_runs=2)
    for _ in range(4):
        await stage.work()
        clock.advance(MINUTE)

    assert stage.load(task).ended_as is EndedAs.COMPLETED
    assert len(stage.engine.requests) == 2


async def test_what_was_used_is_written_down(stage: Stage) -> None:
    stage.engine.then(Spend(100), Spend(20))
    chat = await stage.chat()
    await stage.say(chat, "Hello?")

    await stage.work()

    assert [run.tokens for run in stage.history(chat)] == [120]


async def test_the_words_of_a_run_are_seen_while_they_are_said(stage: Stage) -> None:
    stage.engine.then(Say("One "), Call("slow"), Say("two."))
    chat = await stage.chat()
    await stage.say(chat, "Hello?")
    events: list[DraftEvent] = []
    with stage.deps.drafts.listen(lambda _user, _conversation, event: events.append(event)):
        await stage.take_up()
        await stage.tools.started["slow"].wait()
        before_the_call = list(events)
        stage.tools.let_go.set()
        await stage.idle()

    (run,) = stage.history(chat)
    first = DraftPiece(run.id, 0, "One ", is_reply=True)
    assert before_the_call == [DraftOpened(run.id), first]
    second = DraftPiece(run.id, 4, "two.", is_reply=True)
    assert events == [*before_the_call, second, DraftClosed(run.id)]


@pytest.mark.parametrize("kind", ["chat", "task"])
async def test_an_archived_conversation_ends_its_run(stage: Stage, kind: str) -> None:
    stage.engine.then(Call("slow"), Say("Too late."))
    here = await stage.chat() if kind == "chat" else await stage.task()
    if kind == "chat":
        await stage.say(here, "Hello?")
    await stage.take_up()
    await stage.tools.started["slow"].wait()
    await conversations.archive(stage.deps, here.user_id, here.id)
    await stage.renew()
    await stage.idle()

    assert stage.load(here).status is Status.ARCHIVED
    assert [run.status for run in stage.history(here)] == [RunStatus.CANCELLED]
    assert not any("Too late." in text for text in stage.said(here))
    assert Purpose.IN_DOUBT not in [question.purpose for question in stage.load(here).questions]


async def test_what_cannot_be_prepared_fails_in_words_and_keeps_nobody_else_waiting(
    stage: Stage,
) -> None:
    chat, task = await stage.chat(), await stage.task(EVERY_MINUTE)
    await stage.say(chat, "Hello?")
    nowhere = tables.users.update().values(zone="Nowhere/At_All")
    stage.database.run(lambda tx: tx.connection.execute(nowhere))
    other = await stage.chat(MATE)
    await stage.say(other, "Anybody there?")

    await stage.work()

    assert stage.said(other) == ["Anybody there?", "Hello."]
    assert "Something unexpected went wrong before it began." in stage.said(chat)[1]
    (failed,) = stage.history(task)
    assert failed.failure is not None
    assert (failed.status, failed.failure.kind) == (RunStatus.FAILURE, FailureKind.ENGINE)
    assert stage.load(task).failures == 1


async def test_what_can_be_prepared_again_is_done(stage: Stage, clock: SetClock) -> None:
    task = await stage.task(EVERY_MINUTE)
    zones = tables.users.update()
    stage.database.run(lambda tx: tx.connection.execute(zones.values(zone="Nowhere/At_All")))
    await stage.work()
    stage.database.run(lambda tx: tx.connection.execute(zones.values(zone="UTC")))
    clock.advance(10 * MINUTE)

    await stage.work()

    assert stage.history(task)[0].status is RunStatus.SUCCESS


async def test_what_another_process_could_prepare_is_not_given_up_later(
    stage: Stage, clock: SetClock
) -> None:
    task = await stage.task(EVERY_MINUTE)
    zones = tables.users.update()
    stage.database.run(lambda tx: tx.connection.execute(zones.values(zone="Nowhere/At_All")))
    stage.claiming.batch = 1
    await stage.claiming.run_once()
    stage.database.run(lambda tx: tx.connection.execute(zones.values(zone="UTC")))
    other = Stage(stage.database, LocalBus(), ScriptedEngine())
    await other.work()
    assert [run.status for run in stage.history(task)] == [RunStatus.SUCCESS]
    clock.advance(MINUTE)

    await stage.work()

    assert {run.status for run in stage.history(task)} == {RunStatus.SUCCESS}
    assert len(stage.history(task)) == 2


async def test_a_reply_is_not_given_up_for_work_that_could_not_be_prepared(stage: Stage) -> None:
    task = await stage.task(EVERY_MINUTE)
    zones = tables.users.update()
    stage.database.run(lambda tx: tx.connection.execute(zones.values(zone="Nowhere/At_All")))
    stage.claiming.batch = 1
    await stage.claiming.run_once()
    stage.database.run(lambda tx: tx.connection.execute(zones.values(zone="UTC")))
    await stage.say(task, "Hello?")

    await stage.work()

    assert "Hello." in stage.said(task)
    assert {run.status for run in stage.history(task)} == {RunStatus.SUCCESS}


@pytest.mark.parametrize("bad", ["half \ud83d of one", "nothing\0 here"])
async def test_characters_that_are_none_do_no_harm(stage: Stage, bad: str) -> None:
    chat = await stage.chat()

    async def give(_: object) -> str:
        return bad

    stage.tools.handlers["look"] = give
    stage.engine.then(Call("look"), Say(bad))
    await stage.say(chat, "Look.")
    await stage.work()

    told = bad.replace("\0", "\ufffd").replace("\ud83d", "\ufffd")
    assert stage.said(chat) == ["Look.", told]
    assert stage.engine.results[0].text == told
    await stage.say(chat, "And now?")
    await stage.work()
    assert stage.said(chat)[-1] == "Hello."


async def test_an_endless_answer_is_cut(stage: Stage) -> None:
    chat = await stage.chat()
    stage.engine.then(Say("word " * 50_000))
    await stage.say(chat, "Talk.")
    await stage.work()

    assert len(stage.said(chat)[1]) == MAX_MESSAGE_CHARS
    assert stage.said(chat)[1].endswith("[…]")


async def test_an_operator_can_follow_a_run_by_its_id_in_the_log(stage: Stage) -> None:
    stage.engine.then(Spend(100), Say("Hello."))
    chat = await stage.chat()
    await stage.say(chat, "Hello?")

    with structlog.testing.capture_logs() as logged:
        await stage.work()

    (run,) = stage.history(chat)
    started, finished = [entry for entry in logged if entry.get("run") == run.id]
    assert (started["event"], started["log_level"]) == ("run.started", "info")
    assert (started["profile"], started["conversation"]) == ("scripted", chat.id)
    assert (finished["event"], finished["log_level"]) == ("run.finished", "info")
    assert (finished["outcome"], finished["tokens"]) == ("success", 100)
    assert finished["seconds"] >= 0
