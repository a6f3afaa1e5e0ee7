"""Those who claim at the same time: real processes on PostgreSQL, threads on SQLite."""

import asyncio
import json
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import delete, func, select, text
from support.programs.programs import PYTHON, Running, Start
from support.requirements import requirement
from support.stage.make import MATE, USER
from support.stage.scene import CLAIMER, Scene

from backburner.core.errors import StoreBusy
from backburner.core.ids import UserId
from backburner.ports import Claim
from backburner.store import tables
from backburner.store.db import Database
from backburner.store.tx import Tx

RACERS = 4
USERS, EACH = 40, 20


class Racer:
    def __init__(self, running: Running) -> None:
        self.running = running

    def tell(self, what: str) -> None:
        self.running.write_line(what)

    def hear(self) -> Any:
        return json.loads(self.running.read_line())

    def do(self, what: str) -> Any:
        self.tell(what)
        return self.hear()


StartRacer = Callable[[], Racer]


@pytest.fixture
def start_racer(start: Start, migrated_postgres_url: str) -> StartRacer:
    """Give what starts a racer whose leases last two seconds."""
    command = (*PYTHON, "support.programs.racers")
    return lambda: Racer(start(migrated_postgres_url, "2", command=command))


#: By the clock of a real database whatever is due on the set one is due long since.
LONG_AGO = -timedelta(days=1000)


def fill(scene: Scene) -> None:
    """Give some users many conversations that are due."""
    scene.clock.sleep(LONG_AGO)
    for number in range(USERS):
        scene.clock.sleep(timedelta(seconds=1))
        scene.user(UserId(f"u_{number}"))
    scene.crowd(scene.task(), each=EACH)
    scene.run(
        lambda tx: tx.connection.execute(delete(tables.users).where(tables.users.c.id == USER))
    )


def assert_each_claimed_once(scene: Scene) -> None:
    epochs = select(tables.conversations.c.epoch, func.count()).group_by(
        tables.conversations.c.epoch
    )
    running = select(func.count()).select_from(tables.runs).where(tables.is_running)
    found = scene.run(lambda tx: tx.connection.execute(epochs).all())
    assert [tuple(row) for row in found] == [(1, USERS * EACH)]
    assert scene.run(lambda tx: tx.connection.execute(running).scalar_one()) == USERS * EACH


@requirement("A-ready")
def test_processes_that_race_for_many_conversations_claim_each_once(
    postgres: Database, start_racer: StartRacer
) -> None:
    scene = Scene(postgres)
    fill(scene)
    racers = [start_racer() for _ in range(RACERS)]
    for racer in racers:
        racer.tell("connect")
    for racer in racers:
        racer.hear()

    for racer in racers:
        racer.tell("claim_all")
    claimed = [racer.hear() for racer in racers]

    assert sum(claimed) == USERS * EACH
    assert min(claimed) > 0
    assert_each_claimed_once(scene)


@requirement("A-ready")
def test_threads_that_race_for_many_conversations_claim_each_once(
    sqlite: Database,
) -> None:
    with closing(sqlite.engine.raw_connection()) as connection:
        connection.cursor().execute("PRAGMA synchronous = OFF")
    scene = Scene(sqlite)
    fill(scene)

    def claim_all(_: int) -> int:
        count = 0
        while scene.claim_work(cap=USERS * EACH):
            count += 1
        return count

    with ThreadPoolExecutor(RACERS) as racers:
        claimed = sum(racers.map(claim_all, range(RACERS)))

    assert claimed == USERS * EACH
    assert_each_claimed_once(scene)


@requirement("A-ready")
def test_a_holder_that_was_stopped_past_its_lease_comes_back_and_changes_nothing(
    postgres: Database, start_racer: StartRacer
) -> None:
    scene = Scene(postgres)
    scene.clock.sleep(LONG_AGO)
    task = scene.task()
    stalled, other = start_racer(), start_racer()
    assert stalled.do("claim") == 1
    assert stalled.do("renew") == "renewed"
    stalled.running.freeze()
    assert other.do("take_over") == 3
    before = scene.dump()

    stalled.running.process.send_signal(signal.SIGCONT)

    assert stalled.do("renew") == "fenced"
    assert stalled.do("commit") == "fenced"
    assert scene.dump() == before
    assert other.do("commit") == "committed"
    assert [run.epoch for run in scene.history(task)] == [3, 1]


@contextmanager
def opened(scene: Scene) -> Iterator[Tx]:
    """Keep a transaction open, at the time of the scene."""
    with scene.database.engine.begin() as connection:
        tx = Tx(connection, scene.clock)
        tx.set_time(*scene.clock())
        yield tx


def test_those_who_claim_at_the_same_time_serve_different_users(postgres: Database) -> None:
    scene = Scene(postgres)
    for _ in range(2):
        scene.task()
    scene.clock.advance(timedelta(seconds=1))
    scene.task(user=MATE)

    with opened(scene) as tx:
        first = tx.queue.claim_work(CLAIMER)
        second = scene.begin_work()

    assert first
    assert (first.turn.user_id, second.turn.user_id) == (USER, MATE)


def test_whoever_finds_only_a_user_who_is_being_served_waits_for_what_is_left(
    postgres: Database,
) -> None:
    scene = Scene(postgres)
    tasks = {scene.task().id, scene.task().id}

    with ThreadPoolExecutor(1) as other:
        with opened(scene) as tx:
            first = tx.queue.claim_work(CLAIMER)
            waiting = other.submit(scene.begin_work)
            wait_until_blocked(scene)
        second = waiting.result()

    assert first
    assert {first.conversation.id, second.conversation.id} == tasks


def wait_until_blocked(scene: Scene) -> None:
    """Wait until somebody waits for a lock; the time limit of the test is the bound."""
    blocked = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    while not scene.run(lambda tx: tx.connection.execute(blocked).scalar_one()):
        pass


def test_a_conversation_that_somebody_is_changing_holds_up_no_other(postgres: Database) -> None:
    scene = Scene(postgres)
    changing, behind = scene.task(), scene.task()
    others = [scene.task(user=MATE), scene.task(user=MATE)]
    claimed = []

    with opened(scene) as tx:
        tx.conversations.lock(USER, changing.id)
        for _ in range(3):
            scene.clock.advance(timedelta(seconds=1))
            claimed.append(scene.begin_work().conversation.id)
        assert scene.claim_work() is None

    assert sorted(claimed) == sorted(task.id for task in (behind, *others))
    assert scene.begin_work().conversation.id == changing.id


@contextmanager
def locked(scene: Scene, table: str, row: str) -> Iterator[None]:
    """Lock a row as strongly as can be, as somebody with a database client may."""
    with scene.database.engine.begin() as holder:
        lock = f"SELECT 1 FROM {table} WHERE id = :id FOR UPDATE"  # noqa: S608 (a constant)
        holder.execute(text(lock), {"id": row})
        yield


async def claim(scene: Scene) -> Claim | None:
    """Claim in much less time than others may hold a lock."""
    work = scene.timed(lambda tx: next(iter(tx.queue.claim(CLAIMER, CLAIMER)), None))
    return await asyncio.wait_for(scene.database.transact(work), 5)


async def test_a_user_who_is_locked_holds_up_nobody(postgres: Database) -> None:
    scene = Scene(postgres)
    scene.clock.sleep(LONG_AGO)
    first, task, chat = scene.chat(), scene.task(), scene.chat(MATE)
    scene.say(first)
    scene.clock.sleep(timedelta(seconds=1))
    scene.say(chat)

    with locked(scene, "users", USER):
        found = await claim(scene)
        assert found
        assert found.conversation.id == chat.id
        with pytest.raises(StoreBusy):
            await claim(scene)

    claimed = {found.conversation.id for _ in range(2) if (found := await claim(scene))}
    assert claimed == {first.id, task.id}


def test_leases_of_locked_conversations_hold_up_no_other(postgres: Database) -> None:
    scene = Scene(postgres)
    scene.task()
    scene.task()
    stuck, free = scene.begin_work(), scene.begin_work()
    turns = [stuck.turn, free.turn]

    with locked(scene, "conversations", stuck.conversation.id):
        renewed = scene.run(lambda tx: tx.turns.renew(turns, lease=CLAIMER.lease))
    assert {run: flags.renewed for run, flags in renewed.items()} == {
        stuck.run.id: False,
        free.run.id: True,
    }
