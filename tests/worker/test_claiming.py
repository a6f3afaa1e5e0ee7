"""What is claimed in one transaction: work of several users, one of each, within all limits."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random

import pytest
from sqlalchemy import event
from support.doubles.engine import ScriptedEngine, Wait
from support.requirements import requirement
from support.stage.make import USER
from support.stage.stage import Stage
from support.stage.until import until

from backburner.actions.origin import Origin
from backburner.actions.work import control
from backburner.bus.local import LocalBus
from backburner.core.conversation import EndedAs
from backburner.core.ids import UserId
from backburner.core.run import RunStatus
from backburner.store.db import Database
from backburner.store.tables import users
from backburner.worker.seats import Seats

HOUR = timedelta(hours=1)
PEOPLE = (USER, UserId("u_two"), UserId("u_three"))


@pytest.fixture
async def stage(database: Database) -> Stage:
    """Set up a stage with two tasks of each of three users, which never end."""
    stage = Stage(database, LocalBus(), ScriptedEngine(otherwise=lambda _request: [Wait()]))
    for user in PEOPLE:
        for _ in range(2):
            await stage.task(user=user)
    return stage


@contextmanager
def counted(stage: Stage) -> Iterator[list[object]]:
    """Count the transactions that claim something."""
    commits = list[object]()

    def note(connection: object) -> None:
        commits.append(connection)

    event.listen(stage.database.engine, "commit", note)
    try:
        yield commits
    finally:
        event.remove(stage.database.engine, "commit", note)


def served(stage: Stage) -> list[UserId]:
    return sorted(run.claim.turn.user_id for run in stage.underway)


async def test_work_of_several_users_is_claimed_in_one_transaction(stage: Stage) -> None:
    stage.claiming.batch = 3
    with counted(stage) as commits:
        assert await stage.claiming.run_once()

    assert served(stage) == sorted(PEOPLE)
    assert len(commits) == 1
    stage.kill()


async def test_work_of_one_user_is_claimed_one_after_the_other(stage: Stage) -> None:
    stage.claiming.batch = 5
    with counted(stage) as commits:
        await stage.claiming.run_once()

    assert len(stage.underway) == 5
    assert len(commits) == 2
    stage.kill()


async def test_no_more_is_claimed_at_once_than_has_seats(stage: Stage) -> None:
    stage.claiming.batch = 5
    # One of each kind of seat is kept for replies.
    stage.claiming.seats = Seats(total=5, per_profile={"scripted": 3}, default_profile="scripted")
    await stage.claiming.run_once()

    assert len(stage.underway) == 2
    stage.kill()


@requirement("C-long")
@pytest.mark.parametrize("users", [1, 3], ids=["one user", "three users"])
async def test_long_runs_never_take_the_last_seat_for_work(either: Database, users: int) -> None:
    """Whatever begins and ends, in any order: a short run that is due has a seat."""
    events = [asyncio.Event() for _ in range(60)]
    engine = ScriptedEngine(*([Wait(event)] for event in events))
    seats = Seats(total=5, per_profile={"scripted": 4}, default_profile="scripted")
    stage = Stage(either, LocalBus(), engine, seats=seats)
    order, let_go = Random(7), 0  # noqa: S311 (the same each time)
    for _ in range(40):
        timeout = order.choice([None, HOUR])
        waits = await stage.task(user=order.choice(PEOPLE[:users]), run_timeout=timeout)
        await stage.take_up()
        long = [run for run in stage.underway if run.claim.conversation.run_timeout]
        assert len(long) <= 2
        assert len(stage.underway) <= 3
        if timeout is None and len(stage.underway) < 3:
            assert stage.history(waits)
        if order.random() < 0.6 and len(stage.underway):
            ending = next(iter(stage.underway)).task
            assert ending is not None
            events[let_go].set()
            let_go += 1
            await until(ending.done)
    assert engine.most_underway == 3
    stage.kill()


async def test_while_something_else_waits_claims_are_made_one_by_one(stage: Stage) -> None:
    asked = await stage.task()
    await control.run_now(stage.deps, Origin.by_user(USER), asked.id)
    stage.claiming.batch = 3
    with counted(stage) as commits:
        await stage.claiming.run_once()

    assert len(stage.underway) == len(commits) == 3
    stage.kill()


async def test_what_cannot_be_prepared_keeps_nobody_else_waiting(database: Database) -> None:
    stage = Stage(database, LocalBus(), ScriptedEngine())
    tasks = [await stage.task(user=user) for user in PEOPLE]
    nowhere = users.update().where(users.c.id == PEOPLE[1]).values(zone="Nowhere/At_All")
    stage.database.run(lambda tx: tx.connection.execute(nowhere))

    await stage.work()

    ended = [stage.load(task).ended_as for task in tasks]
    assert (ended[0], ended[2]) == (EndedAs.COMPLETED, EndedAs.COMPLETED)
    assert [run.status for run in stage.history(tasks[1])] == [RunStatus.FAILURE]


async def test_when_all_that_was_seen_is_claimed_nobody_looks_again(database: Database) -> None:
    stage = Stage(database, LocalBus(), ScriptedEngine(otherwise=lambda _request: [Wait()]))
    await stage.say(await stage.chat(), "Hello?")
    with counted(stage) as commits:
        await stage.claiming.run_once()

    assert len(stage.underway) == len(commits) == 1
    stage.kill()


@dataclass(frozen=True, slots=True)
class ClosedStore:
    """Takes no transaction any more."""

    async def transact(self, _work: object, **_limits: object) -> None:
        raise RuntimeError("cannot schedule new futures after shutdown")


async def test_a_store_that_takes_no_transactions_is_not_asked_for_ever(stage: Stage) -> None:
    stage.claiming.batch = 3
    await stage.claiming.run_once()
    stage.claiming.deps = replace(stage.claiming.deps, store=ClosedStore())  # type: ignore[arg-type]

    with pytest.raises(RuntimeError):
        await stage.claiming.run_once()
    stage.kill()


async def test_work_that_finds_no_seat_is_looked_for_when_a_run_has_ended(
    database: Database,
) -> None:
    stage = Stage(database, LocalBus(), ScriptedEngine(otherwise=lambda _request: [Wait()]))
    stage.claiming.seats = Seats(total=1)
    await stage.task()
    may_have_more = list[bool]()
    for _ in range(2):
        await stage.claiming.run_once()
        may_have_more.append(stage.claiming.may_have_more)

    assert may_have_more == [False, True]
    stage.kill()
