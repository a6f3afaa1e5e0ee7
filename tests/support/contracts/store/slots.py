"""Every slot ends as a run, or in a skipped row with the reason; a gap is one row."""

from datetime import timedelta
from functools import partial

from backburner.core import transitions
from backburner.core.conversation import Conversation, Status
from backburner.core.ids import UserId
from backburner.core.outcome import Continue
from backburner.core.run import (
    Failure,
    FailureKind,
    RunStatus,
    SkippedSlots,
    SkipReason,
    StartedBy,
)
from backburner.core.schedule import CatchUp, Cron, Gap, Interval, Scheduled
from backburner.ports import Claim, Tx
from support.contracts.store.claiming import HOUR, HOURLY, QUESTION
from support.stage.make import NOON, USER
from support.stage.scene import Scene

SKIPPING = Interval(HOUR, anchor=NOON, catch_up=CatchUp.SKIP)


def slots_that_nobody_served_are_one_row_and_the_newest_is_run(scene: Scene) -> None:
    task = scene.task(HOURLY)
    scene.clock.advance(3.5 * HOUR)

    claim = scene.begin_work()

    assert claim.run.slot_at == NOON + 3 * HOUR
    missed = SkippedSlots(Gap(3, NOON, NOON + 2 * HOUR), SkipReason.MISSED)
    assert _skipped(scene, task) == [missed]
    scene.finish(claim)
    assert scene.load(task).next_run_at == NOON + 4 * HOUR


def slots_that_came_during_a_run_are_one_row(scene: Scene) -> None:
    task = scene.task(HOURLY)
    claim = scene.begin_work()
    scene.clock.advance(2.5 * HOUR)
    scene.finish(claim)

    passed = SkippedSlots(Gap(2, NOON + HOUR, NOON + 2 * HOUR), SkipReason.STILL_RUNNING)
    assert _skipped(scene, task) == [passed]
    assert scene.load(task).next_run_at == NOON + 3 * HOUR


def slots_that_came_behind_a_question_are_one_row(scene: Scene) -> None:
    task = scene.task(HOURLY)
    scene.finish(scene.begin_work(), QUESTION)
    scene.clock.advance(2 * HOUR)
    assert scene.claim_work() is None

    scene.answer(task, "this one")

    passed = SkippedSlots(Gap(2, NOON + HOUR, NOON + 2 * HOUR), SkipReason.WAITING)
    assert _skipped(scene, task) == [passed]
    assert scene.begin_work().run.slot_at is None


def a_slot_is_missed_once_however_often_its_run_crashes(scene: Scene) -> None:
    task = scene.task(HOURLY)
    scene.clock.advance(2 * HOUR)
    scene.crash(scene.begin_work())

    claim = scene.begin_work()
    scene.finish(claim)

    assert claim.run.slot_at is None
    missed = SkippedSlots(Gap(2, NOON, NOON + HOUR), SkipReason.MISSED)
    assert _skipped(scene, task) == [missed]


def a_run_that_was_handed_back_stays_the_run_of_its_slot(scene: Scene) -> None:
    task = scene.task(HOURLY)
    scene.hand_back(scene.begin_work())
    scene.clock.advance(HOUR)

    claim = scene.begin_work()
    scene.finish(claim)

    assert claim.run.slot_at == NOON
    passed = SkippedSlots(Gap(1, NOON + HOUR, NOON + HOUR), SkipReason.STILL_RUNNING)
    assert _skipped(scene, task) == [passed]


def what_is_not_to_be_caught_up_with_is_skipped(scene: Scene) -> None:
    task = scene.task(SKIPPING)
    scene.clock.advance(3.5 * HOUR)

    assert scene.claim_work() is None

    missed = SkippedSlots(Gap(4, NOON, NOON + 3 * HOUR), SkipReason.MISSED)
    assert _skipped(scene, task) == [missed]
    found = scene.load(task)
    assert (found.status, found.next_run_at) == (Status.BACKGROUND, NOON + 4 * HOUR)
    assert scene.claim_work() is None
    assert len(scene.history(task)) == 1
    scene.clock.advance(HOUR / 2)
    assert scene.begin_work().run.slot_at == NOON + 4 * HOUR


def missed_slots_of_others_do_not_hide_work(scene: Scene) -> None:
    missed = [scene.task(SKIPPING) for _ in range(30)]
    work = scene.task(Scheduled(NOON + HOUR))
    scene.clock.advance(3.5 * HOUR)

    assert scene.begin_work().conversation.id == work.id

    assert [len(_skipped(scene, task)) for task in missed] == [1] * len(missed)


def a_gap_too_long_to_be_counted_says_so(scene: Scene) -> None:
    minute = timedelta(minutes=1)
    task = scene.task(Cron("* * * * *", "UTC"))
    scene.clock.advance(timedelta(days=2))

    scene.begin_work()

    gap = Gap(1000, NOON + minute, scene.clock.now - minute, or_more=True)
    assert _skipped(scene, task) == [SkippedSlots(gap, SkipReason.MISSED)]


def slots_of_paused_work_are_nobodys(scene: Scene) -> None:
    task = scene.task(HOURLY)
    scene.finish(scene.begin_work())
    scene.change(task, transitions.pause)
    scene.clock.advance(3.5 * HOUR)
    assert scene.claim_work() is None

    scene.change(task, lambda found: transitions.resume(found, now=scene.clock.now))

    assert _skipped(scene, task) == []
    assert scene.load(task).next_run_at == NOON + 4 * HOUR


def slots_that_came_while_everything_was_paused_say_so(scene: Scene) -> None:
    task = scene.task(HOURLY)
    for user in (USER, None):
        before = scene.clock.now
        scene.run(partial(_pause, user, paused=True))
        scene.clock.advance(3 * HOUR)
        scene.run(partial(_pause, user, paused=False))

        scene.finish(scene.begin_work())

        gap = Gap(3, before, before + 2 * HOUR)
        assert _skipped(scene, task)[0] == SkippedSlots(gap, SkipReason.PAUSED)
        scene.clock.advance(HOUR)

    scene.clock.advance(2 * HOUR)
    scene.begin_work()
    gap = Gap(2, scene.clock.now - 2 * HOUR, scene.clock.now - HOUR)
    assert _skipped(scene, task)[0] == SkippedSlots(gap, SkipReason.MISSED)


def _pause(user: UserId | None, tx: Tx, *, paused: bool) -> None:
    tx.users.pause_everything(user, paused=paused)


def _skipped(scene: Scene, task: Conversation) -> list[SkippedSlots | None]:
    runs = scene.history(task)
    return [run.skipped for run in runs if run.status is RunStatus.SKIPPED]


def a_run_says_what_started_it(scene: Scene) -> None:
    scene.say(scene.chat())
    reply = scene.begin_reply()
    assert _started_by(scene, reply) is StartedBy.MESSAGE

    task = scene.task()
    claim = scene.begin_work()
    assert _started_by(scene, claim) is StartedBy.START
    scene.finish(claim, Failure(FailureKind.ENGINE, "It broke."))
    claim = _work_later(scene)
    assert _started_by(scene, claim) is StartedBy.RETRY
    scene.finish(claim, Continue(message="So far."))
    claim = _work_later(scene)
    assert _started_by(scene, claim) is StartedBy.CONTINUATION
    scene.finish(claim, QUESTION)
    scene.answer(task, "this one")
    claim = scene.begin_work()
    assert _started_by(scene, claim) is StartedBy.ANSWER
    scene.finish(claim, served=scene.items(claim))

    recurring = scene.task(Interval(HOUR, anchor=scene.clock.now))
    claim = scene.begin_work()
    assert _started_by(scene, claim) is StartedBy.SCHEDULE
    scene.finish(claim)
    scene.change(recurring, transitions.run_now)
    claim = scene.begin_work()
    assert _started_by(scene, claim) is StartedBy.RUN_NOW
    scene.hand_back(claim)
    assert _started_by(scene, scene.begin_work()) is StartedBy.RUN_NOW


def _work_later(scene: Scene) -> Claim:
    scene.clock.advance(HOUR)
    return scene.begin_work()


def skipped_slots_were_started_by_nothing(scene: Scene) -> None:
    task = scene.task(HOURLY)
    scene.clock.advance(1.5 * HOUR)
    scene.begin_work()

    (skipped,) = [run for run in scene.history(task) if run.status is RunStatus.SKIPPED]
    assert skipped.started_by is None


def _started_by(scene: Scene, claim: Claim) -> StartedBy | None:
    (stored,) = [run for run in scene.history(claim.conversation) if run.id == claim.run.id]
    assert stored.started_by is claim.run.started_by
    return stored.started_by
