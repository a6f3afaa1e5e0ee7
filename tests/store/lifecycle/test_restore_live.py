"""Databases that change beneath workers which hold a turn: restored from a backup, or migrated."""

from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text
from support.doubles.clock import SetClock
from support.servers.postgres_tools import pg_dump, pg_restore
from support.stage.scene import Scene

from backburner.core.conversation import PauseReason
from backburner.core.errors import Fenced, StoreFailed
from backburner.store.db import Database
from backburner.store.dialect import make_engine
from backburner.store.lifecycle import backup, restore
from backburner.store.lifecycle.check import find_faults
from backburner.store.lifecycle.opening import open_database
from backburner.store.lifecycle.schema import OUR_VERSIONS, bring_up_to_date, known_revisions

#: Changes that an older version does not notice.
ADDING = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "{number}", "{before}"

def upgrade():
    op.create_table("planted", sa.Column("id", sa.Text, primary_key=True))
    for table in ("conversations", "runs", "users", "messages"):
        op.add_column(table, sa.Column("colour", sa.Text, nullable=False, server_default="red"))
"""


@pytest.mark.parametrize("begun_before", [True, False], ids=["claimed_before", "claimed_after"])
def test_a_holder_cannot_commit_into_a_database_that_was_restored(
    migrated_postgres_url: str, clock: SetClock, tmp_path: Path, *, begun_before: bool
) -> None:
    url, file = migrated_postgres_url, tmp_path / "dump"
    with closing(Database(make_engine(url), clock)) as database:
        scene = Scene(database)
        task = scene.task()
        if not begun_before:
            pg_dump(url, file)
        claim = scene.begin_work()
        if begun_before:
            pg_dump(url, file)
        pg_restore(url, file)
        # Its connections are gone; the holder itself waits for its agent.
        database.engine.dispose()
        assert backup.settle_loaded(url, clock).paused == 1
        restored = scene.load(task)
        with pytest.raises(Fenced):
            database.commit_here(claim.turn, scene.finishing(claim))

        assert scene.load(task) == restored
        assert restored.pause_reason is PauseReason.USER
        assert database.run(lambda tx: find_faults(tx.connection)) == []


@pytest.mark.parametrize("resumed", [False, True])
def test_a_holder_from_before_stays_out_after_the_work_goes_on(
    database: Database, *, resumed: bool
) -> None:
    scene = Scene(database)
    scene.task()
    claim = scene.begin_work()
    database.run(restore.settle)
    if resumed:
        task = scene.task()
        scene.finish(scene.begin_work())
        assert scene.load(task).next_run_at is None
    with pytest.raises(Fenced):
        database.commit_here(claim.turn, scene.finishing(claim))


def test_an_old_worker_goes_on_while_a_new_one_migrates_and_is_refused_at_its_next_start(
    migrated_postgres_url: str, clock: SetClock, tmp_path: Path
) -> None:
    before = known_revisions(OUR_VERSIONS)[-1]
    number = f"{int(before) + 1:04}"
    source = ADDING.format(number=number, before=before)
    (tmp_path / f"{number}_adding.py").write_text(source)
    with closing(Database(make_engine(migrated_postgres_url), clock)) as old:
        scene = Scene(old)
        work(scene, times=8)
        scene.task()
        held = scene.begin_work()
        new = make_engine(migrated_postgres_url)
        bring_up_to_date(new, versions=(*OUR_VERSIONS, tmp_path))
        new.dispose()
        scene.finish(held)
        work(scene, times=2)
        assert old.run(lambda tx: find_faults(tx.connection)) == []
        colours = text("SELECT DISTINCT colour FROM runs")
        assert old.run(lambda tx: tx.connection.execute(colours).scalars().all()) == ["red"]
    with pytest.raises(StoreFailed, match=f"revision {number}") as refused:
        open_database(migrated_postgres_url, clock)
    assert "Start the newer version" in refused.value.hint


def work(scene: Scene, *, times: int) -> None:
    """Do work, so often that the driver has prepared every statement."""
    for _ in range(times):
        scene.task()
        scene.finish(scene.begin_work())
