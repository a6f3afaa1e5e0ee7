"""A worker that starts removes what was deleted before it."""

from datetime import timedelta

import pytest
from sqlalchemy import select, update
from support.doubles.engine import ScriptedEngine
from support.stage.make import USER
from support.stage.stage import Stage
from support.stage.until import until
from support.stage.whole_worker import working

from backburner.actions.work import deletion
from backburner.actions.work.deletion import UNDO_TIME
from backburner.bus.local import LocalBus
from backburner.core.errors import NotFound
from backburner.store import tables
from backburner.store.db import Database


async def test_what_was_deleted_before_a_worker_began_is_removed_and_nothing_else(
    database: Database,
) -> None:
    stage = Stage(database, LocalBus(), ScriptedEngine())
    old, new, kept = [await stage.chat() for _ in range(3)]
    for chat in (old, new):
        await deletion.delete(stage.deps, USER, chat.id)
    table = tables.conversations
    long_ago = update(table).where(table.c.id == old.id)

    def let_time_pass(deleted_at: object) -> None:
        database.run(lambda tx: tx.connection.execute(long_ago.values(deleted_at=deleted_at)))

    let_time_pass(database.run(lambda tx: tx.now) - UNDO_TIME - timedelta(seconds=1))

    def stored() -> set[str]:
        return set(database.run(lambda tx: tx.connection.execute(select(table.c.id)).scalars()))

    async with working(stage):
        await until(lambda: old.id not in stored())

    assert stored() == {new.id, kept.id}
    with pytest.raises(NotFound):
        await deletion.restore(stage.deps, USER, old.id)
    assert (await deletion.restore(stage.deps, USER, new.id)).id == new.id
