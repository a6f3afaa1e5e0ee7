"""Work that should have been claimed long ago, and work that waits for a good reason."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import update
from support.stage.make import USER
from support.stage.scene import CLAIMER, Scene

from backburner.core.ids import ConversationId
from backburner.core.run import Failure, FailureKind
from backburner.core.schedule import Scheduled
from backburner.ports import Claimer
from backburner.store import tables
from backburner.store.db import Database

LONG = timedelta(seconds=30)
LATER = timedelta(minutes=2)


@pytest.fixture
def scene(database: Database) -> Scene:
    return Scene(database)


def overdue(
    scene: Scene, *, reply: Claimer | None = CLAIMER, work: Claimer | None = CLAIMER
) -> ConversationId | None:
    return scene.run(lambda tx: tx.queue.overdue(reply, work, by=LONG))


def test_work_and_replies_that_nobody_claims_are_overdue(scene: Scene) -> None:
    task = scene.task()
    assert overdue(scene) is None
    scene.clock.advance(LATER)
    assert overdue(scene) == task.id

    chat = scene.say(scene.chat())
    assert overdue(scene) == task.id
    scene.clock.advance(LATER)
    assert overdue(scene) == chat.id
    assert overdue(scene, reply=None) == task.id
    assert overdue(scene, work=None) == chat.id


def test_a_run_that_was_handed_back_is_overdue(scene: Scene) -> None:
    task = scene.task()
    scene.hand_back(scene.begin_work())
    scene.clock.advance(LATER)

    assert overdue(scene) == task.id


def pause_all(scene: Scene) -> None:
    scene.run(lambda tx: tx.users.pause_everything(None, paused=True))


def pause_user(scene: Scene) -> None:
    scene.run(lambda tx: tx.users.set_paused(USER, paused=True))


def disable_user(scene: Scene) -> None:
    disable = update(tables.users).values(disabled_at=scene.clock.now)
    scene.run(lambda tx: tx.connection.execute(disable))


def begin_outage(scene: Scene) -> None:
    failure = Failure(FailureKind.MODEL, "The model is overloaded.")
    scene.run(lambda tx: tx.outages.note("usual", failure, probed=False))


@pytest.mark.parametrize("wait", [pause_all, pause_user, disable_user, begin_outage])
def test_work_that_is_paused_or_whose_model_rests_is_not_overdue(
    scene: Scene, wait: Callable[[Scene], None]
) -> None:
    task = scene.task()
    scene.clock.advance(LATER)
    work = replace(CLAIMER, default_profile="usual")
    assert overdue(scene, work=work) == task.id

    wait(scene)

    assert overdue(scene, work=work) is None


def test_work_that_has_no_seat_is_not_overdue(scene: Scene) -> None:
    scene.task()
    scene.begin_work()
    scene.task()
    scene.clock.advance(LATER)

    assert overdue(scene)
    for limits in ({"per_user_limit": 1}, {"full_profiles": ("",)}, {"passed_over": (USER,)}):
        assert overdue(scene, work=replace(CLAIMER, **limits)) is None


def test_a_long_run_that_leaves_the_last_seat_to_others_is_not_overdue(scene: Scene) -> None:
    scene.task(run_timeout=timedelta(hours=1))
    scene.clock.advance(LATER)

    assert overdue(scene)
    for limits in ({"short_only": True}, {"short_profiles": ("",)}):
        assert overdue(scene, work=replace(CLAIMER, **limits)) is None


def test_work_under_way_and_work_of_the_future_are_not_overdue(scene: Scene) -> None:
    scene.task()
    scene.begin_work()
    scene.task(Scheduled(scene.clock.now + 2 * LATER))
    scene.clock.advance(LATER)

    assert overdue(scene) is None
