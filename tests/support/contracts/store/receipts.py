"""What was done, what it cost, and what may be spent is written down, and stays what it is."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from sqlalchemy import func, select

from backburner.core import transitions
from backburner.core.allowance import Allowance, AllowanceScope, Amount, Cost
from backburner.core.commands import Cage
from backburner.core.conversation import Conversation
from backburner.core.errors import Conflict, Fenced, NotFound
from backburner.core.ids import CallId, GrantId, new_call_id
from backburner.core.question import Purpose
from backburner.core.schedule import Scheduled
from backburner.core.tool_journal import JournalEntry
from backburner.core.tool_policy import Grant, Tool, ToolCall, call_digest
from backburner.core.transitions import Step
from backburner.ports import CallEnd, Claim, SpendingState
from backburner.store import tables
from backburner.store.tx import Tx
from support.stage.make import NOON, STRANGER, USER
from support.stage.scene import Scene

CALL = ToolCall(Tool(server="mail", name="send", definition="d"), {"to": "é", "n": 1})
ONCE = Grant(
    id=GrantId("g_once"), server="mail", tool="send", definition="d", call=call_digest(CALL)
)


def a_call_is_written_down_before_and_after(scene: Scene) -> None:
    scene.task()
    claim = scene.begin_work()

    which = _begin(scene, claim)
    (begun,) = _calls(scene, claim)
    scene.run(lambda tx: tx.tool_calls.end(claim.turn, CallEnd(which, "Sent.")))

    expected = JournalEntry(
        id=which,
        run_id=claim.run.id,
        server="mail",
        tool="send",
        definition="d",
        arguments=CALL.arguments,
        digest=call_digest(CALL),
        read_only=False,
        done=False,
    )
    assert begun == expected
    (ended,) = _calls(scene, claim)
    assert (ended.done, ended.result, ended.failed) == (True, "Sent.", False)


def a_call_whose_effects_were_taken_back_has_another_result(scene: Scene) -> None:
    scene.task()
    claim = scene.begin_work()
    undone, kept = _begin(scene, claim), _begin(scene, claim)
    ends = [CallEnd(which, "Sent.") for which in (undone, kept)]
    scene.run(lambda tx: tx.tool_calls.end(claim.turn, *ends))

    scene.run(lambda tx: tx.tool_calls.undo(USER, [], "Undone."))
    scene.run(lambda tx: tx.tool_calls.undo(STRANGER, [kept], "Undone."))
    scene.run(lambda tx: tx.tool_calls.undo(USER, [undone], "Undone."))

    calls = {entry.id: (entry.failed, entry.result) for entry in _calls(scene, claim)}
    assert calls == {undone: (True, "Undone."), kept: (False, "Sent.")}


def a_holder_that_lost_its_turn_ends_no_call(scene: Scene) -> None:
    scene.task()
    claim = scene.begin_work()
    which = _begin(scene, claim)
    scene.crash(claim)

    with pytest.raises(Fenced):
        scene.run(lambda tx: tx.tool_calls.end(claim.turn, CallEnd(which, "Sent.")))


def a_call_that_a_crash_cut_off_is_asked_about(scene: Scene) -> None:
    task = scene.task()
    claim = scene.begin_work()
    which = _begin(scene, claim)
    read = _begin(scene, claim, read_only=True)

    scene.crash(claim)

    assert [entry.done for entry in _calls(scene, claim)] == [False, False]
    (question,) = scene.load(task).questions
    assert (question.purpose, question.binds_to["call_id"]) == (Purpose.IN_DOUBT, which)
    assert read != which
    assert scene.claim_work() is None


def a_call_in_a_cage_that_a_crash_cut_off_is_not_asked_about(scene: Scene) -> None:
    task = scene.task()
    claim = scene.begin_work()
    caged = ToolCall(replace(CALL.tool, cage=Cage.WORK), CALL.arguments)
    reaching = ToolCall(caged.tool, {"network": True})
    for call in (caged, reaching):
        _begin(scene, claim, call=call)

    scene.crash(claim)

    entries = {entry.digest: entry for entry in _calls(scene, claim)}
    assert entries[call_digest(caged)].cage is Cage.WORK
    assert entries[call_digest(reaching)].cage is None
    (question,) = scene.load(task).questions
    assert question.binds_to["call_id"] == entries[call_digest(reaching)].id


def what_the_owner_says_of_a_call_is_written_down(scene: Scene) -> None:
    scene.task()
    claim = scene.begin_work()
    which = _begin(scene, claim)
    scene.crash(claim)

    scene.run(lambda tx: tx.tool_calls.settle(USER, which, "It happened."))

    (entry,) = _calls(scene, claim)
    assert (entry.done, entry.result) == (True, "It happened.")
    with pytest.raises(NotFound):
        scene.run(lambda tx: tx.tool_calls.settle(USER, which, "Or not."))


def a_grant_for_one_call_is_used_once(scene: Scene) -> None:
    task = scene.task()
    scene.change(task, lambda found: Step(conversation=found, grants=(ONCE,)))

    scene.run(lambda tx: tx.grants.use(USER, task.id, ONCE.id))

    assert scene.run(lambda tx: tx.grants.valid(USER, task.id)) == ()
    with pytest.raises(Conflict):
        scene.run(lambda tx: tx.grants.use(USER, task.id, ONCE.id))


def a_grant_for_one_call_ends_with_the_work_and_a_lasting_one_stays(scene: Scene) -> None:
    task, other = scene.task(), scene.task()
    lasting = replace(ONCE, id=GrantId("g_lasting"), call=None)
    elsewhere = replace(ONCE, id=GrantId("g_elsewhere"))
    scene.change(task, lambda found: Step(conversation=found, grants=(ONCE, lasting)))
    scene.change(other, lambda found: Step(conversation=found, grants=(elsewhere,)))

    scene.change(task, lambda found: transitions.cancel(found, now=NOON))

    assert scene.run(lambda tx: tx.grants.valid(USER, task.id)) == (lasting,)
    assert scene.run(lambda tx: tx.grants.valid(USER, other.id)) == (elsewhere,)


def sums_are_those_of_the_receipts(scene: Scene) -> None:
    scene.task()
    claim = scene.begin_work()
    for number in range(1, 4):
        cost = Cost(Amount(number, 10 * number), priced=True)
        _spend(scene, claim, cost, "user", "day")

    sums = ["user", "day", "other"]
    found = scene.run(lambda tx: tx.spending.state(USER, claim.conversation.id, sums))

    assert found.spent == {"user": Amount(6, 60), "day": Amount(6, 60)}
    table = tables.spend.c
    rows = scene.run(
        lambda tx: tx.connection.execute(select(func.sum(table.micros), func.count())).one()
    )
    assert tuple(rows) == (6, 3)


def receipts_outlive_their_conversation(scene: Scene) -> None:
    scene.task()
    claim = scene.begin_work()
    cost = Cost(Amount(1, 1), priced=False)
    _spend(scene, claim, cost, "user")
    scene.run(lambda tx: tx.connection.execute(tables.conversations.delete()))

    assert scene.run(
        lambda tx: tx.connection.execute(select(func.count()).select_from(tables.spend)).scalar()
    )


def runs_under_way_are_counted_to_the_conversation_at_the_top(scene: Scene) -> None:
    top = scene.chat()
    middle = scene.task(Scheduled(NOON + timedelta(days=1)), parent_id=top.id)
    scene.task(parent_id=middle.id)
    claim = scene.begin_work()
    scene.say(top)
    reply = scene.begin_reply()

    found = _account(scene, top).running

    assert sorted(found) == sorted([(claim.run.id, top.id), (reply.run.id, top.id)])
    scene.finish(claim)
    assert _account(scene, top).running == [(reply.run.id, top.id)]


def what_may_be_spent_is_what_was_said_last(scene: Scene) -> None:
    task, other = scene.task(), scene.task()
    said = [
        Allowance(AllowanceScope.CONVERSATION, 1, None),
        Allowance(AllowanceScope.CONVERSATION, 2, 3),
        Allowance(AllowanceScope.DAY, None, 4),
    ]
    for allowance in said:
        scene.run(partial(_allow, allowance, task))

    found = _account(scene, task).allowances

    assert sorted(found, key=lambda one: one.scope) == said[1:]
    assert _account(scene, other).allowances == said[2:]


def a_run_that_is_to_be_cancelled_tells_what_it_left_undecided(scene: Scene) -> None:
    task = scene.task()
    claim = scene.begin_work()
    _begin(scene, claim)
    scene.change(task, lambda found: transitions.cancel(found, now=NOON))

    scene.crash(claim)

    # An answer would start the cancelled work again.
    assert scene.load(task).questions == ()
    said = scene.run(lambda tx: tx.messages.recent(USER, task.id, limit=1))
    assert "may or may not have happened" in said[0].content


def _begin(scene: Scene, claim: Claim, *, call: ToolCall = CALL, read_only: bool = False) -> CallId:
    which = new_call_id()
    scene.run(lambda tx: tx.tool_calls.begin(claim.turn, which, call, read_only=read_only))
    return which


def _calls(scene: Scene, claim: Claim) -> list[JournalEntry]:
    return list(scene.run(lambda tx: tx.tool_calls.of_run(USER, claim.run.id)))


def _spend(scene: Scene, claim: Claim, cost: Cost, *counts_to: str) -> None:
    turn = claim.turn
    scene.run(
        lambda tx: tx.spending.add(turn, turn.conversation_id, "model", cost, counts_to=counts_to)
    )


def _allow(allowance: Allowance, conversation: Conversation, tx: Tx) -> None:
    tx.spending.set_allowance(USER, allowance, conversation.id)


def _account(scene: Scene, conversation: Conversation) -> SpendingState:
    return scene.run(lambda tx: tx.spending.state(USER, conversation.id, ["user"]))
