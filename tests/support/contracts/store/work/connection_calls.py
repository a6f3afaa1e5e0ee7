"""Calls on connections are recorded with their outcome, and outlive what they belong to."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

from sqlalchemy import Update, update

from backburner.core.connections.call import SLOT, CallCounts, CallOutcome
from backburner.core.ids import CallId, ConnectionId, new_call_id
from backburner.core.tool_journal import calls_in_doubt
from backburner.core.tool_policy import Tool, ToolCall
from backburner.ports import CallEnd, Claim
from backburner.store import tables
from backburner.store.tx import Tx
from support.stage.make import MATE, NOON, USER
from support.stage.scene import Scene

MAIL = ConnectionId("x_mail")
SEND = Tool(server="mail", name="send", definition="d", connection=MAIL)
OWN = Tool(server="backburner", name="look", definition="d")


def calls_on_connections_are_recorded_and_others_are_not(scene: Scene) -> None:
    task = scene.task()
    claim = scene.begin_work()
    for tool, failed in ((SEND, False), (OWN, False), (SEND, True)):
        which = _begin(scene, claim, tool)
        said = "It\nsaid: \u202eno." if failed else "Sent."
        _end(scene, claim, which, said, failed=failed)
        # The answer of the first try may have been lost.
        _end(scene, claim, which, said, failed=failed)

    last, done = scene.run(lambda tx: tx.connection_calls.page(USER, limit=10))

    assert (last.outcome, done.outcome) == (CallOutcome.FAILED, CallOutcome.DONE)
    # Results of calls that worked are not shown here.
    assert (last.told, done.told) == ("It said: \\u202eno.", "")
    assert (done.server, done.tool, done.connection_id) == ("mail", "send", MAIL)
    assert (done.conversation_id, done.run_id) == (task.id, claim.run.id)
    assert done.started_at <= done.ended_at
    pages = [
        scene.run(lambda tx: tx.connection_calls.page(USER, before=last.id, limit=10)),
        scene.run(lambda tx: tx.connection_calls.page(USER, limit=1)),
        scene.run(lambda tx: tx.connection_calls.page(USER, MAIL, limit=1)),
        scene.run(lambda tx: tx.connection_calls.page(USER, ConnectionId("x_o"), limit=9)),
        scene.run(lambda tx: tx.connection_calls.page(MATE, limit=9)),
    ]
    assert pages == [[done], [last], [last], [], []]


def calls_are_counted_by_the_half_hours_in_which_they_began(scene: Scene) -> None:
    scene.task()
    claim = scene.begin_work()
    now = scene.run(lambda tx: tx.now)
    for failed, begins, took in ((False, 0, 1), (True, 1, 11), (False, 95, 1), (False, -1, 1)):
        which = _begin(scene, claim, SEND)
        _end(scene, claim, which, failed=failed)
        at = now + timedelta(minutes=begins)
        values = {"started_at": at, "ended_at": at + timedelta(seconds=took)}
        calls = tables.connection_calls
        change = update(calls).where(calls.c.id == which).values(values)
        scene.run(partial(_execute, change))

    found = scene.run(lambda tx: tx.connection_calls.count(USER, [MAIL], since=now))

    second = timedelta(seconds=1)
    counted = sorted(found[MAIL], key=lambda slot: slot.at)
    assert counted == [
        CallCounts(at=now, calls=2, failed=1, slow=1, took=12 * second),
        CallCounts(at=now + 3 * SLOT, calls=1, took=second),
    ]
    others = [
        scene.run(lambda tx: tx.connection_calls.count(USER, [ConnectionId("x_o")], since=now)),
        scene.run(lambda tx: tx.connection_calls.count(USER, [], since=now)),
        scene.run(lambda tx: tx.connection_calls.count(MATE, [MAIL], since=now)),
    ]
    assert others == [{}, {}, {}]


def a_call_that_nobody_knows_about_is_recorded_as_such(scene: Scene) -> None:
    scene.task()
    claim = scene.begin_work()
    _begin(scene, claim, SEND)
    _begin(scene, claim, replace(SEND, name="mark", repeatable=True))

    doubts = scene.run(lambda tx: tx.tool_calls.take_in_doubt(claim.turn))

    # What may be repeated is simply made again.
    assert [doubt.tool for doubt in doubts] == ["send"]
    assert calls_in_doubt(doubts) == doubts
    recorded = scene.run(lambda tx: tx.connection_calls.page(USER, limit=10))
    assert {call.tool: call.outcome for call in recorded} == {
        "send": CallOutcome.UNKNOWN,
        "mark": CallOutcome.UNKNOWN,
    }


def recorded_calls_outlive_their_conversation_until_they_are_old(scene: Scene) -> None:
    task = scene.task()
    claim = scene.begin_work()
    _end(scene, claim, _begin(scene, claim, SEND), "No.", failed=True)
    (before,) = scene.run(lambda tx: tx.connection_calls.page(USER, limit=10))
    scene.run(lambda tx: tx.conversations.delete(USER, task.id))

    assert scene.run(lambda tx: tx.connection_calls.prune(before=NOON, limit=10)) == 0
    kept = scene.run(lambda tx: tx.connection_calls.page(USER, limit=10))
    assert (before.told, kept) == ("No.", [replace(before, told="")])
    after = scene.run(lambda tx: tx.now) + timedelta(days=1)
    assert scene.run(lambda tx: tx.connection_calls.prune(before=after, limit=10)) == 1
    assert scene.run(lambda tx: tx.connection_calls.page(USER, limit=10)) == []


def _execute(change: Update, tx: Tx) -> None:
    tx.connection.execute(change)


def _begin(scene: Scene, claim: Claim, tool: Tool) -> CallId:
    which = new_call_id()
    scene.run(
        lambda tx: tx.tool_calls.begin(claim.turn, which, ToolCall(tool, {}), read_only=False)
    )
    return which


def _end(
    scene: Scene, claim: Claim, which: CallId, result: str = "", *, failed: bool = False
) -> None:
    scene.run(lambda tx: tx.tool_calls.end(claim.turn, CallEnd(which, result, failed=failed)))
