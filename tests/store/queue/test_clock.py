"""A clock that ran ahead and was corrected: what it had written does not make anything wait."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert, select, update
from support.stage.make import USER
from support.stage.scene import LEASE, Scene

from backburner.core.conversation import Destination, Notify
from backburner.core.outcome import Continue, NeedsInput
from backburner.core.question import NewQuestion, QuestionType
from backburner.core.run import Failure, FailureKind
from backburner.core.schedule import Cron, Interval, Scheduled
from backburner.store import tables
from backburner.store.db import Database
from backburner.store.types import MICROSECOND

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def scene(database: Database) -> Scene:
    return Scene(database)


def correct_times(scene: Scene, *, jumped: bool = False) -> int:
    return scene.run(
        lambda tx: tx.queue.correct_times(lease=LEASE, delivery_lease=MINUTE, jumped=jumped)
    )


def set_back(scene: Scene, by: timedelta = DAY) -> None:
    """Set the clock back, and the one of leases on."""
    scene.clock.now -= by
    scene.clock.tick += MINUTE // MICROSECOND


def one(scene: Scene, column: Any) -> Any:
    return scene.run(lambda tx: tx.connection.execute(select(column)).scalar_one())


@pytest.mark.parametrize("recurs", ["interval", "cron"])
def test_recurring_work_that_ran_ahead_goes_on_at_its_next_slot(scene: Scene, recurs: str) -> None:
    schedule = Interval(HOUR, anchor=scene.clock.now)
    task = scene.task(schedule if recurs == "interval" else Cron("0 * * * *", "UTC"))
    scene.clock.advance(DAY + MINUTE)
    scene.finish(scene.begin_work(), Continue(message=None))
    ahead = scene.load(task).next_run_at
    set_back(scene)

    assert correct_times(scene) == 1
    assert ahead
    assert scene.load(task).next_run_at == ahead - DAY
    assert correct_times(scene) == 0
    scene.clock.advance(HOUR)
    assert scene.begin_work().run.slot_at == ahead - DAY


@pytest.mark.parametrize("ends", ["before", "after"])
def test_a_run_under_way_when_the_clock_is_corrected_does_not_bring_its_times_back(
    scene: Scene, ends: str
) -> None:
    task = scene.task(Interval(HOUR, anchor=scene.clock.now))
    scene.clock.advance(DAY)
    claim = scene.begin_work()
    set_back(scene)
    if ends == "before":
        scene.finish(claim, Continue(message=None))
    correct_times(scene)
    if ends == "after":
        scene.finish(claim, Continue(message=None))

    assert scene.load(task).next_run_at == scene.clock.now + HOUR


def test_an_answer_after_the_clock_was_corrected_goes_on_at_the_next_slot(scene: Scene) -> None:
    task = scene.task(Interval(HOUR, anchor=scene.clock.now))
    scene.clock.advance(DAY)
    question = NewQuestion(type=QuestionType.INPUT, prompt="Go on?")
    scene.finish(scene.begin_work(), NeedsInput(message="Well.", question=question))
    set_back(scene)
    asked = one(scene, tables.questions.c.remind_at)
    correct_times(scene)
    assert one(scene, tables.questions.c.remind_at) == asked - DAY
    scene.answer(scene.load(task), "yes")

    next_run_at = scene.load(task).next_run_at
    assert next_run_at
    assert next_run_at <= scene.clock.now + HOUR


def test_a_retry_of_work_that_runs_once_keeps_its_delay(scene: Scene) -> None:
    scene.clock.advance(DAY)
    task = scene.task()
    later = scene.task(Scheduled(scene.clock.now + HOUR))
    scene.finish(scene.begin_work(), Failure(FailureKind.MODEL, "It is busy."))
    delay = (scene.load(task).next_run_at or scene.clock.now) - scene.clock.now
    set_back(scene)
    correct_times(scene)

    assert delay > timedelta()
    assert scene.load(task).next_run_at == scene.clock.now + delay
    # Somebody has asked for this time.
    assert scene.load(later) == later


def test_a_small_correction_repeats_no_slot(scene: Scene) -> None:
    task = scene.task(Interval(HOUR, anchor=scene.clock.now))
    scene.clock.advance(HOUR)
    scene.finish(scene.begin_work(), Continue(message=None))
    before = scene.load(task)
    set_back(scene, 2 * MINUTE)

    assert correct_times(scene, jumped=True) == 0
    assert replace(scene.load(task), settled_until=before.settled_until) == before


def test_without_a_sign_nothing_is_changed(scene: Scene) -> None:
    scene.task(Interval(HOUR, anchor=scene.clock.now + 100 * DAY), reports_to=PLACES)
    before = scene.dump()

    assert correct_times(scene) == 0
    assert scene.dump() == before


PLACES = (Destination("mail", "ann"),)


def test_users_runs_and_deliveries_wait_no_longer(scene: Scene) -> None:
    scene.clock.advance(DAY)
    scene.task(reports_to=PLACES, notify=Notify.ALWAYS)
    scene.finish(scene.begin_work())
    scene.task()
    handed_back = scene.begin_work()
    scene.hand_back(handed_back, after=MINUTE)
    scene.run(
        lambda tx: tx.connection.execute(
            update(tables.deliveries).values(not_before=scene.clock.now + MINUTE)
        )
    )
    scene.run(
        lambda tx: tx.connection.execute(
            insert(tables.attempts).values(key="login", count=1000, since=scene.clock.now)
        )
    )
    set_back(scene)
    correct_times(scene)
    now = scene.clock.now

    served = select(tables.users.c.served_at).where(tables.users.c.id == USER)
    assert scene.run(lambda tx: tx.connection.execute(served).scalar_one()) <= now
    assert scene.begin_work().run.id == handed_back.run.id
    assert scene.run(lambda tx: tx.deliveries.lease(lease=MINUTE))
    assert scene.run(lambda tx: tx.rate_limits.count(["login"], now=now)) is None


def test_a_run_that_was_to_wait_before_the_clock_ran_ahead_waits_on(scene: Scene) -> None:
    scene.task()
    scene.hand_back(scene.begin_work(), after=DAY)
    resumes_at = one(scene, tables.runs.c.wait_until)
    scene.clock.advance(2 * HOUR)
    set_back(scene, HOUR)

    correct_times(scene, jumped=True)

    assert one(scene, tables.runs.c.wait_until) == resumes_at


def test_a_lease_that_the_clock_measured_ends(scene: Scene) -> None:
    scene.task()
    claim = scene.begin_work()
    # As PostgreSQL does it, which has no other clock.
    scene.clock.tick -= DAY // MICROSECOND
    correct_times(scene, jumped=True)
    scene.crash(claim)


@pytest.mark.parametrize("began_before", [True, False])
def test_a_model_in_an_outage_is_tried_soon(scene: Scene, *, began_before: bool) -> None:
    def note(profile: str) -> None:
        failure = Failure(FailureKind.UNAVAILABLE, "It is down.")
        scene.run(lambda tx: tx.outages.note(profile, failure, probed=True))

    began = scene.clock.now
    if began_before:
        note("one")
    scene.clock.advance(DAY)
    note("one")
    set_back(scene)

    correct_times(scene, jumped=True)

    (outage,) = scene.run(lambda tx: tx.outages.all())
    assert (outage.since, outage.until) == (began, scene.clock.now)
