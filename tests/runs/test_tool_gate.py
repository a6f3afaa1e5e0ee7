"""Every tool call passes the gate: consent, receipts, doubt."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, cast

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import AtOnce, Call, Fail, Say, Wait
from support.people.task_calls import work_turn
from support.requirements import requirement
from support.stage.make import NOON
from support.stage.stage import LEASE, Stage
from support.statements import watched

from backburner.actions import questions
from backburner.actions.origin import Origin
from backburner.actions.work import control
from backburner.core.commands import Cage
from backburner.core.conversation import Conversation, Status
from backburner.core.errors import Conflict, SessionGone, StoreFailed
from backburner.core.ids import new_call_id
from backburner.core.prompt import INTERRUPTED_TITLE, quote_outside
from backburner.core.question import NO, YES, Purpose
from backburner.core.run import RunStatus
from backburner.core.schedule import Interval
from backburner.core.tool_policy import ALWAYS_HERE, Grant, Tool, ToolCall
from backburner.core.transitions import HAPPENED, LEAVE, REPEAT
from backburner.ports import Store, Tx
from backburner.runs.budget import Budget
from backburner.runs.stopping import StopReason, StopRequests
from backburner.runs.tool_gate import Gate
from backburner.store.db import Database

SEND = Call("send", {"to": "Ann"})
#: Of that call, for a new attempt.
RECEIPT = (
    f'send {{"to":"Ann"}} returned: {" ".join(quote_outside("send", "send is done.").split())}'
)
BUILD = Call("shell", {"command": "make"})
INTERRUPTED = f"""\
# {INTERRUPTED_TITLE}
- shell {{"command":"make"}}"""
MINUTE = timedelta(minutes=1)
EVERY_MINUTE = Interval(MINUTE, anchor=NOON)


async def test_what_changes_nothing_is_simply_called(stage: Stage) -> None:
    stage.engine.then(Call("look"))
    await stage.task()

    await stage.work()

    assert stage.tools.calls == [("look", {})]
    assert [result.text for result in stage.engine.results] == ["look is done."]


@requirement("Z-approve")
async def test_a_call_that_needs_consent_ends_the_run_and_is_made_once_after_the_yes(
    stage: Stage, set_up: Callable[..., Stage]
) -> None:
    stage.engine.then(SEND, Say("Never said."))
    task = await stage.task()
    await stage.work()
    question = stage.question(task)
    assert (question.purpose, stage.load(task).status) == (Purpose.APPROVAL, Status.WAITING_INPUT)
    assert "send" in question.prompt
    assert "Ann" in question.prompt
    assert (stage.tools.calls, len(stage.underway)) == ([], 0)

    stage = set_up([SEND, SEND])  # The process was started again.
    await stage.answer(task, YES)
    await stage.work()

    assert stage.tools.calls == [("send", {"to": "Ann"})]
    # The second call of the same run is another call.
    assert stage.question(task).purpose is Purpose.APPROVAL
    assert "The user answered: yes" in stage.engine.requests[-1].prompt


async def test_a_yes_that_was_not_used_ends_with_the_work(stage: Stage) -> None:
    task, chat = await stage.task(), await stage.chat()
    stage.engine.then(SEND)
    await stage.work()
    stage.engine.then(SEND)
    await stage.say(chat, "Send it.")
    await stage.work()
    for asked in (task, chat):
        await stage.answer(asked, YES)
        assert len(grants(stage, asked)) == 1
        await stage.work()

    assert stage.tools.calls == []
    assert [grants(stage, asked) for asked in (task, chat)] == [(), ()]


async def test_a_yes_lasts_until_the_run_that_it_is_for(stage: Stage) -> None:
    task = await stage.task()
    stage.engine.then(SEND)
    await stage.work()
    stage.engine.then(Call("send", {"to": "Bob"}))
    await stage.say(task, "Send it to Bob.")
    await stage.work()
    for asked in stage.load(task).questions:
        await questions.answer(stage.deps, task.user_id, asked.id, YES)

    # The reply comes first, and does not use its own.
    stage.engine.then(Say("Never mind."))
    stage.engine.then(SEND)
    await stage.work()

    assert stage.tools.calls == [("send", {"to": "Ann"})]


def grants(stage: Stage, conversation: Conversation) -> Sequence[Grant]:
    user = conversation.user_id
    return stage.database.run(lambda tx: tx.grants.valid(user, conversation.id))


async def test_other_arguments_are_asked_about_anew(stage: Stage) -> None:
    stage.engine.then(SEND)
    stage.engine.then(Call("send", {"to": "Bob"}))
    task = await stage.task()
    await stage.work()
    await stage.answer(task, YES)

    await stage.work()

    assert stage.tools.calls == []
    assert "Bob" in stage.question(task).prompt


async def test_a_no_makes_no_call(stage: Stage) -> None:
    stage.engine.then(SEND)
    task = await stage.task()
    await stage.work()
    await stage.answer(task, NO)

    await stage.work()

    assert stage.tools.calls == []
    assert "The user answered: no" in stage.engine.requests[-1].prompt


async def test_always_here_is_for_every_call_of_the_tool_in_this_conversation(
    stage: Stage,
) -> None:
    stage.engine.then(SEND)
    stage.engine.then(SEND, Call("send", {"to": "Bob"}))
    task = await stage.task()
    await stage.work()
    await stage.answer(task, ALWAYS_HERE)
    await stage.work()
    assert stage.tools.count("send") == 2

    stage.engine.then(SEND)
    other = await stage.task()
    await stage.work()

    assert stage.tools.count("send") == 2
    assert stage.question(other).purpose is Purpose.APPROVAL


async def test_of_two_answers_that_race_one_wins(stage: Stage) -> None:
    stage.engine.then(SEND)
    task = await stage.task()
    await stage.work()
    question = stage.question(task)

    async def answer(text: str) -> bool:
        try:
            await questions.answer(stage.deps, task.user_id, question.id, text)
        except Conflict:
            return False
        return True

    won = await asyncio.gather(*(answer(text) for text in (YES, NO, YES, NO)))

    assert sum(won) == 1


async def test_calls_of_one_message_are_asked_about_together(stage: Stage) -> None:
    stage.engine.then(AtOnce(SEND, Call("send", {"to": "Bob"}), Call("look")))
    task = await stage.task()

    await stage.work()

    (question,) = stage.load(task).questions
    assert [call["arguments"]["to"] for call in question.binds_to["calls"]] == ["Ann", "Bob"]
    stage.engine.then(AtOnce(SEND, Call("send", {"to": "Bob"})))
    await stage.answer(task, YES)
    await stage.work()
    assert stage.tools.count("send") == 2


async def test_a_tool_outside_its_scope_is_denied_and_the_run_goes_on(stage: Stage) -> None:
    stage.engine.then(Call("look"), Say("Fine."))
    task = await stage.task(tools=("other",))

    await stage.work()

    assert stage.tools.calls == []
    assert [result.failed for result in stage.engine.results] == [True]
    assert stage.history(task)[0].status is RunStatus.SUCCESS


async def test_arguments_that_cannot_be_written_down_are_denied(stage: Stage) -> None:
    stage.engine.then(Call("look", {"n": float("nan")}), Say("Fine."))
    task = await stage.task()

    await stage.work()

    assert stage.tools.calls == []
    assert [result.failed for result in stage.engine.results] == [True]
    assert stage.history(task)[0].status is RunStatus.SUCCESS


async def test_a_tool_that_breaks_is_told_to_the_agent(stage: Stage) -> None:
    async def breaks(arguments: Mapping[str, Any]) -> str:
        raise OSError(f"no route to {arguments['to']}")

    stage.tools.handlers["look"] = breaks
    stage.engine.then(Call("look", {"to": "Ann"}))
    await stage.task()

    await stage.work()

    (result,) = stage.engine.results
    assert (result.failed, result.text) == (True, "look failed: no route to Ann")
    # An error may quote what a server has sent.
    assert result.outside


@requirement("Z-receipts")
async def test_after_a_crash_what_was_done_is_not_done_again(stage: Stage, clock: SetClock) -> None:
    stage.engine.then(Call("send", {"to": "Ann"}))
    task = await stage.task(EVERY_MINUTE)
    await stage.work()
    await stage.answer(task, ALWAYS_HERE)
    stage.engine.then(SEND, Call("slow"))
    await stage.take_up()
    await stage.tools.started["slow"].wait()
    assert stage.tools.count("send") == 1
    stage.kill()
    clock.advance(2 * LEASE)
    await stage.rescuer.run_once()
    # The slow one may have happened, for all that is known.
    await stage.answer(task, LEAVE)

    stage.engine.then(SEND, SEND)
    await stage.work()

    assert RECEIPT in stage.engine.requests[-1].prompt
    # The first is answered from the journal, the second is one more.
    assert [result.text for result in stage.engine.results[-2:]] == ["send is done."] * 2
    assert stage.tools.count("send") == 2


async def crash_in_call(stage: Stage, clock: SetClock, call: Call) -> None:
    """Let the process vanish in a call, and somebody find out."""

    async def hang(arguments: Mapping[str, Any]) -> str:
        del arguments
        await asyncio.Event().wait()
        return ""

    stage.tools.handlers[call.tool] = hang
    stage.engine.then(call)
    await stage.take_up()
    await stage.tools.started[call.tool].wait()
    stage.kill()
    del stage.tools.handlers[call.tool]
    clock.advance(2 * LEASE)
    await stage.rescuer.run_once()


async def crash_while_sending(stage: Stage, clock: SetClock, *, consent: str) -> Conversation:
    """Let a process die in the middle of a call that its owner agreed to."""
    stage.engine.then(SEND)
    task = await stage.task()
    await stage.work()
    await stage.answer(task, consent)
    await crash_in_call(stage, clock, SEND)
    return task


@pytest.mark.parametrize(
    ("said", "calls"), [(HAPPENED, 1), (REPEAT, 2), (LEAVE, 1)], ids=["happened", "again", "leave"]
)
async def test_a_call_that_a_crash_cut_off_is_asked_about_and_not_repeated(
    stage: Stage, clock: SetClock, said: str, calls: int
) -> None:
    task = await crash_while_sending(stage, clock, consent=YES)
    question = stage.question(task)
    assert question.purpose is Purpose.IN_DOUBT
    stage.engine.then(SEND)
    await stage.work()
    assert stage.tools.count("send") == 1

    await stage.answer(task, said)
    await stage.work()

    assert stage.tools.count("send") == calls
    if said == HAPPENED:
        assert stage.engine.results[-1].text == "The owner says that this call was made."


@pytest.mark.parametrize("kind", ["chat", "task"])
@pytest.mark.parametrize("cage", [Cage.LOOK, Cage.WORK])
async def test_a_command_in_a_cage_that_a_crash_cut_off_asks_nobody_and_its_agent_is_told(
    stage: Stage, clock: SetClock, cage: Cage, kind: str
) -> None:
    stage.tools.cage = cage
    here = await stage.chat() if kind == "chat" else await stage.task()
    if kind == "chat":
        await stage.say(here, "Build it.")
    await crash_in_call(stage, clock, BUILD)
    assert stage.load(here).questions == ()
    stage.engine.then(BUILD)

    await stage.work()

    assert stage.tools.count("shell") == 2
    assert stage.engine.results[-1].text == "shell is done."
    assert (INTERRUPTED in stage.engine.requests[-1].prompt) is (cage is Cage.WORK)


async def test_a_command_with_the_network_that_a_crash_cut_off_is_asked_about(
    stage: Stage, clock: SetClock
) -> None:
    fetch = Call("shell", {"command": "make", "network": True})
    task = await stage.task()
    stage.engine.then(fetch)
    await stage.work()
    await stage.answer(task, YES)

    await crash_in_call(stage, clock, fetch)

    assert stage.question(task).purpose is Purpose.IN_DOUBT


async def test_an_agent_that_goes_on_is_told_that_its_command_was_interrupted(
    stage: Stage,
) -> None:
    stage.tools.handlers["shell"] = lambda _arguments: stage.tools.let_go.wait()  # type: ignore[assignment, return-value]
    stage.engine.then(BUILD)
    task = await stage.task()
    await stage.take_up()
    await stage.tools.started["shell"].wait()
    stage.only_run().stop.request(StopReason.SHUTDOWN)
    await stage.idle()
    assert stage.load(task).questions == ()

    await stage.work()

    assert stage.engine.requests[-1].prompt.startswith(INTERRUPTED)
    assert "# You were interrupted" in stage.engine.requests[-1].prompt


async def test_a_cancelled_run_makes_no_further_call(stage: Stage) -> None:
    stage.engine.then(Call("slow"), Call("look"), Say("Never."))
    task = await stage.task()
    await stage.take_up()
    await stage.tools.started["slow"].wait()
    await control.cancel(stage.deps, Origin.by_user(task.user_id), task.id)
    stage.tools.let_go.set()

    await stage.idle()

    assert stage.tools.count("look") == 0
    assert [run.status for run in stage.history(task)] == [RunStatus.CANCELLED]


async def test_a_cancelled_run_is_interrupted_in_a_call(stage: Stage) -> None:
    stage.engine.then(Call("slow"))
    task = await stage.task()
    await stage.take_up()
    await stage.tools.started["slow"].wait()
    await control.cancel(stage.deps, Origin.by_user(task.user_id), task.id)

    await stage.renew()
    await stage.idle()

    assert [run.status for run in stage.history(task)] == [RunStatus.CANCELLED]
    assert "may or may not have happened" in stage.said(task)[-1]
    assert stage.load(task).questions == ()


async def test_a_run_of_recurring_work_is_stopped_alone(stage: Stage, clock: SetClock) -> None:
    every = Interval(timedelta(hours=1), anchor=clock.now)
    stage.engine.then(Call("slow"))
    task = await stage.task(every)
    await stage.take_up()
    await stage.tools.started["slow"].wait()
    await control.stop_run(stage.deps, task.user_id, task.id)

    await stage.renew()
    await stage.idle()
    await stage.work()

    assert [run.status for run in stage.history(task)] == [RunStatus.CANCELLED]
    stopped = stage.load(task)
    assert (stopped.schedule, stopped.next_run_at) == (every, clock.now + timedelta(hours=1))
    with pytest.raises(Conflict, match="no background run"):
        await control.stop_run(stage.deps, task.user_id, task.id)
    once = await stage.task()
    with pytest.raises(Conflict, match="recurring"):
        await control.stop_run(stage.deps, once.user_id, once.id)


async def test_the_journal_is_not_looked_at_for_a_run_without_calls(stage: Stage) -> None:
    stage.engine.then(Say("Hello."))
    here = await stage.chat()
    await stage.say(here, "Hello?")

    with watched(stage.database) as statements:
        await stage.work()

    assert stage.said(here)[-1] == "Hello."
    assert not [sql for sql, _ in statements if "tool_calls" in sql]


async def test_calls_from_before_a_run_was_handed_back_are_looked_at_when_it_ends(
    stage: Stage,
) -> None:
    task = await stage.task()
    stage.engine.then(Wait())
    await stage.take_up()
    run = stage.only_run()
    run.stop.request(StopReason.SHUTDOWN)
    await stage.idle()
    call, call_id = ToolCall(Tool(server="mail", name="send", definition=""), {}), new_call_id()
    # As if its result had been lost, which the gate of the next claim cannot know.
    stage.database.run(
        lambda tx: tx.tool_calls.begin(run.claim.turn, call_id, call, read_only=False)
    )
    stage.engine.then(Say("Done."))

    await stage.work()

    assert stage.question(task).purpose is Purpose.IN_DOUBT


@pytest.mark.parametrize("said", [REPEAT, LEAVE], ids=["again", "leave"])
async def test_doubt_that_was_settled_is_not_brought_up_again_when_the_same_run_goes_on(
    stage: Stage, clock: SetClock, said: str
) -> None:
    stage.engine.then(Call("slow"))
    task = await stage.task()
    await stage.take_up()
    await stage.tools.started["slow"].wait()
    stage.only_run().stop.request(StopReason.SHUTDOWN)
    await stage.idle()
    assert stage.question(task).purpose is Purpose.IN_DOUBT

    await stage.answer(task, said)
    stage.engine.then(Wait())
    await stage.take_up()
    stage.kill()
    clock.advance(2 * LEASE)
    assert await stage.rescuer.run_once()
    await stage.work()

    assert stage.load(task).questions == ()
    assert [run.status for run in stage.history(task)] == [RunStatus.SUCCESS, RunStatus.FAILURE]


async def test_a_run_that_goes_on_after_doubt_was_settled_ends_as_it_should(stage: Stage) -> None:
    stage.engine.then(Call("slow"))
    task = await stage.task()
    await stage.take_up()
    await stage.tools.started["slow"].wait()
    stage.only_run().stop.request(StopReason.SHUTDOWN)
    await stage.idle()

    await stage.answer(task, LEAVE)
    await stage.work()

    assert stage.load(task).questions == ()
    assert [run.status for run in stage.history(task)] == [RunStatus.SUCCESS]


async def test_leave_it_holds_also_where_the_tool_is_always_allowed(
    stage: Stage, clock: SetClock
) -> None:
    task = await crash_while_sending(stage, clock, consent=ALWAYS_HERE)

    stage.engine.then(SEND)
    await stage.answer(task, LEAVE)
    await stage.work()

    assert stage.tools.count("send") == 1
    assert "leave this call alone" in stage.engine.results[-1].text


async def test_an_agent_whose_memory_is_gone_gets_what_the_same_run_did_before(
    stage: Stage,
) -> None:
    stage.engine.then(SEND)
    task = await stage.task()
    await stage.work()
    await stage.answer(task, ALWAYS_HERE)
    stage.engine.then(SEND, Call("look"), Wait())
    await stage.take_up()
    await stage.tools.started["look"].wait()
    stage.only_run().stop.request(StopReason.SHUTDOWN)
    await stage.idle()

    stage.engine.then(Fail(SessionGone()))
    stage.engine.then(SEND)
    await stage.work()

    assert stage.tools.count("send") == 1
    prompt = stage.engine.requests[-1].prompt
    assert RECEIPT in prompt
    assert f"The user answered: {ALWAYS_HERE}" in prompt


async def test_a_cancelled_run_that_crashed_in_a_call_is_told_about_and_starts_nothing(
    stage: Stage, clock: SetClock
) -> None:
    task = await stage.task()
    stage.engine.then(Call("slow"))
    await stage.take_up()
    await stage.tools.started["slow"].wait()
    await control.cancel(stage.deps, Origin.by_user(task.user_id), task.id)
    stage.kill()
    clock.advance(2 * LEASE)
    await stage.rescuer.run_once()

    assert stage.load(task).questions == ()
    assert "may or may not have happened" in stage.said(task)[-1]
    await stage.work()
    assert [run.status for run in stage.history(task)] == [RunStatus.CANCELLED]


class UndoingStore:
    """Undoes every transaction, and says so."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def transact(self, work: Callable[[Tx], Any], **_limits: Any) -> Any:
        def undone(tx: Tx) -> None:
            work(tx)
            raise StoreFailed

        return await self.database.transact(undone)


async def test_a_run_is_not_cancelled_by_what_was_read_in_a_transaction_that_was_undone(
    stage: Stage,
) -> None:
    task = await stage.task()
    turn = await work_turn(stage, task)
    await control.cancel(stage.deps, Origin.by_user(task.user_id), task.id)
    stop, budget = StopRequests(), Budget(stage.deps, turn, task.id)
    gate = Gate(cast("Store", UndoingStore(stage.database)), turn, stop, (), budget)
    (send,) = (
        offer
        for offer in await stage.deps.toolbox.offers(turn, task)
        if offer.tool.name == SEND.tool
    )

    with pytest.raises(StoreFailed):
        await gate.call(send, {"to": "Ann"})

    assert stop.reason is None
