"""`backburner db`: backups made while the server runs, restored, and checked."""

import fcntl
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from sqlalchemy import update
from support.people.a_token import TOKEN, put_token
from support.people.users import add_user
from support.programs.programs import Ended, Start
from support.servers.postgres_tools import pg_dump, pg_restore
from support.stage.make import USER
from support.stage.scene import Scene

from backburner.app.clock import Clock
from backburner.core import transitions
from backburner.core.conversation import Conversation, PauseReason
from backburner.core.errors import NotFound
from backburner.core.ids import new_conversation_id
from backburner.core.schedule import Interval
from backburner.core.transitions import Brief
from backburner.store import tables
from backburner.store.db import Database
from backburner.store.dialect import make_engine
from backburner.store.lifecycle.opening import open_database
from backburner.store.tx import Tx

Call = Callable[..., Ended]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Make a data folder."""
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


def url(data: Path) -> str:
    return f"sqlite:///{data / 'backburner.sqlite3'}"


@pytest.fixture
def task(data: Path) -> Conversation:
    def work(tx: Tx) -> Conversation:
        add_user(tx, USER, name="Ann")
        tx.connection.execute(update(tables.users).values(role="operator"))
        put_token(tx.connection, USER)
        schedule = Interval(timedelta(days=1), anchor=tx.now + timedelta(hours=1))
        brief = Brief(title="Work", prompt="Do it.", schedule=schedule)
        step = transitions.start_task(new_conversation_id(), USER, brief, now=tx.now)
        tx.conversations.add(step)
        return step.conversation

    with closing(open_database(url(data), Clock().read)) as database:
        return database.run(work)


def load(data: Path, task: Conversation) -> Conversation:
    with closing(open_database(url(data), Clock().read)) as database:
        return database.run(lambda tx: tx.conversations.load(USER, task.id))


def test_a_backup_is_made_while_the_server_runs_and_restored_once_it_has_stopped(
    call: Call, start: Start, data: Path, task: Conversation, tmp_path: Path
) -> None:
    file, options = tmp_path / "backup", ("--data", str(data))
    running = start("up", "--port", "0", *options)
    address = running.wait_until_ready()
    client = data / "client.toml"
    client.touch(mode=0o600)
    client.write_text(f'address = "{address}"\ntoken = "{TOKEN}"\n')
    made = call("db", "backup", str(file), *options)
    refused = call("db", "restore", str(file), *options)
    checked = call("db", "check", *options)
    running.end(signal.SIGTERM)
    restored = call("db", "restore", str(file), *options)

    assert made.code == 0, made.err
    assert call("db", "check", str(file)).out == ["No errors found."]
    assert refused.code == 1
    assert "only one process may" in refused.err[0]
    assert checked.code == 1
    assert restored.code == 0, restored.err
    assert restored.out[0].startswith("Restored. Paused conversations: 1.")
    assert load(data, task).pause_reason is PauseReason.USER


def test_a_restore_ends_all_sessions_and_tokens(
    call: Call, start: Start, data: Path, task: Conversation, tmp_path: Path
) -> None:
    del task
    options = ("--data", str(data))
    assert call("db", "backup", str(tmp_path / "backup"), *options).code == 0
    assert call("db", "restore", str(tmp_path / "backup"), *options).code == 0
    address = start("up", "--port", "0", *options).wait_until_ready()
    request = Request(f"{address}/api/me", headers={"authorization": f"Bearer {TOKEN}"})  # noqa: S310
    with pytest.raises(OSError, match="401"), urlopen(request, timeout=10):  # noqa: S310
        pass


def test_a_backup_without_a_server_changes_nothing_and_replaces_no_file(
    call: Call, data: Path, task: Conversation, tmp_path: Path
) -> None:
    ended = call("db", "backup", str(tmp_path / "backup"), "--data", str(data))
    again = call("db", "backup", str(tmp_path / "backup"), "--data", str(data))

    assert ended.code == 0
    assert again.code == 4
    assert load(data, task) == task


def test_there_is_nothing_to_check_without_a_database(call: Call, tmp_path: Path) -> None:
    missing = call("db", "check", "--data", str(tmp_path / "elsewhere"))

    assert (missing.code, missing.out) == (2, [])
    assert f"There is no database at {tmp_path / 'elsewhere'}" in missing.err[0]
    assert not (tmp_path / "elsewhere").exists()


def test_check_names_the_errors(call: Call, data: Path, task: Conversation) -> None:
    del task
    well = call("db", "check", "--data", str(data))
    with closing(sqlite3.connect(data / "backburner.sqlite3")) as other:
        other.execute("DELETE FROM users")
        other.commit()
    wrong = call("db", "check", "--data", str(data))

    assert (well.code, well.out) == (0, ["No errors found."])
    assert wrong.code == 1
    assert "belongs to" in wrong.err[0]


def test_migrate_prints_the_revision(call: Call, data: Path) -> None:
    ended = call("db", "migrate", "--data", str(data))

    assert ended.code == 0
    assert ended.out[0].startswith("The database is at revision ")


@pytest.mark.parametrize("arguments", [["restore"], ["restore", "x", "--loaded"], ["backup"]])
def test_missing_or_contradicting_arguments_are_refused(
    call: Call, data: Path, arguments: list[str]
) -> None:
    assert call("db", *arguments, "--data", str(data)).code == 2


def test_with_postgres_the_errors_name_pg_dump_and_pg_restore(
    call: Call, migrated_postgres_url: str, data: Path, tmp_path: Path
) -> None:
    options = ("--data", str(data), "--database-url", migrated_postgres_url)
    backup = call("db", "backup", str(tmp_path / "backup"), *options)
    restore = call("db", "restore", str(tmp_path / "backup"), *options)
    loaded = call("db", "restore", "--loaded", *options)

    assert (backup.code, restore.code, loaded.code) == (4, 4, 0)
    assert "pg_dump" in backup.err[0]
    assert "pg_restore" in restore.err[0]
    assert "--loaded" in restore.err[0]
    assert call("db", "check", *options).out == ["No errors found."]


def test_a_postgres_is_dumped_loaded_and_settled(
    call: Call, migrated_postgres_url: str, data: Path, tmp_path: Path
) -> None:
    dump = tmp_path / "dump"
    options = ("--data", str(data), "--database-url", migrated_postgres_url)
    with closing(Database(make_engine(migrated_postgres_url), Clock().read)) as database:
        scene = Scene(database)
        kept = scene.task(Interval(timedelta(days=1), anchor=scene.clock.now))
        pg_dump(migrated_postgres_url, dump)
        lost = scene.chat()
    pg_restore(migrated_postgres_url, dump)
    settled = call("db", "restore", "--loaded", *options)

    assert settled.code == 0, settled.err
    assert settled.out[0].startswith("Restored. Paused conversations: 1.")
    assert call("db", "check", *options).out == ["No errors found."]
    with closing(open_database(migrated_postgres_url, Clock().read)) as database:
        scene = Scene(database)
        assert scene.load(kept).pause_reason is PauseReason.USER
        with pytest.raises(NotFound):
            scene.load(lost)


def test_what_was_loaded_is_settled_and_checked_without_the_pooler(
    call: Call, migrated_postgres_url: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_DATABASE_DIRECT_URL", migrated_postgres_url)
    nowhere = "postgresql://postgres@127.0.0.1:1/nowhere"

    options = ("--data", str(data), "--database-url", nowhere)
    assert call("db", "restore", "--loaded", *options).code == 0
    assert call("db", "check", *options).code == 0


def test_no_command_takes_a_set_aside_database_for_an_empty_place(
    call: Call, data: Path, task: Conversation, tmp_path: Path
) -> None:
    options = ("--data", str(data))
    assert call("db", "backup", str(tmp_path / "backup"), *options).code == 0
    (data / "backburner.sqlite3").rename(data / "backburner.sqlite3.before-1")
    for command in (("db", "check"), ("db", "migrate"), ("up", "--port", "0")):
        refused = call(*command, *options)
        assert refused.code == 1
        assert "backburner.sqlite3.before-1" in refused.err[0]
    assert call("db", "restore", str(tmp_path / "backup"), *options).code == 0

    assert load(data, task).pause_reason is PauseReason.USER


def test_a_start_removes_what_a_killed_backup_left_and_nothing_that_is_in_use(
    start: Start, data: Path
) -> None:
    left, busy = data / ".backup.aaaaaaaa.part", data / ".backup.bbbbbbbb.part"
    for file in (left, busy):
        file.write_bytes(b"half of all conversations")
    with busy.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        start("up", "--port", "0", "--data", data).wait_until_ready()

    assert not left.exists()
    assert busy.exists()
