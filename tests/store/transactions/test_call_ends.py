"""The end of a tool call on PostgreSQL: one statement, and no transaction around it."""

from dataclasses import replace

import pytest
from support.contracts.store.work.connections import MAIL
from support.stage.make import USER
from support.stage.scene import Scene
from support.statements import watched

from backburner.core.connections.call import CallOutcome
from backburner.core.errors import Fenced
from backburner.core.ids import CallId, new_call_id
from backburner.core.run import Turn
from backburner.core.tool_policy import Tool, ToolCall
from backburner.ports import CallEnd
from backburner.store.db import Database
from backburner.store.tx import Tx

SEND = ToolCall(Tool(server="mail", name="send", definition="d", connection=MAIL.id), {})


async def test_a_call_ends_in_one_statement(emptied_postgres: Database) -> None:
    scene = Scene(emptied_postgres)
    scene.task()
    scene.run(lambda tx: tx.connections.add(MAIL))
    turn = scene.begin_work().turn
    which = _begin(scene, turn)

    with watched(emptied_postgres) as statements:
        await emptied_postgres.transact(lambda tx: _end(tx, turn, which), single=True)

    assert [sql.split(" AS ")[0] for sql, _ in statements] == ["WITH ended"]
    (recorded,) = scene.run(lambda tx: tx.connection_calls.page(USER, limit=10))
    assert (recorded.id, recorded.outcome) == (which, CallOutcome.DONE)
    used = scene.run(lambda tx: tx.connections.load(USER, MAIL.id))
    assert used.last_used_at == recorded.ended_at

    # As after a lost answer; and for whoever has lost the turn.
    await emptied_postgres.transact(lambda tx: _end(tx, turn, which), single=True)
    other = replace(turn, epoch=turn.epoch + 1)
    with pytest.raises(Fenced):
        await emptied_postgres.transact(lambda tx: _end(tx, other, which), single=True)
    assert len(scene.run(lambda tx: tx.connection_calls.page(USER, limit=10))) == 1


async def test_calls_end_in_one_statement_all_together(emptied_postgres: Database) -> None:
    scene = Scene(emptied_postgres)
    scene.task()
    scene.run(lambda tx: tx.connections.add(MAIL))
    turn = scene.begin_work().turn
    ends = [CallEnd(_begin(scene, turn), f"Result {number}") for number in range(3)]

    with watched(emptied_postgres) as statements:
        await emptied_postgres.transact(lambda tx: tx.tool_calls.end(turn, *ends), single=True)

    assert len(statements) == 1
    recorded = scene.run(lambda tx: tx.connection_calls.page(USER, limit=10))
    assert {call.id for call in recorded} == {end.call_id for end in ends}
    entries = scene.run(lambda tx: tx.tool_calls.of_run(USER, turn.run_id))
    assert [(one.id, one.result) for one in entries] == [(end.call_id, end.result) for end in ends]


def _begin(scene: Scene, turn: Turn) -> CallId:
    which = new_call_id()
    scene.run(lambda tx: tx.tool_calls.begin(turn, which, SEND, read_only=False))
    return which


def _end(tx: Tx, turn: Turn, which: CallId) -> None:
    tx.tool_calls.end(turn, CallEnd(which, "Sent."))
