"""Copies of a database: made while it is in use or not, looked at, and put back."""

import shutil
import sqlite3
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from support.doubles.clock import SetClock
from support.people.files import put_file
from support.stage.make import USER
from support.stage.scene import Scene

from backburner.core.content.file import piece_count
from backburner.core.conversation import Conversation, PauseReason
from backburner.core.errors import BadRequest, Conflict, StoreFailed
from backburner.store.db import Database
from backburner.store.dialect import make_engine
from backburner.store.lifecycle import backup
from backburner.store.lifecycle.opening import look_at_database, open_database
from backburner.store.lifecycle.schema import OUR_VERSIONS, known_revisions


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'data.sqlite3'}"


@pytest.fixture
def in_use(url: str, clock: SetClock) -> Iterator[Database]:
    with closing(open_database(url, clock)) as database:
        yield database


def load(url: str, clock: SetClock, conversation: Conversation) -> Conversation:
    with closing(open_database(url, clock)) as database:
        return database.run(lambda tx: tx.conversations.load(conversation.user_id, conversation.id))


def test_a_copy_is_made_while_others_write_and_is_sound(in_use: Database, tmp_path: Path) -> None:
    scene, copy = Scene(in_use), tmp_path / "copy"
    first = scene.chat()
    for _ in range(300):
        scene.say(first, "x" * 10_000)
    with ThreadPoolExecutor(1) as threads:
        copying = threads.submit(backup.copy_in_use, in_use, copy)
        while not copying.done():
            # On a busy machine perhaps after the copy.
            scene.say(first, "y" * 10_000)
    copying.result()

    assert backup.check_copy(copy) == []
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir() if "copy" in path.name) == ["copy"]


def test_files_are_in_the_copy(in_use: Database, clock: SetClock, tmp_path: Path) -> None:
    scene, copy = Scene(in_use), tmp_path / "copy"
    chat, data = scene.chat(), bytes(range(256)) * 10_000
    digest = scene.run(lambda tx: put_file(tx, USER, chat.id, data))
    backup.copy_in_use(in_use, copy)

    with closing(open_database(f"sqlite:///{copy}", clock)) as restored:
        pieces = range(piece_count(len(data)))
        read = restored.run(lambda tx: b"".join(tx.files.piece(USER, digest, n) for n in pieces))
        assert restored.run(lambda tx: tx.files.load(USER, digest)).size == len(data)
    assert read == data


def test_what_is_committed_is_in_the_copy_and_what_came_later_is_not(
    in_use: Database, url: str, clock: SetClock, tmp_path: Path
) -> None:
    scene = Scene(in_use)
    task = scene.task()
    backup.copy_in_use(in_use, tmp_path / "copy")
    later = scene.chat()
    in_use.close()
    put = backup.put_back(url, tmp_path / "copy", clock)

    assert load(url, clock, task).pause_reason is PauseReason.USER
    assert put.what.paused == 1
    with pytest.raises(Exception, match="nothing here"):
        load(url, clock, later)
    # Nothing is lost: what was there before is beside it.
    assert put.kept
    assert load(f"sqlite:///{put.kept}", clock, later) == later


def test_a_copy_at_rest_needs_the_file_to_itself(
    in_use: Database, url: str, tmp_path: Path
) -> None:
    with pytest.raises(StoreFailed, match="has the database file"):
        backup.copy_at_rest(url, tmp_path / "copy")
    in_use.close()
    backup.copy_at_rest(url, tmp_path / "copy")

    assert backup.check_copy(tmp_path / "copy") == []


def test_nothing_is_put_back_under_a_server_that_runs(
    in_use: Database, url: str, clock: SetClock, tmp_path: Path
) -> None:
    backup.copy_in_use(in_use, tmp_path / "copy")
    with pytest.raises(StoreFailed, match="has the database file"):
        backup.put_back(url, tmp_path / "copy", clock)


def test_no_file_is_written_over(in_use: Database, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.write_text("mine")
    with pytest.raises(Conflict, match="exists already"):
        backup.copy_in_use(in_use, there)

    assert there.read_text() == "mine"
    assert not (tmp_path / "there.part").exists()


@pytest.mark.parametrize("what", ["text", "empty", "other", "alembic", "cut", "missing"])
def test_what_is_no_copy_is_refused_and_nothing_is_changed(
    in_use: Database, url: str, clock: SetClock, tmp_path: Path, what: str
) -> None:
    task = Scene(in_use).task()
    copy, wrong = tmp_path / "copy", tmp_path / "wrong"
    backup.copy_in_use(in_use, copy)
    in_use.close()
    if what == "text":
        wrong.write_text("Dear diary, " * 20)
    elif what == "empty":
        wrong.touch()
    elif what == "other":
        with closing(sqlite3.connect(wrong)) as other:
            other.execute("CREATE TABLE notes (text)")
    elif what == "alembic":
        with closing(sqlite3.connect(wrong)) as other:
            other.execute("CREATE TABLE alembic_version (version_num)")
            other.execute("CREATE TABLE users (id)")
    elif what == "cut":
        wrong.write_bytes(copy.read_bytes()[:20_000])
    with pytest.raises((BadRequest, StoreFailed)):
        backup.put_back(url, wrong, clock)

    assert load(url, clock, task) == task
    assert sorted(path.name for path in tmp_path.glob("*restoring*")) == []


def test_a_copy_of_a_newer_version_is_refused_and_one_of_an_older_version_is_migrated(
    url: str, clock: SetClock, tmp_path: Path
) -> None:
    oldest = known_revisions(OUR_VERSIONS)[0]
    (versions := tmp_path / "versions").mkdir()
    for file in OUR_VERSIONS[0].glob(f"{oldest}_*.py"):
        shutil.copy(file, versions)
    older, newer = tmp_path / "older", tmp_path / "newer"
    open_database(f"sqlite:///{older}", clock, versions=(versions,)).close()
    with closing(open_database(url, clock)) as database:
        task = Scene(database).task()
        backup.copy_in_use(database, newer)
    with closing(sqlite3.connect(newer)) as other:
        other.execute("UPDATE alembic_version SET version_num = '9999'")
        other.commit()
    with pytest.raises(StoreFailed, match="newer Backburner: its tables have revision 9999"):
        backup.put_back(url, newer, clock)
    assert load(url, clock, task) == task
    put = backup.put_back(url, older, clock)

    assert look_at_database(url).revision == known_revisions(OUR_VERSIONS)[-1]
    assert put.kept == tmp_path / "data.sqlite3.before-1"
    assert load(f"sqlite:///{put.kept}", clock, task) == task


def test_a_damaged_copy_is_found_out(in_use: Database, tmp_path: Path) -> None:
    Scene(in_use).task()
    copy = tmp_path / "copy"
    backup.copy_in_use(in_use, copy)
    with closing(sqlite3.connect(copy)) as other:
        other.execute("DELETE FROM users")
        other.commit()

    assert any("belongs to" in fault for fault in backup.check_copy(copy))


def test_a_copy_replaces_a_database_that_is_damaged(
    in_use: Database, url: str, clock: SetClock, tmp_path: Path
) -> None:
    task = Scene(in_use).task()
    backup.copy_in_use(in_use, tmp_path / "copy")
    in_use.close()
    (tmp_path / "data.sqlite3").write_bytes(b"ruined" * 1000)
    put = backup.put_back(url, tmp_path / "copy", clock)

    assert load(url, clock, task).id == task.id
    assert put.kept
    assert put.kept.read_bytes() == b"ruined" * 1000


def test_a_copy_is_put_into_an_empty_place(
    in_use: Database, clock: SetClock, tmp_path: Path
) -> None:
    task = Scene(in_use).task()
    backup.copy_in_use(in_use, tmp_path / "copy")
    elsewhere = f"sqlite:///{tmp_path / 'elsewhere.sqlite3'}"

    assert backup.put_back(elsewhere, tmp_path / "copy", clock).kept is None
    assert load(elsewhere, clock, task).id == task.id


def test_postgres_is_left_to_its_own_programs(
    migrated_postgres_url: str, postgres: Database, clock: SetClock, tmp_path: Path
) -> None:
    with pytest.raises(Conflict, match="pg_dump"):
        backup.copy_in_use(postgres, tmp_path / "copy")
    with pytest.raises(Conflict, match="pg_restore"):
        backup.put_back(migrated_postgres_url, tmp_path / "copy", clock)


def test_what_was_loaded_into_postgres_is_settled_once_nobody_else_is_there(
    migrated_postgres_url: str, clock: SetClock
) -> None:
    with closing(Database(make_engine(migrated_postgres_url), clock)) as database:
        task = Scene(database).task()
        with pytest.raises(Conflict, match=r"^1 other connection has"):
            backup.settle_loaded(migrated_postgres_url, clock)

    assert backup.settle_loaded(migrated_postgres_url, clock).paused == 1
    assert load(migrated_postgres_url, clock, task).pause_reason is PauseReason.USER


def test_connections_that_are_just_ending_keep_nobody_from_settling(
    migrated_postgres_url: str, clock: SetClock
) -> None:
    """A server ends the connections of a stopped program a moment after the program has ended."""
    with closing(Database(make_engine(migrated_postgres_url), clock)) as database:
        Scene(database).task()
        ending = threading.Timer(0.2, database.engine.dispose)
        ending.start()
        assert backup.settle_loaded(migrated_postgres_url, clock).paused == 1
        ending.join()
