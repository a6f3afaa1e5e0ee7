"""Opening a database: what is made, what is refused in a sentence, and that nothing is harmed."""

import errno
import os
import shutil
import signal
import sqlite3
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import make_url, text
from support.doubles.clock import SetClock
from support.faults.limits import no_bytes_can_be_written
from support.programs.programs import AS_NOBODY, Start

from backburner.core.errors import BackburnerError, BadSetting, StoreFailed
from backburner.settings import load
from backburner.store.db import Database
from backburner.store.lifecycle import sqlite_file
from backburner.store.lifecycle.opening import open_database, write_something
from backburner.store.lifecycle.schema import APPLICATION_ID

#: Bait: it must not be shown anywhere.
PASSWORD = "correct-horse"  # noqa: S105 (it is the bait)

#: Says why databases cannot be opened by somebody who is not root.
OPEN_AS_NOBODY = f"""
import sys, sqlalchemy.dialects.sqlite.pysqlite
from backburner.core.errors import StoreFailed
from backburner.store.lifecycle.opening import open_database
from support.doubles.clock import SetClock
from support.faults.limits import no_bytes_can_be_written
{AS_NOBODY}
for url in sys.argv[1:]:
    try:
        open_database(url, SetClock()).close()
    except StoreFailed as error:
        print(error)
"""

#: Opens a database in a process of its own, writes a row, and waits to be killed.
HOLD = """
import signal, sys
from sqlalchemy import text
from backburner.store.lifecycle.opening import open_database
from support.doubles.clock import SetClock
from support.faults.limits import no_bytes_can_be_written
database = open_database(sys.argv[1], SetClock())
database.run(lambda tx: tx.connection.execute(text(
    "INSERT INTO users (id, served_at, created_at) VALUES ('u_held', 1, 1)")))
print("open", flush=True)
signal.pause()
"""


@pytest.fixture
def file(migrated_sqlite_url: str) -> Path:
    """A database of ours that is closed."""
    return Path(make_url(migrated_sqlite_url).database or "")


def opened(url: str | Path) -> closing[Database]:
    url = f"sqlite:///{url}" if isinstance(url, Path) else url
    return closing(open_database(url, SetClock()))


def refusal(url: str | Path) -> BackburnerError:
    """Expect to be refused, in one line with advice, and without the password."""
    with pytest.raises(BackburnerError) as refused, opened(url):
        pass
    assert refused.value.hint
    assert "\n" not in str(refused.value)
    assert PASSWORD not in str(refused.value)
    return refused.value


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.is_file() and path.suffix != ".lock"
    }


def refusal_of_file(path: Path, *, folder: Path | None = None) -> str:
    """Expect a file to be refused by name, and to be left as it was, with all that is around it."""
    before = snapshot(folder or path.parent)
    refused = refusal(path)
    assert isinstance(refused, StoreFailed)
    assert str(path) in str(refused)
    assert snapshot(folder or path.parent) == before
    return str(refused)


def execute(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def add_user(database: Database) -> None:
    add = text("INSERT INTO users (id, served_at, created_at) VALUES ('u_new', 1, 1)")
    database.run(lambda tx: tx.connection.execute(add))


def count_users(database: Database) -> int:
    users = text("SELECT count(*) FROM users")
    return database.run(lambda tx: int(tx.connection.execute(users).scalar_one()))


def test_a_new_file_is_made_for_its_owner_alone_and_is_marked_as_ours(tmp_path: Path) -> None:
    path = tmp_path / "new.sqlite3"
    with opened(path) as database:
        database.run(write_something)
        assert Path(f"{path}.lock").read_text() == f"{os.getpid()}\n"
        modes = {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}

    assert modes == {0o600}
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_what_was_written_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "new.sqlite3"
    with opened(path) as database:
        add_user(database)
    with opened(path) as database:
        assert count_users(database) == 1


def test_to_open_one_that_is_up_to_date_does_not_load_alembic(file: Path, start: Start) -> None:
    code = HOLD.replace("signal.pause()", "print({'alembic', 'sqlalchemy'} & sys.modules.keys())")
    ended = start(f"sqlite:///{file}", command=(sys.executable, "-c", code)).end()

    assert ended.out == ["open", "{'sqlalchemy'}"]


def test_a_database_can_be_in_memory() -> None:
    with opened("sqlite://") as database:
        database.run(write_something)


@pytest.mark.parametrize("made", ["empty", "marked"])
def test_a_file_without_tables_is_new_even_if_a_first_start_was_cut_off(
    tmp_path: Path, made: str
) -> None:
    path = tmp_path / "new.sqlite3"
    path.touch()
    if made == "marked":
        execute(path, "PRAGMA journal_mode = WAL")
        assert path.stat().st_size > 0
    with opened(path) as database:
        database.run(write_something)


def test_a_name_with_letters_that_mean_something_in_a_url_is_the_name_of_the_file(
    tmp_path: Path,
) -> None:
    data = tmp_path / "100%20 what?#@:"
    data.mkdir()
    with opened(load(data=str(data)).database.get_secret_value()):
        pass

    assert (data / "backburner.sqlite3").stat().st_size > 0
    assert list(tmp_path.iterdir()) == [data]


def test_a_file_that_is_open_is_refused_to_others_with_the_process_that_has_it(
    file: Path, start: Start
) -> None:
    holder = start(f"sqlite:///{file}", command=(sys.executable, "-c", HOLD))
    assert holder.read_line() == "open"
    said = str(refusal(file))

    assert f"Process {holder.process.pid} " in said
    assert str(file) in said
    assert "--data" in said

    holder.end(signal.SIGKILL)
    with opened(file) as database:
        assert count_users(database) == 1


def test_a_file_has_one_owner_even_within_a_process_and_under_another_name(file: Path) -> None:
    link = file.with_name("link.sqlite3")
    link.symlink_to(file)
    with opened(file) as database:
        assert str(os.getpid()) in str(refusal(link))
        database.run(write_something)
    with opened(link) as database:
        database.run(write_something)


def test_something_else_than_a_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "diary.sqlite3"
    path.write_text("Dear diary, today I started Backburner.\n" * 100)

    assert "is not a SQLite database" in refusal_of_file(path)


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "folder.sqlite3"
    path.mkdir()

    assert "is not a file" in refusal_of_file(path)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    said = str(refusal(tmp_path / "absent" / "new.sqlite3"))

    assert f"{tmp_path / 'absent'} cannot be used: no such file or directory" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE recipes (name TEXT)"],
        ["CREATE TABLE users (id TEXT)"],
        ["PRAGMA application_id = 1"],
        ["PRAGMA application_id = 1", "CREATE TABLE recipes (name TEXT)"],
        ["CREATE TABLE alembic_version (version_num)"],
        [
            "CREATE TABLE alembic_version (version_num)",
            "CREATE TABLE users (id TEXT)",
            "INSERT INTO alembic_version VALUES ('0001'), ('0002')",
        ],
    ],
)
@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
def test_a_database_of_something_else_is_refused(
    tmp_path: Path, statements: list[str], journal: str
) -> None:
    path = tmp_path / "recipes.sqlite3"
    execute(path, f"PRAGMA journal_mode = {journal}", *statements)

    assert "tables of another program" in refusal_of_file(path)


def test_one_that_was_made_from_its_own_sql_is_ours_without_the_mark(file: Path) -> None:
    copy = file.with_name("copy.sqlite3")
    with closing(sqlite3.connect(file)) as old, closing(sqlite3.connect(copy)) as new:
        new.executescript("\n".join(old.iterdump()))
    with opened(copy) as database:
        database.run(write_something)


def test_a_newer_one_is_refused(file: Path) -> None:
    execute(file, "UPDATE alembic_version SET version_num = '9999'")
    said = refusal_of_file(file)

    assert "newer Backburner" in said
    assert "9999" in said


@pytest.mark.parametrize("revision", ["0001", "0009"])
def test_one_of_an_alpha_version_is_refused(file: Path, revision: str) -> None:
    execute(file, f"UPDATE alembic_version SET version_num = '{revision}'")  # noqa: S608 (planted)
    said = refusal_of_file(file)

    assert "unreleased alpha version" in said
    assert revision in said
    assert "Export your data" in said


def test_a_newer_one_is_refused_as_it_is_even_if_it_was_never_closed(
    file: Path, start: Start, tmp_path: Path
) -> None:
    holder = start(f"sqlite:///{file}", command=(sys.executable, "-c", HOLD))
    assert holder.read_line() == "open"
    execute(file, "UPDATE alembic_version SET version_num = '9999'")
    copy = tmp_path / "copy"
    copy.mkdir()
    for part in ("", "-wal"):
        shutil.copy(f"{file}{part}", copy)

    before = snapshot(copy)
    assert before[f"{file.name}-wal"]
    assert "newer Backburner" in str(refusal(copy / file.name))
    after = snapshot(copy)
    # An index of the log may be left.
    after.pop(f"{file.name}-shm", None)
    assert after == before


@pytest.mark.parametrize("size", [1, 50, 100, 4096, 10_000])
def test_one_that_was_cut_short_is_refused(file: Path, size: int) -> None:
    os.truncate(file, size)

    assert f"is damaged: it ends after {size:,} of " in refusal_of_file(file)


def test_an_empty_one_with_a_log_is_refused(file: Path) -> None:
    os.truncate(file, 0)
    Path(f"{file}-wal").write_bytes(b"\0" * 5000)

    assert "is damaged" in refusal_of_file(file)


def test_one_with_a_page_of_rubbish_that_is_not_read_yet_is_refused(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        found = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'memories'")
        (page,) = found.fetchone()
    content = bytearray(file.read_bytes())
    content[page * 4096 - 4096 : page * 4096] = b"\xff" * 4096
    file.write_bytes(content)

    assert "is damaged" in refusal_of_file(file)


def test_one_with_rubbish_for_tables_is_refused(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[100:4096] = b"\xff" * 3996
    file.write_bytes(content)

    assert "is damaged" in refusal_of_file(file)


def test_one_that_another_program_writes_is_said_to_be_in_use(file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with closing(sqlite3.connect(file, timeout=0)) as connection:
            with pytest.raises(sqlite3.OperationalError) as busy:
                connection.execute("BEGIN IMMEDIATE")
            explanation = sqlite_file.explain(file, busy.value)

    assert "in use by another program" in str(explanation)


def test_a_fault_of_our_own_is_not_blamed_on_the_file(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        with pytest.raises(sqlite3.OperationalError) as wrong:
            connection.execute("SELECT nonsense")

        assert sqlite_file.explain(file, wrong.value) is None


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///a?mode=ro",
        "sqlite://host/a",
        f"postgresql://me:{PASSWORD}:x/y",
        f"postgresql://me:a@{PASSWORD}@localhost/x",
        "nonsense",
    ],
)
def test_a_url_that_cannot_be_meant_is_a_wrong_setting(url: str) -> None:
    assert isinstance(refusal(url), BadSetting)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Make a folder that everybody can get to, unlike that of a test."""
    with tempfile.TemporaryDirectory(dir="/tmp" if os.geteuid() == 0 else None) as name:  # noqa: S108
        folder = Path(name)
        folder.chmod(0o777)
        yield folder


def test_a_file_or_folder_that_may_only_be_read_is_refused(
    file: Path, open_folder: Path, start: Start
) -> None:
    locked = open_folder / "locked"
    locked.mkdir()
    copies = [Path(shutil.copy(file, folder)) for folder in (open_folder, locked)]
    copies[0].chmod(0o444)
    copies[1].chmod(0o666)
    locked.chmod(0o555)
    urls = [f"sqlite:///{path}" for path in (*copies, locked / "absent.sqlite3")]
    said = start(*urls, command=(sys.executable, "-c", OPEN_AS_NOBODY)).end().out

    assert len(said) == 3
    assert f"The database file {copies[0]} cannot be used: permission denied." in said[0]
    for line in said[1:]:
        assert f"The database folder {locked} cannot be used: permission denied." in line
    assert snapshot(open_folder) == snapshot(locked) == {file.name: file.read_bytes()}


def test_a_disk_without_space_for_the_lock_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "backburner.sqlite3"
    with no_bytes_can_be_written(), pytest.raises(StoreFailed, match="cannot be used"):
        open_database(f"sqlite:///{path}", SetClock())

    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert str(sqlite_file._unusable(tmp_path, "folder", full)).endswith(
        "is full. Free some space: nothing can be saved until then."
    )
