"""What the holder of a turn may do with it, and that nobody else may."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import select

from backburner.core import transitions
from backburner.core.conversation import Status
from backburner.core.errors import Fenced
from backburner.core.outcome import Continue
from backburner.core.run import RunEnding, RunStatus
from backburner.core.schedule import Interval
from backburner.core.transitions import Step
from backburner.ports import Claim, TurnFlags
from backburner.store import tables
from backburner.store.tx import Tx
from support.stage.make import NOON
from support.stage.scene import LEASE, Scene

DAY = timedelta(days=1)
DAILY = Interval(DAY, anchor=NOON)


def a_lease_can_be_extended_until_it_has_run_out(scene: Scene) -> None:
    scene.task()
    claim = scene.begin_work()
    for _ in range(3):
        scene.clock.advance(LEASE)
        assert _renew(scene, claim) == TurnFlags(cancelled=False, user_waiting=False)
        assert scene.rescue() is None
    scene.clock.advance(LEASE + timedelta.resolution)

    assert _renew(scene, claim) is None


def leases_stand_still_while_the_machine_sleeps(scene: Scene) -> None:
    scene.task()
    claim = scene.begin_work()
    scene.clock.sleep(DAY)

    assert scene.rescue() is None
    assert _renew(scene, claim)


def a_holder_hears_that_it_is_to_stop_and_that_a_person_waits(scene: Scene) -> None:
    task = scene.task(DAILY)
    claim = scene.begin_work()
    scene.say(task)
    assert _renew(scene, claim) == TurnFlags(cancelled=False, user_waiting=True)

    scene.change(task, lambda found: transitions.cancel(found, now=NOON))

    assert _renew(scene, claim) == TurnFlags(cancelled=True, user_waiting=True)


def words_of_others_are_read_from_when_a_holder_says_so(scene: Scene) -> None:
    task = scene.task(DAILY)
    claim = scene.begin_work()
    assert not claim.conversation.outside_read
    scene.database.run(lambda tx: tx.turns.mark_outside_text(claim.turn))
    assert scene.load(task).outside_read

    scene.clock.advance(LEASE + timedelta.resolution)
    scene.rescue()
    with pytest.raises(Fenced):
        scene.database.run(lambda tx: tx.turns.mark_outside_text(claim.turn))


def an_outcome_is_applied_to_what_is_there_when_it_comes(scene: Scene) -> None:
    task = scene.task(DAILY)
    claim = scene.begin_work()
    scene.change(task, transitions.pause)
    scene.change(task, lambda found: transitions.rename(found, "New"))

    scene.finish(claim, Continue(message="Not yet.", state_update={"seen": 1}))

    found = scene.load(task)
    assert (found.status, found.title, found.state.data) == (Status.ACTIVE, "New", {"seen": 1})


def a_commit_ends_the_run_frees_the_turn_and_leaves_its_proof(scene: Scene) -> None:
    task = scene.task(DAILY)
    claim = scene.begin_work()
    assert not _is_committed(scene, claim)
    scene.clock.advance(timedelta(minutes=1))

    scene.finish(claim)

    assert _is_committed(scene, claim)
    (run,) = scene.history(task)
    assert (run.status, run.ended_at) == (RunStatus.SUCCESS, scene.clock.now)
    free = scene.run(lambda tx: tx.connection.execute(select(tables.conversations)).one())
    assert (free.turn_run, free.turn_until, free.epoch) == (None, None, claim.turn.epoch)


def a_holder_that_lost_its_turn_changes_nothing(scene: Scene) -> None:
    task = scene.task(DAILY)
    stale = scene.begin_work()
    scene.crash(stale)
    _changes_nothing(scene, stale)
    fresh = scene.begin_work()
    _changes_nothing(scene, stale)
    scene.finish(fresh)
    _changes_nothing(scene, stale)
    _changes_nothing(scene, fresh)
    scene.say(task)
    scene.begin_reply()
    _changes_nothing(scene, stale)
    _changes_nothing(scene, fresh)


def a_holder_whose_run_went_on_elsewhere_changes_nothing(scene: Scene) -> None:
    scene.task(DAILY)
    before = scene.begin_work()
    scene.hand_back(before)
    _changes_nothing(scene, before)

    assert scene.begin_work().run.id == before.run.id

    _changes_nothing(scene, before)


def a_holder_without_a_lease_may_commit_until_somebody_takes_over(scene: Scene) -> None:
    scene.task(DAILY)
    claim = scene.begin_work()
    scene.clock.advance(DAY)

    scene.finish(claim)

    assert scene.rescue() is None


def a_run_to_be_cancelled_ends_when_it_is_handed_back(scene: Scene) -> None:
    task = scene.task(DAILY)
    claim = scene.begin_work()
    scene.change(task, lambda found: transitions.cancel(found, now=NOON))

    scene.hand_back(claim)

    (run,) = scene.history(task)
    assert (run.status, run.ended_at) == (RunStatus.CANCELLED, NOON)
    scene.clock.advance(DAY)
    assert scene.claim_work() is None


def stopping_the_work_leaves_replies_alone(scene: Scene) -> None:
    task = scene.task(DAILY)
    scene.say(task)
    reply = scene.begin_reply()

    scene.change(task, lambda found: transitions.cancel(found, now=NOON))

    assert _renew(scene, reply) == TurnFlags(cancelled=False, user_waiting=True)
    scene.hand_back(reply, served=scene.items(reply))
    scene.change(task, lambda found: transitions.set_schedule(found, DAILY, now=NOON))
    scene.change(task, lambda found: transitions.cancel(found, now=NOON))
    assert scene.begin_work().run.id == reply.run.id


def _changes_nothing(scene: Scene, stale: Claim) -> None:
    before = scene.dump()
    now, step = scene.clock.now, Step(conversation=stale.conversation)
    ending = RunEnding(status=RunStatus.SUCCESS)
    attempts: tuple[Callable[[Tx], object], ...] = (
        lambda tx: tx.turns.hold(stale.turn),
        lambda tx: tx.turns.commit(stale.turn, step, ending),
        lambda tx: tx.turns.hand_back(stale.turn, step, until=now),
    )
    for attempt in attempts:
        with pytest.raises(Fenced):
            scene.run(attempt)
    assert _renew(scene, stale) is None
    assert scene.dump() == before


def leases_are_renewed_together_and_only_those_that_are_held(scene: Scene) -> None:
    for _ in range(3):
        scene.task()
    lost, *held = (scene.begin_work() for _ in range(3))
    scene.hand_back(lost)
    scene.clock.advance(LEASE)

    found = scene.run(lambda tx: tx.turns.renew([one.turn for one in (lost, *held)], lease=LEASE))

    flags = TurnFlags(cancelled=False, user_waiting=False)
    assert found == {claim.run.id: flags for claim in held}
    scene.clock.advance(LEASE)
    assert scene.rescue() is None


def _renew(scene: Scene, claim: Claim) -> TurnFlags | None:
    found = scene.run(lambda tx: tx.turns.renew([claim.turn], lease=LEASE))
    return found.get(claim.run.id)


def _is_committed(scene: Scene, claim: Claim) -> bool:
    return scene.run(lambda tx: tx.turns.is_committed(claim.turn))
