"""A session that becomes too long ends with a summary, from which the next one starts."""

from collections.abc import Callable, Iterable
from datetime import timedelta

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import Call, End, Fail, Say, ScriptedEngine, Spend, Step
from support.requirements import requirement
from support.stage.make import MATE, NOON
from support.stage.stage import Stage

from backburner.actions import chat, conversations
from backburner.actions.deps import Limits
from backburner.core import transitions
from backburner.core.allowance import Allowance, AllowanceScope
from backburner.core.conversation import Conversation, Kind, State
from backburner.core.errors import EngineFailed, NotFound
from backburner.core.schedule import Interval
from backburner.core.work.summary import SUMMARY_SCHEMA, Summary
from backburner.ports import TurnRequest
from backburner.runs.prepare import SESSION_CUT, SESSION_RENEWED
from backburner.store import tables

MINUTE = timedelta(minutes=1)
EVERY_MINUTE = Interval(MINUTE, anchor=NOON)
GOAL = {"goal": "Find the bug.", "next_step": "Read the log."}


def write(request: TurnRequest, **more: object) -> Iterable[Step]:
    """Write a summary where one is asked for."""
    return [End({**GOAL, **more} if request.schema is SUMMARY_SCHEMA else {"complete": True})]


async def show(stage: Stage, conversation: Conversation) -> Summary:
    return await conversations.show_summary(stage.deps, conversation.user_id, conversation.id)


def measure(request: TurnRequest) -> int:
    """Measure what a model is given, in tokens of four characters."""
    return (len(request.prompt) + sum(map(len, request.memory))) // 4


@requirement("Z-context")
async def test_no_run_of_a_task_begins_larger_however_many_there_were(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    count = 0

    def work(request: TurnRequest) -> Iterable[Step]:
        nonlocal count
        if request.schema is SUMMARY_SCHEMA:
            return write(request)
        count += 1
        return [End({"complete": True, "state_update": {"count": count}}, text="x" * 9_000)]

    engine = ScriptedEngine(otherwise=work)
    engine.tokens = lambda request: measure(request) + 9_000 // 4
    stage = set_up(engines={"scripted": engine})
    stage.engine = engine
    task = await stage.task(EVERY_MINUTE)
    for _ in range(100):
        await stage.work()
        clock.advance(MINUTE)

    runs = [one for one in stage.engine.requests if one.schema is not SUMMARY_SCHEMA]
    sizes = [measure(request) for request in runs]
    assert len(sizes) == 100
    assert max(size - len(one.prompt) // 4 for size, one in zip(sizes, runs, strict=True)) <= 16_000
    assert max(sizes[90:]) <= 1.05 * max(sizes[:10])
    assert len({request.session_id for request in runs}) > 10
    assert stage.load(task).state.data == {"count": 100}
    assert set(stage.said(task)) == {SESSION_RENEWED}


async def test_the_next_session_starts_from_the_summary_as_data(stage: Stage) -> None:
    stage.engine.tokens = 100_001
    chat = await stage.chat()
    await stage.say(chat, "Never restart a build.")
    rule = stage.messages(chat)[0].id
    stage.engine.then(Say("I will not."))
    stage.engine.then_as(lambda request: write(request, user_messages=[rule, "m_unknown"]))
    await stage.work()
    assert stage.said(chat) == ["Never restart a build.", "I will not."]
    written = await show(stage, chat)
    assert written.text == "Goal: Find the bug.\nNext step: Read the log."
    assert [(one.id, one.text) for one in written.messages] == [(rule, "Never restart a build.")]

    stage.engine.tokens = 10
    await stage.say(chat, "Go on.")
    await stage.work()

    request = stage.engine.requests[-1]
    assert request.session_id is None
    assert "# Summary of the session before\n<outside " in request.prompt
    assert "# Earlier messages of the user that still bind\n- Never restart" in request.prompt
    assert stage.said(chat)[-2:] == [SESSION_RENEWED, "Hello."]


async def test_a_chat_keeps_its_session_when_it_starts_background_work(
    stage: Stage, clock: SetClock
) -> None:
    stage.engine.tokens = 50_000
    chat = await stage.chat()
    await stage.say(chat, "Hello?")
    await stage.work()
    give_work(stage, chat)
    clock.advance(MINUTE)
    await stage.work()
    await stage.say(chat, "And?")
    await stage.work()

    assert [request.session_id for request in stage.engine.requests] == [
        None,
        "session-1",
        "session-1",
    ]


def give_work(stage: Stage, chat: Conversation) -> None:
    state = State(context={"prompt": "Look."})
    stage.database.run(
        lambda tx: tx.conversations.save(
            transitions.set_schedule(
                tx.conversations.lock(chat.user_id, chat.id), EVERY_MINUTE, now=tx.now, state=state
            )
        )
    )


@pytest.mark.parametrize(
    ("kind", "limit"),
    [(Kind.CHAT, 100_000), (Kind.JOB, 100_000), (Kind.TASK, 16_000), (Kind.DISCOVERY, 16_000)],
)
def test_the_limit_depends_on_how_a_conversation_was_born(kind: Kind, limit: int) -> None:
    assert Limits().context_of(kind) == limit


@pytest.mark.parametrize(
    "steps", [[Fail(EngineFailed("Down."))], [End("nonsense")], [Spend(100), End(GOAL)]]
)
async def test_without_a_summary_the_last_messages_start_the_session(
    set_up: Callable[..., Stage], steps: list[Step]
) -> None:
    allowed = Allowance(AllowanceScope.RUN, tokens=50)
    stage = set_up(allowances=(allowed,))
    stage.engine.tokens = 100_001
    chat = await stage.chat()
    await stage.say(chat, "Hello?")
    stage.engine.then(Say("Hello."))
    stage.engine.then(*steps)
    await stage.work()
    assert stage.said(chat) == ["Hello?", "Hello."]

    stage.engine.tokens = 10
    await stage.say(chat, "Go on.")
    await stage.work()

    assert stage.said(chat)[-2:] == [SESSION_CUT, "Hello."]
    assert "Hello?" in stage.engine.requests[-1].prompt
    with pytest.raises(NotFound, match="There is no summary"):
        await show(stage, chat)


async def test_a_summary_makes_no_calls(stage: Stage) -> None:
    stage.engine.tokens = 100_001
    chat = await stage.chat()
    await stage.say(chat, "Hello?")
    stage.engine.then(Say("Hello."))
    stage.engine.then(Call("look"), End(GOAL))
    await stage.work()

    assert stage.tools.count("look") == 0
    assert (await show(stage, chat)).text.startswith("Goal: ")


async def test_a_summary_of_a_marked_session_marks_the_next(stage: Stage) -> None:
    stage.engine.tokens = 100_001
    chat = await stage.chat()
    await stage.say(chat, "Look.")
    stage.engine.then(Call("look"), Say("Seen."))
    stage.engine.then_as(write)
    await stage.work()
    assert (await show(stage, chat)).outside
    # Nothing but the summary is marked any more.
    change = tables.messages.update().values(outside=False)
    stage.database.run(lambda tx: tx.connection.execute(change))

    stage.engine.tokens = 10
    await stage.say(chat, "Go on.")
    await stage.work()

    assert "# Summary of the session before" in stage.engine.requests[-1].prompt
    assert stage.load(chat).outside_read

    await conversations.start_afresh(stage.deps, chat.user_id, chat.id)
    with pytest.raises(NotFound):
        await show(stage, chat)


async def test_a_summary_is_deleted_and_belongs_to_its_owner(stage: Stage) -> None:
    stage.engine.tokens = 100_001
    chat, mate = await stage.chat(), stage.user(MATE)
    await stage.say(chat, "Hello?")
    stage.engine.then(Say("Hello."))
    stage.engine.then_as(write)
    await stage.work()

    for act in (conversations.show_summary, conversations.delete_summary):
        with pytest.raises(NotFound):
            await act(stage.deps, mate, chat.id)
    await conversations.delete_summary(stage.deps, chat.user_id, chat.id)

    with pytest.raises(NotFound, match="There is no summary"):
        await show(stage, chat)
    assert not stage.load(chat).summarized


async def test_a_message_that_was_replaced_leaves_the_summary_too(stage: Stage) -> None:
    stage.engine.tokens = 100_001
    talk = await stage.chat()
    await stage.say(talk, "Always use the first plan.")
    rule = stage.messages(talk)[0].id
    stage.engine.then(Say("Yes."))
    stage.engine.then_as(
        lambda request: [
            End(
                {"goal": "The first plan.", "user_messages": [rule]}
                if request.schema is SUMMARY_SCHEMA
                else None
            )
        ]
    )
    await stage.work()
    stage.engine.tokens = 10

    await chat.edit_last(stage.deps, talk.user_id, talk.id, "Use the other plan.")
    await stage.work()

    assert "first plan" not in stage.engine.requests[-1].prompt
