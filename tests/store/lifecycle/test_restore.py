"""A database that was put back from a copy: it does nothing again by itself."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, Select, Table, func, insert, select
from support.doubles.clock import SetClock
from support.people.a_token import put_token
from support.stage.make import USER
from support.stage.scene import Scene

from backburner.core import transitions
from backburner.core.conversation import Destination, PauseReason, Status
from backburner.core.ids import CallId, GrantId
from backburner.core.question import Purpose
from backburner.core.run import FailureKind, RunStatus
from backburner.core.schedule import Interval
from backburner.core.tool_policy import Grant, Tool, ToolCall
from backburner.ports import EventKind
from backburner.store import tables
from backburner.store.db import Database
from backburner.store.lifecycle import restore
from backburner.store.lifecycle.check import find_faults
from backburner.store.lifecycle.restore import Restored
from backburner.store.tx import Tx
from backburner.store.types import to_micros

SEND = Tool(server="mail", name="send", definition="d")
CALL = ToolCall(tool=SEND, arguments={"to": "ann"})


@pytest.fixture
def scene(database: Database) -> Scene:
    return Scene(database)


def settle(scene: Scene) -> Restored:
    restored = scene.database.run(restore.settle)
    assert scene.database.run(lambda tx: find_faults(tx.connection)) == []
    return restored


def test_nothing_that_was_due_or_waited_is_taken_up(scene: Scene) -> None:
    due, chat = scene.task(), scene.chat()
    recurring = scene.task(Interval(timedelta(minutes=5), anchor=scene.clock.now))
    scene.say(chat)
    restored = settle(scene)
    scene.clock.advance(timedelta(days=1))

    assert (scene.claim_reply(), scene.claim_work()) == (None, None)
    assert restored.paused == 2
    for one in (due, recurring):
        assert scene.load(one).pause_reason is PauseReason.USER
    assert scene.load(chat).status is Status.ACTIVE
    said = scene.database.run(lambda tx: tx.messages.recent(USER, chat.id, limit=5))
    assert "send them again" in said[-1].content


def test_what_its_owner_resumes_goes_on(scene: Scene) -> None:
    recurring = scene.task(Interval(timedelta(minutes=5), anchor=scene.clock.now))
    settle(scene)
    scene.change(recurring, lambda found: transitions.resume(found, now=scene.clock.now))
    scene.clock.advance(timedelta(minutes=6))

    assert scene.begin_work().turn.conversation_id == recurring.id


def test_a_run_that_was_under_way_has_crashed_and_its_call_is_in_doubt(scene: Scene) -> None:
    task = scene.task()
    claim = scene.begin_work()
    scene.run(lambda tx: tx.tool_calls.begin(claim.turn, CallId("t_1"), CALL, read_only=False))
    settle(scene)
    found = scene.load(task)

    assert [one.purpose for one in found.questions] == [Purpose.IN_DOUBT]
    assert found.pause_reason is PauseReason.USER
    ended = scene.database.run(lambda tx: tx.runs.load(USER, claim.turn.run_id))
    assert ended.status is RunStatus.FAILURE
    assert ended.failure
    assert ended.failure.kind is FailureKind.CRASHED
    assert scene.claim_work() is None


def test_a_run_that_was_handed_back_does_not_go_on(scene: Scene) -> None:
    scene.task()
    scene.hand_back(scene.begin_work())
    chat = scene.chat()
    scene.say(chat)
    reply = scene.begin_reply()
    scene.hand_back(reply, served=scene.items(reply))
    settle(scene)

    assert (scene.claim_work(), scene.claim_reply()) == (None, None)
    statuses = scene.run(
        lambda tx: tx.connection.execute(select(tables.runs.c.status)).scalars().all()
    )
    assert statuses == ["cancelled", "cancelled"]


def test_those_who_hold_a_turn_from_before_cannot_write(scene: Scene) -> None:
    chat = scene.chat()
    before = _epoch(scene)
    settle(scene)

    assert _epoch(scene) == before + 1
    assert scene.load(chat) == chat


def test_nobody_is_signed_in_any_longer(scene: Scene) -> None:
    scene.user()
    scene.run(lambda tx: put_token(tx.connection, USER))
    restored = settle(scene)
    ended = scene.run(
        lambda tx: tx.connection.execute(select(tables.credentials.c.ended_at)).scalars().all()
    )

    assert restored.signed_out == 1
    assert None not in ended


def test_a_yes_to_one_call_is_used_up_and_one_for_good_is_not(scene: Scene) -> None:
    chat = scene.chat()
    once = Grant(id=GrantId("g_1"), server="mail", tool="send", definition="d", call="digest")
    always = Grant(id=GrantId("g_2"), server="mail", tool="send", definition="d")
    scene.run(lambda tx: tx.grants.give(USER, chat.id, [once, always]))
    settle(scene)

    assert [one.id for one in scene.run(lambda tx: tx.grants.valid(USER, chat.id))] == ["g_2"]


def test_nothing_goes_out_and_everything_can_be_seen(scene: Scene) -> None:
    scene.task(reports_to=(Destination("mail", "ann"),))
    settle(scene)
    states = scene.run(
        lambda tx: tx.connection.execute(select(tables.deliveries.c.state)).scalars().all()
    )
    notices = scene.run(
        lambda tx: tx.connection.execute(select(tables.notices.c.text)).scalars().all()
    )

    assert states == ["failed"]
    assert len(notices) == 1
    assert "restored from a backup" in notices[0]


def test_a_question_that_was_to_answer_itself_waits_for_a_person(scene: Scene) -> None:
    chat = scene.chat()
    now = scene.clock.now
    scene.run(
        lambda tx: tx.connection.execute(insert(tables.questions).values(_question(chat.id, now)))
    )
    settle(scene)
    row = scene.run(lambda tx: tx.connection.execute(select(tables.questions)).one())

    assert (row.expires_at, row.default_answer) == (None, None)
    assert row.remind_at > now


def test_it_may_be_done_twice(scene: Scene) -> None:
    scene.task()

    assert (settle(scene).paused, settle(scene).paused) == (1, 0)


def _epoch(scene: Scene) -> int:
    found: int = scene.run(
        lambda tx: tx.connection.execute(select(tables.conversations.c.epoch)).scalar_one()
    )
    return found


def _question(conversation: str, now: object) -> dict[str, object]:
    return {
        "id": "q_1",
        "user_id": USER,
        "conversation_id": conversation,
        "purpose": "question",
        "type": "confirmation",
        "prompt": "Go on?",
        "options": "[]",
        "binds_to": "{}",
        "run_kind": "background",
        "asked_at": now,
        "remind_at": now,
        "reminders": 0,
        "expires_at": now,
        "default_answer": "no",
    }


def test_numbers_that_clients_may_have_seen_are_not_given_again(
    scene: Scene, clock: SetClock
) -> None:
    database = scene.database
    scene.chat()
    known, lost = change(database), change(database)
    database.run(lambda tx: lose(tx, known))
    assert change(database) == lost
    database.run(lambda tx: lose(tx, known))
    settle(scene)
    first = change(database)
    database.run(lambda tx: lose(tx, known))
    clock.advance(timedelta(microseconds=5))
    settle(scene)

    assert lost < first < change(database)
    assert database.run(lambda tx: tx.events.has_all_since(USER, known))
    assert not database.run(lambda tx: tx.events.has_all_since(USER, lost))


@pytest.mark.parametrize("name", [table.name for table in tables.numbered])
def test_rows_of_every_table_are_numbered_beyond_those_that_were_lost(
    scene: Scene, name: str
) -> None:
    scene.chat()
    before = to_micros(scene.database.run(lambda tx: tx.now))
    settle(scene)

    assert scene.run(lambda tx: last_number(tx.connection, tables.metadata.tables[name])) >= before


def last_number(connection: Connection, table: Table) -> int:
    """Read the last number that was given to a row, or skipped."""
    asked: Select[Any] = select(tables.counters.c.last)
    asked = asked.where(tables.counters.c.name == table.name)
    if connection.dialect.name == "postgresql" and table.c.number.identity is not None:
        asked = select(func.nextval(func.pg_get_serial_sequence(table.name, "number")))
    return int(connection.execute(asked).scalar_one())


def change(database: Database) -> int:
    database.run(lambda tx: tx.changed(USER, None, EventKind.USER))
    return database.run(lambda tx: tx.events.latest(USER))


def lose(tx: Tx, last: int) -> None:
    """Let the events be those of a copy, which counts on from its last one."""
    tx.connection.execute(tables.events.delete().where(tables.events.c.number > last))
    counter = tables.counters.c.name == tables.events.name
    tx.connection.execute(tables.counters.update().where(counter).values(last=last))
