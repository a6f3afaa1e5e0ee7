"""The worker as a whole: it wakes when there is something to do, keeps its seats, and drains."""

import asyncio
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from support.doubles.engine import Call, End, Say, ScriptedEngine, Wait
from support.programs.programs import Start
from support.requirements import requirement
from support.stage.stage import PLACE, Stage
from support.stage.until import until
from support.stage.whole_worker import NEVER, PACE, SEATS, working
from support.statements import watched

from backburner.actions.origin import Origin
from backburner.actions.work import control
from backburner.bus.local import LocalBus
from backburner.bus.postgres import PostgresBus
from backburner.core.conversation import Conversation, Destination, EndedAs, Notify, Status
from backburner.core.errors import MachineFailed, StoreFailed
from backburner.core.ids import UserId
from backburner.core.run import RunStatus
from backburner.core.schedule import Scheduled
from backburner.ports import Hint, Tx
from backburner.store.db import Database
from backburner.worker.seats import Seats
from backburner.worker.service import SHARED_LIMIT, Pace, Worker

T = TypeVar("T")


def make_stage(database: Database, *scripts: Any, bus: LocalBus | None = None) -> Stage:
    return Stage(database, bus or LocalBus(), ScriptedEngine(*scripts))


@requirement("A-now")
async def test_it_wakes_at_once_for_a_message_and_for_work(database: Database) -> None:
    stage = make_stage(database)
    async with working(stage):
        here = await stage.chat()
        await stage.say(here, "Hello?")
        task = await stage.task()
        await until(lambda: stage.load(task).ended_as is EndedAs.COMPLETED)
        await until(lambda: len(stage.said(here)) == 2)


async def test_it_begins_at_the_time_that_was_set(database: Database) -> None:
    stage = make_stage(database)
    async with working(stage):
        at = database.run(lambda tx: tx.now) + timedelta(milliseconds=300)
        task = await stage.task(Scheduled(at))
        await until(lambda: stage.history(task))
        late = stage.history(task)[0].started_at - at

    # Nothing polls here: it was the timer, however busy the machine is.
    assert timedelta() <= late < timedelta(seconds=10)


async def test_it_reports_that_it_runs_and_its_seats_and_takes_its_row_back(
    database: Database,
) -> None:
    stage = make_stage(database)

    def rows() -> Any:
        return database.run(lambda tx: tx.operations.workers(limit=9))

    stage.engine.then(Call("slow"))
    async with working(stage) as worker:
        await until(lambda: len(rows()) == 1)
        (row,) = rows()
        assert (row.report.name, row.report.seats) == (worker.name, SEATS.total)
        await stage.task()
        await until(lambda: stage.tools.count("slow") == 1)
        worker._kept["presence"].wake.set()
        await until(lambda: rows()[0].report.seats_used == 1)
        assert not rows()[0].report.is_draining
        stage.tools.let_go.set()

    assert rows() == []


class DeafBus(LocalBus):
    """Loses every hint."""

    def hint(self, *hints: Hint) -> None:
        del hints


@requirement("A-poll", "B-tick")
async def test_it_finds_what_a_lost_hint_was_for(database: Database) -> None:
    stage = make_stage(database, bus=DeafBus())
    async with working(stage, pace=Pace(poll=timedelta(milliseconds=100))):
        task = await stage.task()
        await until(lambda: stage.load(task).ended_as is EndedAs.COMPLETED)


#: Commits a task, and dies before it has told anybody.
DIES = """
import os, sys
from support.faults.outside import Outside
from support.stage.make import USER
from backburner.bus.local import LocalBus

class DyingBus(LocalBus):
    def hint(self, *hints):
        if hints:
            os._exit(9)

with Outside(sys.argv[1]) as outside:
    outside.database.bus = DyingBus()
    outside.task(may_send=False)
"""


@requirement("A-poll")
async def test_work_of_a_process_that_died_before_it_sent_its_hints_is_found(
    emptied_postgres: Database, start: Start
) -> None:
    url = emptied_postgres.engine.url.set(drivername="postgresql")
    server = url.render_as_string(hide_password=False)
    async with PostgresBus(server) as bus:
        stage = Stage(emptied_postgres, bus, ScriptedEngine())
        async with working(stage, pace=Pace(poll=timedelta(milliseconds=100))):
            dying = start("-c", DIES, server, command=(sys.executable,))

            assert (await asyncio.to_thread(dying.end)).code == 9
            await until(lambda: stage.notices() != [])


@requirement("A-cap", "A-spawn")
async def test_it_never_has_more_runs_than_seats_and_keeps_one_for_chat(
    database: Database,
) -> None:
    stage = make_stage(database)
    for _ in range(6):
        stage.engine.then(Call("slow"))
    tasks = [await stage.task() for _ in range(6)]
    async with working(stage, seats=Seats(total=3), pace=Pace(poll=NEVER, per_user=9)) as worker:
        await until(lambda: stage.tools.count("slow") == 2)
        here = await stage.chat()
        await stage.say(here, "Hello?")
        stage.engine._scripts.appendleft((Say("Yes?"),))
        await until(lambda: stage.said(here)[-1] == "Yes?")
        await until(lambda: len(worker.underway) == 2)
        assert stage.tools.count("slow") == 2
        stage.tools.let_go.set()
        await until(lambda: all(stage.load(task).ended_as for task in tasks))

    assert stage.engine.most_underway == 3


async def test_the_only_user_has_every_seat_until_there_is_another_account(
    database: Database,
) -> None:
    stage = make_stage(database)
    for _ in range(12):
        stage.engine.then(Call("slow"))
    pace = Pace(poll=timedelta(milliseconds=50))
    for _ in range(6):
        await stage.task()
    async with working(stage, seats=Seats(total=6), pace=pace) as worker:
        await until(lambda: stage.tools.count("slow") == 5)
        stage.user(UserId("u_new"))
        claiming = worker._claiming
        await until(lambda: claiming.claimer.per_user_limit == SHARED_LIMIT)
        stage.tools.let_go.set()
        await until(lambda: stage.tools.count("slow") == 6)
        await until(lambda: not len(worker.underway))
        stage.tools.let_go.clear()
        for _ in range(5):
            await stage.task()
        await until(lambda: len(worker.underway) == SHARED_LIMIT)
        await worker._claim_now()

        assert len(worker.underway) == SHARED_LIMIT
        stage.tools.let_go.set()


@requirement("A-starvation")
async def test_the_only_user_has_the_seats_of_every_worker(database: Database) -> None:
    stage = make_stage(database, [Call("slow")], [Call("slow")])
    pace, seat = Pace(poll=timedelta(milliseconds=50)), Seats(total=1)
    for _ in range(2):
        await stage.task()
    async with working(stage, seats=seat, pace=pace), working(stage, seats=seat, pace=pace):
        await until(lambda: stage.tools.count("slow") == 2)
        stage.tools.let_go.set()


async def test_a_limit_for_users_in_the_settings_wins_over_the_number_of_accounts(
    database: Database,
) -> None:
    stage = make_stage(database, [Call("slow")], [Call("slow")], [Call("slow")])
    pace = Pace(poll=timedelta(milliseconds=50), per_user=2)
    for _ in range(3):
        await stage.task()
    async with working(stage, seats=Seats(total=6), pace=pace) as worker:
        await until(lambda: stage.tools.count("slow") == 2)
        await worker._claim_now()

        assert len(worker.underway) == 2
        stage.tools.let_go.set()


@requirement("A-batch")
async def test_one_poll_claims_no_more_than_a_batch(database: Database) -> None:
    stage = make_stage(database)
    for _ in range(5):
        stage.engine.then(Call("slow"))
        await stage.task()
    stage.claiming.batch = 2

    there_may_be_more = await stage.claiming.run_once()

    assert there_may_be_more
    assert len(stage.underway) == 2
    stage.claiming.batch = 20
    assert not await stage.claiming.run_once()
    assert len(stage.underway) == 5
    stage.tools.let_go.set()
    await stage.idle()


async def test_nobody_looks_for_work_after_a_run_that_was_all_there_was(database: Database) -> None:
    stage = make_stage(database, [Say("Yes?")], [Say("Yes!")])
    async with working(stage) as worker:
        here = await stage.chat()
        await stage.say(here, "Hello?")
        await until(lambda: stage.said(here)[-1] == "Yes?" and not len(worker.underway))
        # The timer has seen the end of that run: it would find the next message by itself.
        await until(lambda: not worker.underway.changed.is_set())
        seen_at = asyncio.get_running_loop().time()
        await until(lambda: (worker.looked_at or 0.0) > seen_at)
        with watched(database) as statements:
            await stage.say(here, "Hello!")
            await until(lambda: stage.said(here)[-1] == "Yes!" and not len(worker.underway))
            # It has looked by now, if it looks at all.
            await worker._kept["work"].wait_until_done()

    assert len([sql for sql, _ in statements if "AS people" in sql]) == 1


async def test_a_message_interrupts_work_in_the_same_conversation(database: Database) -> None:
    stage = make_stage(database, [Say("Hm"), Wait()], [Say("Yes?")])
    async with working(stage):
        task = await stage.task()
        await until(lambda: stage.engine.requests)
        await stage.say(task, "Are you there?")
        await until(lambda: stage.load(task).ended_as is EndedAs.COMPLETED)

    assert stage.said(task) == ["Are you there?", "Yes?", "Done."]


@requirement("B-preempt", "Z-first")
async def test_work_yields_after_its_call_as_soon_as_a_message_is_sent(database: Database) -> None:
    stage = make_stage(database, [Call("slow"), Say("Never said.")], [Say("Yes?")])
    # Neither a poll nor a heartbeat brings the message to the run in time.
    async with working(stage, pace=Pace(poll=NEVER, lease=NEVER, heartbeat=NEVER)) as worker:
        task = await stage.task()
        await until(lambda: stage.tools.count("slow"))
        (run,) = worker.underway
        await stage.say(task, "Are you there?")
        await until(lambda: run.is_stopping)
        assert stage.engine.underway == len(stage.engine.requests) == 1
        stage.tools.let_go.set()
        await until(lambda: stage.load(task).ended_as is EndedAs.COMPLETED)

    assert stage.said(task) == ["Are you there?", "Yes?", "Done."]
    assert stage.tools.count("slow") == 1


@requirement("B-preempt")
async def test_work_yields_at_a_heartbeat_to_a_message_whose_hint_was_lost(
    database: Database,
) -> None:
    stage = make_stage(database, [Say("Hm"), Wait()], [Say("Yes?")], bus=DeafBus())
    beat = timedelta(milliseconds=100)
    async with working(stage, pace=Pace(poll=beat, heartbeat=beat)):
        task = await stage.task()
        await until(lambda: stage.engine.requests)
        await stage.say(task, "Are you there?")
        await until(lambda: stage.load(task).ended_as is EndedAs.COMPLETED)

    assert stage.said(task) == ["Are you there?", "Yes?", "Done."]


async def test_what_is_cancelled_stops_at_once(database: Database) -> None:
    stage = make_stage(database, [Wait()])
    async with working(stage, pace=Pace(poll=NEVER)) as worker:
        task = await stage.task()
        await until(lambda: stage.engine.requests)
        await control.cancel(stage.deps, Origin.by_user(task.user_id), task.id)
        await until(lambda: not len(worker.underway))

    assert [run.status for run in stage.history(task)] == [RunStatus.CANCELLED]


async def test_runs_hand_back_when_it_stops(database: Database) -> None:
    stage = make_stage(database, [Call("slow"), Say("Never.")], [Wait()])
    quick = Pace(poll=NEVER, drain=timedelta(milliseconds=200))
    async with working(stage, pace=quick):
        tasks = [await stage.task(), await stage.task()]
        await until(lambda: len(stage.engine.requests) == 2)

    # One was in the middle of a call, of which nobody knows what became.
    assert [run.status for task in tasks for run in stage.history(task)] == [RunStatus.QUEUED] * 2
    statuses = sorted(stage.load(task).status for task in tasks)
    assert statuses == [Status.BACKGROUND, Status.WAITING_INPUT]


async def test_what_is_told_is_sent(database: Database) -> None:
    stage = make_stage(database, [End({"complete": True, "message": "Found."})])
    async with working(stage):
        task = await stage.task(notify=Notify.ALWAYS, reports_to=(Destination(PLACE, "me"),))
        await until(lambda: stage.channel.sent)

    assert [text for _, text, _ in stage.channel.sent] == [
        f"Work: Found.\n\nTo read on: `backburner conversations {task.id}`."
    ]


async def test_a_run_whose_process_went_away_is_taken_over(database: Database) -> None:
    stage = make_stage(database, [Wait()])
    task = await stage.task()
    await stage.take_up()
    await stage.engine.began.wait()
    stage.kill()
    async with working(stage):
        # Once: the next one would take the turn from the worker that has it then.
        await stage.rescuer._rescue(all_of_them=True)
        await until(lambda: stage.load(task).ended_as is EndedAs.COMPLETED)

    assert stage.history(task)[-1].status is RunStatus.FAILURE


class Broken:
    """A store that is gone for a while."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.gone = False
        self.refused = 0

    async def transact(self, work: Callable[[Tx], T], **limits: Any) -> T:
        if self.gone:
            self.refused += 1
            raise StoreFailed
        return await self.database.transact(work, **limits)

    async def read(self, work: Callable[[Tx], T], **limits: Any) -> T:
        if self.gone:
            self.refused += 1
            raise StoreFailed
        return await self.database.read(work, **limits)

    async def commit(self, turn: Any, work: Callable[[Tx], None], *, alone: bool = False) -> None:
        if self.gone:
            self.refused += 1
            raise StoreFailed
        await self.database.commit(turn, work, alone=alone)


async def test_a_run_that_cannot_renew_its_lease_stops_by_itself(database: Database) -> None:
    stage = make_stage(database, [Wait()])
    broken = Broken(database)
    object.__setattr__(stage.deps, "store", broken)
    quick = Pace(
        poll=NEVER, lease=timedelta(milliseconds=600), heartbeat=timedelta(milliseconds=100)
    )
    async with working(stage, pace=quick) as worker:
        await stage.task()
        await until(lambda: stage.engine.underway)
        broken.gone = True
        await until(lambda: not stage.engine.underway)
        await until(lambda: not len(worker.underway))
        broken.gone = False


async def test_a_call_that_takes_several_leases_is_made_once_by_one_holder(
    database: Database,
) -> None:
    stage = make_stage(database, [Call("slow"), Say("Found.")])
    quick = Pace(
        poll=NEVER, lease=timedelta(milliseconds=600), heartbeat=timedelta(milliseconds=100)
    )
    async with working(stage, pace=quick) as worker:
        task = await stage.task()
        await until(lambda: stage.tools.count("slow"))
        (run,) = worker.underway
        taken_until = run.lease_until
        await until(lambda: run.lease_until > taken_until + 3 * quick.lease.total_seconds())
        stage.tools.let_go.set()
        await until(lambda: stage.load(task).ended_as is EndedAs.COMPLETED)

    assert stage.tools.count("slow") == 1
    assert [(run.status, run.epoch) for run in stage.history(task)] == [(RunStatus.SUCCESS, 1)]


async def test_it_goes_on_when_the_database_is_back(database: Database) -> None:
    stage = make_stage(database, [Call("slow"), Say("Found.")])
    broken = Broken(database)
    object.__setattr__(stage.deps, "store", broken)
    async with working(stage, pace=Pace(poll=timedelta(milliseconds=200))):
        task: Conversation = await stage.task()
        await until(lambda: stage.tools.count("slow"))
        broken.gone = True
        stage.tools.let_go.set()
        await until(lambda: broken.refused > 1)
        broken.gone = False
        await until(lambda: stage.load(task).ended_as is EndedAs.COMPLETED)

    assert stage.tools.count("slow") == 1
    assert [run.status for run in stage.history(task)] == [RunStatus.SUCCESS]


@requirement("Z-ask")
async def test_an_answer_lets_work_go_on_at_once(database: Database) -> None:
    asks = {
        "needs_input": True,
        "message": "Hm.",
        "question": {"type": "confirmation", "prompt": "Shall I?"},
    }
    stage = make_stage(database, [End(asks)])
    async with working(stage):
        task = await stage.task()
        await until(lambda: stage.load(task).questions)
        await stage.answer(task, "yes")
        await until(lambda: stage.load(task).ended_as is EndedAs.COMPLETED)


class FailingOnceBus(LocalBus):
    """Cannot be listened to at first."""

    def __init__(self) -> None:
        super().__init__()
        self.failed = False

    def listen(self, *kinds: Any, **whom: Any) -> Any:
        if not self.failed:
            self.failed = True
            raise RuntimeError("Nobody expects this.")
        return super().listen(*kinds, **whom)


async def test_a_part_that_fails_is_started_again(database: Database) -> None:
    stage = make_stage(database, bus=FailingOnceBus())
    async with working(stage):
        task = await stage.task()
        await until(lambda: stage.load(task).ended_as is EndedAs.COMPLETED)


async def test_a_worker_without_one_of_its_parts_ends_with_words(database: Database) -> None:
    stage = make_stage(database)
    bus = stage.database.bus
    assert bus
    worker = Worker(stage.deps, bus, seats=SEATS, pace=PACE)
    before = asyncio.all_tasks()
    running = asyncio.create_task(worker.run(asyncio.Event()))
    await asyncio.sleep(0)
    parts = [task for task in asyncio.all_tasks() - before if "_watch" in repr(task.get_coro())]
    parts[0].cancel()

    with pytest.raises(MachineFailed, match="A part of the worker was ended"):
        await asyncio.wait_for(running, 10)


async def test_a_worker_that_reads_nothing_is_not_alive(database: Database) -> None:
    stage = make_stage(database)
    async with working(stage) as worker:
        await until(lambda: worker.looked_at)

        worker.check()
        with pytest.raises(MachineFailed, match="has stood still"):
            worker.check(stalled_after=timedelta())


class FailingChore:
    """Fails whenever it is woken, until it is mended."""

    def __init__(self) -> None:
        self.failed = asyncio.Event()
        self.mended = False

    async def run_once(self) -> bool:
        if not self.mended:
            self.failed.set()
            raise StoreFailed
        return False


async def test_the_other_chores_are_woken_while_claims_fail(database: Database) -> None:
    stage = make_stage(database, [End({"complete": True, "message": "Found."})])
    claims = FailingChore()
    async with working(stage) as worker:
        worker._kept["work"].chore = claims
        await stage.task(notify=Notify.ALWAYS, reports_to=(Destination(PLACE, "me"),))
        await asyncio.wait_for(claims.failed.wait(), 10)
        await stage.work()
        await until(lambda: stage.channel.sent)
        claims.mended = True


class IdleChore:
    """Claims nothing, whatever there is."""

    async def run_once(self) -> bool:
        return False


async def test_a_worker_that_does_not_claim_what_is_due_is_not_ready(database: Database) -> None:
    stage = make_stage(database, [End({"complete": True, "message": "Found."})])
    async with working(stage) as worker:
        works, worker._kept["work"].chore = worker._kept["work"].chore, IdleChore()
        task = await stage.task()
        await worker.check_queue()
        # Once is no proof: another worker may be about to claim it.
        await worker.check_queue(overdue_by=timedelta())
        with pytest.raises(MachineFailed, match=f"does not claim {task.id}"):
            await worker.check_queue(overdue_by=timedelta())

        worker._kept["work"].chore = works
        await worker.check_queue(overdue_by=timedelta())
        await until(lambda: stage.load(task).ended_as is EndedAs.COMPLETED)


async def test_a_worker_with_a_backlog_and_no_free_seat_is_ready(database: Database) -> None:
    stage = make_stage(database, *[[Wait()] for _ in range(3)])
    async with working(stage, seats=Seats(total=2)) as worker:
        for _ in range(3):
            await stage.task()
        await until(lambda: len(worker.underway) == 1)

        await worker.check_queue(overdue_by=timedelta())


async def test_a_database_that_fails_is_no_fault_of_the_queue(database: Database) -> None:
    stage = make_stage(database)
    async with working(stage) as worker:
        await until(lambda: worker.looked_at)
        rename = "ALTER TABLE outages RENAME TO elsewhere"
        database.run(lambda tx: tx.connection.exec_driver_sql(rename))

        await worker.check_queue(overdue_by=timedelta())
