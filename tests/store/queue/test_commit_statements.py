"""The end of a run takes few statements, which see and leave the same rows as many would."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from threading import Event
from typing import Any

import pytest
from sqlalchemy import func, select, text, update
from support.contracts.store.holding import a_holder_that_lost_its_turn_changes_nothing
from support.stage.make import USER
from support.stage.scene import DONE, Scene
from support.statements import watched

from backburner.actions.after_schedules import resolve_after
from backburner.core import transitions
from backburner.core.conversation import Destination
from backburner.core.errors import Conflict
from backburner.core.ids import new_item_id
from backburner.core.run import ItemKind, NewItem, RunEnding, RunKind, RunStatus
from backburner.core.schedule import After
from backburner.ports import Claim
from backburner.store import tables
from backburner.store.db import Database
from backburner.store.dialect import version_of
from backburner.store.queue import turns
from backburner.store.tx import Tx
from backburner.store.writes import Gathered, Write

BOUND = 20


@pytest.fixture
def scene(database: Database) -> Scene:
    return Scene(database)


async def test_a_run_that_completes_takes_two_statements(emptied_postgres: Database) -> None:
    scene = Scene(emptied_postgres)
    task = scene.task(reports_to=(Destination("outside", "somebody"),))
    claim = scene.begin_work()

    with watched(emptied_postgres) as statements:
        # With the clock of the server, as in a program.
        await emptied_postgres.commit(claim.turn, lambda tx: finish(tx, claim))

    assert [_about(sql) for sql, _ in statements] == [
        "WITH locked AS",  # the time, whether it was asked to stop, and whether work follows it
        "WITH w0 AS",  # all rows, and events
    ]
    assert len(scene.history(task)) == 1
    assert [len(scene.dump()[name]) for name in ("outcomes", "messages", "notices")] == [1, 1, 1]
    assert len(scene.dump()["deliveries"]) == 1


def finish(tx: Tx, claim: Claim) -> None:
    held = tx.turns.hold(claim.turn)
    assert not tx.turns.is_cancelled(claim.turn)
    step = transitions.finish(held, claim.run, DONE, now=tx.now)
    tx.turns.commit(claim.turn, step, RunEnding(status=RunStatus.SUCCESS))
    assert tx.conversations.followers(USER, held.id) == ()


def _about(sql: str) -> str:
    return " ".join(sql.split()[: 3 if sql.startswith("WITH") else 2])


def test_items_that_a_run_served_are_not_dropped_with_those_it_did_not(scene: Scene) -> None:
    task = scene.task()
    served, left = (
        NewItem(id=new_item_id(), kind=ItemKind.EVENT, run_kind=RunKind.BACKGROUND, content={})
        for _ in range(2)
    )
    scene.run(lambda tx: tx.inbox.put(USER, task.id, [served, left]))
    claim = scene.begin_work()

    scene.finish(claim, served=[item for item in scene.items(claim) if item.id == served.id])

    rows = scene.run(lambda tx: tx.connection.execute(select(tables.inbox)).all())
    assert {row.id: row.served_by for row in rows} == {served.id: claim.run.id, left.id: None}
    assert all(row.served_at for row in rows)


def wait_for_lock(scene: Scene, work: Callable[[Tx], Any], meanwhile: Callable[[Tx], Any]) -> Any:
    """Run a transaction that begins while another one has its conversation locked."""
    locked, pids = Event(), list[int]()

    def wait(tx: Tx) -> Any:
        pids.append(tx.connection.execute(text("SELECT pg_backend_pid()")).scalar_one())
        locked.wait(BOUND)
        return work(tx)

    with ThreadPoolExecutor(1) as thread:
        waiting: Future[Any] = thread.submit(scene.database.run, wait)

        def hold_up(tx: Tx) -> Any:
            result = meanwhile(tx)
            locked.set()
            is_blocked = text("SELECT cardinality(pg_blocking_pids(:pid)) > 0")
            while not pids or not _read(scene, is_blocked.bindparams(pid=pids[0])):
                assert not waiting.done(), waiting.result()
            return result, tx.connection.execute(select(func.clock_timestamp())).scalar_one()

        (_, released_at) = scene.database.run(hold_up)
        return waiting.result(BOUND), released_at


def _read(scene: Scene, statement: Any) -> Any:
    return scene.database.run(lambda tx: tx.connection.execute(statement).scalar_one())


def hold(claim: Claim) -> Callable[[Tx], tuple[bool, datetime]]:
    def work(tx: Tx) -> tuple[bool, datetime]:
        tx.turns.hold(claim.turn)
        return tx.turns.is_cancelled(claim.turn), tx.now

    return work


def cancel(scene: Scene, claim: Claim) -> Callable[[Tx], None]:
    def work(tx: Tx) -> None:
        found = tx.conversations.lock(USER, claim.turn.conversation_id)
        tx.conversations.save(transitions.cancel(found, now=scene.clock.now))

    return work


def test_a_holder_that_waits_for_its_lock_sees_that_it_was_cancelled_meanwhile(
    postgres: Database,
) -> None:
    scene = Scene(postgres)
    scene.task()
    claim = scene.begin_work()

    (is_cancelled, now), released_at = wait_for_lock(scene, hold(claim), cancel(scene, claim))

    assert is_cancelled
    assert now > released_at


def test_work_is_not_scheduled_after_work_that_is_just_ending(postgres: Database) -> None:
    """It would never hear of that end."""
    scene = Scene(postgres)
    task = scene.task()
    claim = scene.begin_work()

    with pytest.raises(Conflict, match="has no schedule"):
        wait_for_lock(
            scene,
            lambda tx: resolve_after(tx, USER, After(task.id), conversation_id=None),
            scene.finishing(claim),
        )


def flag_by_subquery() -> Any:
    """Read with the snapshot from before the wait."""
    flag = select(tables.runs.c.cancel_requested_at.is_not(None)).where(
        tables.runs.c.id == tables.conversations.c.turn_run
    )
    version = version_of(tables.conversations).label("version")
    held = select(tables.conversations, flag.scalar_subquery().label("cancelled"), version)
    return held.where(turns._by_id, turns._is_held).with_for_update(key_share=True)


def test_a_flag_that_is_not_locked_would_be_missed(
    postgres: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "_hold_with_version", flag_by_subquery())

    with pytest.raises(AssertionError):
        test_a_holder_that_waits_for_its_lock_sees_that_it_was_cancelled_meanwhile(postgres)


def without_guard() -> Any:
    values = dict(turns._commit._values or {})
    return update(tables.conversations).where(turns._by_id).values(values)


def test_a_commit_without_its_guard_would_be_noticed(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "_commit", without_guard())

    with pytest.raises(BaseException, match=r"DID NOT RAISE|duplicate key|UNIQUE constraint"):
        a_holder_that_lost_its_turn_changes_nothing(Scene(database))


def test_changing_a_row_twice_in_one_statement_would_be_noticed(
    emptied_postgres: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Gathered.add

    def add_apart(self: Gathered, write: Write, **_: str) -> None:
        add(self, write, apart=str(id(write)))

    monkeypatch.setattr(Gathered, "add", add_apart)

    with pytest.raises(AssertionError):
        test_items_that_a_run_served_are_not_dropped_with_those_it_did_not(Scene(emptied_postgres))


def test_rows_of_a_transaction_are_changed_after_they_were_inserted(scene: Scene) -> None:
    chat = scene.chat()
    item = NewItem(id=new_item_id(), kind=ItemKind.EVENT, run_kind=RunKind.BACKGROUND, content={})

    def put_and_settle(tx: Tx) -> None:
        tx.inbox.put(USER, chat.id, [item])
        tx.inbox.settle(USER, chat.id, kind=None)
        tx.conversations.update(replace(chat, title="New"))

    scene.run(put_and_settle)

    rows = scene.run(lambda tx: tx.connection.execute(select(tables.inbox)).all())
    assert [row.served_at is None for row in rows] == [False]
    assert scene.load(chat).title == "New"
