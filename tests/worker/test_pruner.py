"""What is removed once it is old."""

from datetime import timedelta

from support.doubles.clock import SetClock
from support.doubles.engine import Say
from support.requirements import requirement
from support.stage.make import NOON
from support.stage.stage import Stage
from support.stage.stages import clock, database, set_up, stage

from backburner.core.schedule import Interval
from backburner.worker.pruner import Pruner

__all__ = ["clock", "database", "set_up", "stage"]

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
EVERY_MINUTE = Interval(MINUTE, anchor=NOON)


@requirement("B-compact")
async def test_old_runs_are_removed_but_for_the_last(stage: Stage, clock: SetClock) -> None:
    task = await stage.task(EVERY_MINUTE)
    for _ in range(3):
        await stage.work()
        clock.advance(MINUTE)
    await stage.say(task, "Hello?")
    stage.engine.then(Say("Yes?"))
    await stage.work()
    clock.advance(31 * DAY)

    assert not await Pruner(stage.deps, keep=30 * DAY).run_once()

    (last,) = stage.history(task)
    assert last.slot_at == NOON + 3 * MINUTE
    assert stage.load(task).run_count == 4
    assert stage.said(task)[-1] == "Done."
