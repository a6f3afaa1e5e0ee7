"""What is removed once it is old."""

from datetime import timedelta
from functools import partial

from support.doubles.clock import SetClock
from support.doubles.engine import Say
from support.people.files import put_file
from support.requirements import requirement
from support.stage.make import NOON, USER
from support.stage.stage import Stage
from support.stage.stages import clock, database, set_up, stage

from backburner.actions.work import files
from backburner.core.content.file import FileLimits, FileOrigin
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


async def test_a_file_that_nothing_came_to_name_is_removed_after_a_day(
    stage: Stage, clock: SetClock
) -> None:
    chat = await stage.chat()
    used = stage.database.run(partial(put_file, user=USER, place=chat.id, data=b"used"))
    lost = await files.store_file(
        stage.deps.store,
        USER,
        b"lost",
        media_type="text/plain",
        name="",
        origin=FileOrigin(chat.id),
        limits=FileLimits(),
    )
    for days, left in ((0.9, 8), (0.2, 4)):
        clock.advance(days * DAY)
        assert not await Pruner(stage.deps, keep=30 * DAY).run_once()
        assert stage.database.run(lambda tx: tx.files.total_size(USER)) == left

    assert await files.load_bytes(stage.deps.store, USER, used) == b"used"
    assert await files.load_bytes(stage.deps.store, USER, lost.digest) is None
