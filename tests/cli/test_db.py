"""`backburner db`: copies that are made while it runs, put back, and looked through."""

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
from support.programs.programs import Ended, Start
from support.stage.make import USER

from backburner.app.clock import Clock
from backburner.core import transitions
from backburner.core.conversation import Conversation, PauseReason
from backburner.core.ids import new_conversation_id
from backburner.core.schedule import Interval
from backburner.core.transitions import Brief
from backburner.store import tables
from backburner.store.accounts import users
from backburner.store.lifecycle.opening import open_database
from backburner.store.tx import Tx

Call = Callable[..., Ended]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Make a data folder with a database in which there is work."""
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


def url(data: Path) -> str:
    return f"sqlite:///{data / 'backburner.sqlite3'}"


@pytest.fixture
def task(data: Path) -> Conversation:
    def work(tx: Tx) -> Conversation:
        users.add(tx.connection, USER, name="Ann", now=tx.now)
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


def test_a_copy_is_made_while_it_runs_and_put_back_once_it_does_not(
    call: Call, start: Start, data: Path, task: Conversation, tmp_path: Path
) -> None:
    copy, options = tmp_path / "copy", ("--data", str(data))
    running = start("up", "--port", "0", *options)
    address = running.wait_until_ready()
    client = data / "client.toml"
    client.touch(mode=0o600)
    client.write_text(f'address = "{address}"\ntoken = "{TOKEN}"\n')
    made = call("db", "backup", str(copy), *options)
    refused = call("db", "restore", str(copy), *options)
    checked = call("db", "check", *options)
    running.end(signal.SIGTERM)
    restored = call("db", "restore", str(copy), *options)

    assert made.code == 0, made.err
    assert call("db", "check", str(copy)).out == ["Nothing is wrong."]
    assert refused.code == 1
    assert "only one may" in refused.err[0]
    assert checked.code == 1
    assert restored.code == 0, restored.err
    assert restored.out[0].startswith("Restored. Conversations that are paused now: 1.")
    assert load(data, task).pause_reason is PauseReason.USER


def test_after_it_was_put_back_nobody_is_signed_in(
    call: Call, start: Start, data: Path, task: Conversation, tmp_path: Path
) -> None:
    del task
    options = ("--data", str(data))
    assert call("db", "backup", str(tmp_path / "copy"), *options).code == 0
    assert call("db", "restore", str(tmp_path / "copy"), *options).code == 0
    address = start("up", "--port", "0", *options).wait_until_ready()
    request = Request(f"{address}/api/me", headers={"authorization": f"Bearer {TOKEN}"})  # noqa: S310
    with pytest.raises(OSError, match="401"), urlopen(request, timeout=10):  # noqa: S310
        pass


def test_a_copy_of_a_database_at_rest_changes_nothing(
    call: Call, data: Path, task: Conversation, tmp_path: Path
) -> None:
    ended = call("db", "backup", str(tmp_path / "copy"), "--data", str(data))
    again = call("db", "backup", str(tmp_path / "copy"), "--data", str(data))

    assert ended.code == 0
    assert again.code == 4
    assert load(data, task) == task


def test_what_is_wrong_is_named(call: Call, data: Path, task: Conversation) -> None:
    del task
    well = call("db", "check", "--data", str(data))
    with closing(sqlite3.connect(data / "backburner.sqlite3")) as other:
        other.execute("DELETE FROM users")
        other.commit()
    wrong = call("db", "check", "--data", str(data))

    assert (well.code, well.out) == (0, ["Nothing is wrong."])
    assert wrong.code == 1
    assert "belongs to" in wrong.err[0]


def test_tables_are_brought_up_to_date(call: Call, data: Path) -> None:
    ended = call("db", "migrate", "--data", str(data))

    assert ended.code == 0
    assert ended.out[0].startswith("The tables are of revision ")


@pytest.mark.parametrize("arguments", [["restore"], ["restore", "x", "--loaded"], ["backup"]])
def test_what_is_meant_has_to_be_said(call: Call, data: Path, arguments: list[str]) -> None:
    assert call("db", *arguments, "--data", str(data)).code == 2


def test_with_postgres_the_programs_to_use_are_named(
    call: Call, migrated_postgres_url: str, data: Path, tmp_path: Path
) -> None:
    options = ("--data", str(data), "--database-url", migrated_postgres_url)
    copy = call("db", "backup", str(tmp_path / "copy"), *options)
    back = call("db", "restore", str(tmp_path / "copy"), *options)
    loaded = call("db", "restore", "--loaded", *options)

    assert (copy.code, back.code, loaded.code) == (4, 4, 0)
    assert "pg_dump" in copy.err[0]
    assert "pg_restore" in back.err[0]
    assert "--loaded" in back.err[0]
    assert call("db", "check", *options).out == ["Nothing is wrong."]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_complete(call: Call, shell: str) -> None:
    ended = call("completion", shell)

    assert ended.code == 0
    assert any("_BACKBURNER_COMPLETE" in line for line in ended.out)


@pytest.mark.starts
def test_commands_are_completed_without_being_loaded(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "_BACKBURNER_COMPLETE": "bash_complete",
        "COMP_WORDS": "backburner run",
        "COMP_CWORD": "1",
        "PYTHONPROFILEIMPORTTIME": "1",
    }.items():
        monkeypatch.setenv(name, value)
    ended = start().end()

    assert [line.split(",")[-1] for line in ended.out] == ["runs", "run-now"]
    assert not any("sqlalchemy" in line or "pydantic" in line for line in ended.err)
