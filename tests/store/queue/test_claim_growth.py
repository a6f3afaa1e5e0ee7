"""How much a claim reads: it grows with what is due, not with the users."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, text, update
from support.cases.large_data import multiply
from support.stage.make import MATE, USER
from support.stage.scene import CLAIMER, Scene
from support.statements import watched

from backburner.core.ids import UserId
from backburner.core.routing import AfterDemo, Routes
from backburner.ports import Claimer
from backburner.store import tables
from backburner.store.db import Database
from backburner.store.dialect import is_sqlite
from backburner.store.tx import Tx

#: Users with due work, of whom each has one conversation, and users with nothing.
BUSY, IDLE = 300, 3000
#: One step of SQLite's count of instructions.
INSTRUCTIONS = 20


def test_a_claim_reads_no_more_for_users_who_want_nothing(database: Database) -> None:
    scene = Scene(database)
    add_users(scene, "busy", BUSY)
    scene.task()
    owner = {"user_id": "'busy' || n"}
    scene.run(lambda tx: multiply(tx.connection, tables.conversations, USER, BUSY, **owner))
    few = effort(scene)

    # They were served least recently.
    scene.clock.sleep(-timedelta(days=1))
    add_users(scene, "idle", IDLE)
    scene.clock.sleep(timedelta(days=1))
    assert effort(scene) < 2 * few


def test_a_claim_reads_little_more_for_long_runs_that_have_to_wait(database: Database) -> None:
    scene = Scene(database)
    add_users(scene, "busy", BUSY)
    scene.task()
    short = {"user_id": "'busy' || n"}
    scene.run(lambda tx: multiply(tx.connection, tables.conversations, USER, BUSY, **short))
    usual = effort(scene)

    # Each of those users has long work, too, which has been due for longer.
    scene.clock.sleep(-timedelta(days=1))
    scene.task(user=MATE, run_timeout=timedelta(hours=1))
    long = {"user_id": "'busy' || n", "id": "'long'"}
    scene.run(lambda tx: multiply(tx.connection, tables.conversations, MATE, BUSY, **long))
    scene.clock.sleep(timedelta(days=1))
    assert effort(scene, replace(CLAIMER, short_only=True)) < 3 * usual


@pytest.mark.parametrize(
    ("rows", "full", "short"),
    [
        ({"profile": "local"}, ("remote",), ()),
        ({"profile": "demo"}, ("other",), ("remote",)),
        ({"profile": "remote", "work_profile": "local"}, ("remote",), ("remote",)),
    ],
    ids=["another model", "from the demo", "asked for"],
)
def test_a_claim_reads_little_more_to_count_seats_by_the_profile_of_the_next_run(
    database: Database, rows: dict[str, str], full: tuple[str, ...], short: tuple[str, ...]
) -> None:
    scene = Scene(database)
    add_users(scene, "busy", BUSY)
    scene.task()
    owner = {"user_id": "'busy' || n"}
    scene.run(lambda tx: multiply(tx.connection, tables.conversations, USER, BUSY, **owner))
    usual = effort(scene)

    scene.run(lambda tx: tx.connection.execute(update(tables.conversations), rows))
    routes = Routes(names=("remote", "demo"), chat="remote")
    after_demo = AfterDemo(demos=frozenset({"demo"}), routes=routes)
    claimer = replace(CLAIMER, full_profiles=full, short_profiles=short, after_demo=after_demo)
    assert effort(scene, claimer) < 2 * usual


@pytest.mark.parametrize("waits_for", ["a reply", "a queued run"])
def test_users_whose_work_has_to_wait_are_not_tried_one_by_one(
    database: Database, waits_for: str
) -> None:
    scene = Scene(database)
    for number in range(5):
        task = scene.task(user=UserId(f"u_{number}"))
        if waits_for == "a reply":
            scene.say(task)
        else:
            # It has a slot that is due, and goes on later.
            scene.hand_back(scene.begin_work(), after=timedelta(hours=1))
    scene.clock.advance(timedelta(minutes=1))
    free = scene.task(user=MATE)

    with watched(scene.database) as seen:
        assert scene.begin_work().conversation.id == free.id

    choices = [sql for sql, _ in seen if sql.startswith("SELECT users.id")]
    assert len(choices) == 1


def add_users(scene: Scene, name: str, count: int) -> None:
    now = scene.clock.now
    rows = [
        {"id": f"{name}{number}", "served_at": now, "created_at": now}
        for number in range(1, count + 1)
    ]
    scene.run(lambda tx: tx.connection.execute(tables.users.insert(), rows))


def effort(scene: Scene, claimer: Claimer = CLAIMER) -> int:
    """Count what a claim reads: instructions of SQLite, or pages of PostgreSQL."""
    if is_sqlite(scene.database.engine):
        return scene.run(lambda tx: _count_instructions(tx, claimer))
    scene.run(lambda tx: tx.connection.execute(text("ANALYZE")))
    with watched(scene.database) as seen:
        scene.run(lambda tx: _claim(tx, claimer))
    selects = [(sql, values) for sql, values in seen if sql.startswith("SELECT")]
    return scene.run(lambda tx: sum(_count_pages(tx.connection, *each) for each in selects))


def _claim(tx: Tx, claimer: Claimer) -> None:
    assert tx.queue.claim_work(claimer)


def _count_instructions(tx: Tx, claimer: Claimer) -> int:
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    driver: Any = tx.connection.connection.driver_connection
    driver.set_progress_handler(count, INSTRUCTIONS)
    _claim(tx, claimer)
    driver.set_progress_handler(None, 0)
    return steps


def _count_pages(connection: Connection, sql: str, values: Any) -> int:
    explained = connection.exec_driver_sql(
        f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", values
    ).scalar_one()
    (found,) = json.loads(explained) if isinstance(explained, str) else explained
    return int(found["Plan"]["Shared Hit Blocks"] + found["Plan"]["Shared Read Blocks"])
