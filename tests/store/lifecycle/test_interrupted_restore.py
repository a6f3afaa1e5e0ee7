"""Restores and backups that are killed: at any moment, the old database or the new one is there."""

import fcntl
import shutil
import sys
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import make_url, select
from support.doubles.clock import SetClock
from support.programs.programs import Start
from support.stage.scene import Scene

from backburner.core.errors import StoreFailed
from backburner.core.ids import UserId
from backburner.store.lifecycle import backup
from backburner.store.lifecycle.opening import look_at_database, open_database
from backburner.store.tables import conversations

#: Does something again and again, killed before its first change of a name, its second, and so on.
#: Prints what is there each time, and "done" once it came through.
KILL = """
import os, shutil, signal, sys
from contextlib import closing
from pathlib import Path
from sqlalchemy import text
from backburner.store.lifecycle import backup
from backburner.store.lifecycle.opening import open_database
from support.doubles.clock import SetClock

WATCHED = ("os.rename", "os.link", "os.remove")
pattern, what, copy = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
folder = pattern.with_name("tried")
url = f"sqlite:///{folder / 'data.sqlite3'}"

def kill_before(number):
    left = [number]
    def hook(event, arguments):
        if event in WATCHED and os.path.exists(arguments[0]):
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)

def look():
    try:
        with closing(open_database(url, SetClock())) as database:
            statement = text("SELECT coalesce(pause_reason, 'works') FROM conversations")
            found = database.run(lambda tx: list(tx.connection.execute(statement).scalars()))
    except Exception as error:
        found = repr(error)
    print(found, *sorted(path.name for path in folder.iterdir()), flush=True)

code, number = 9, 0
while code:
    number += 1
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(pattern, folder)
    child = os.fork()
    if not child:
        kill_before(number)
        if what == "restore":
            backup.put_back(url, copy, SetClock())
        else:
            backup.copy_at_rest(url, folder / "copy")
        os._exit(0)
    code = os.waitpid(child, 0)[1]
    look()
print("done")
"""


@pytest.fixture
def url(migrated_sqlite_url: str, tmp_path: Path) -> str:
    folder = tmp_path / "data"
    folder.mkdir()
    path = shutil.copy(make_url(migrated_sqlite_url).database or "", folder / "data.sqlite3")
    return f"sqlite:///{path}"


@pytest.fixture
def copy(url: str, clock: SetClock, tmp_path: Path) -> Path:
    """A copy of a database with one task, that works; the database itself is closed."""
    with closing(open_database(url, clock)) as database:
        Scene(database).task()
    backup.copy_at_rest(url, tmp_path / "copy")
    return tmp_path / "copy"


def kill(start: Start, tmp_path: Path, copy: Path, what: str) -> list[str]:
    ended = start(tmp_path / "data", what, copy, command=(sys.executable, "-c", KILL)).end()
    assert ended.code == 0, ended.err
    assert ended.out[-1] == "done"
    return ended.out[:-1]


def test_a_restore_killed_at_any_moment_leaves_the_old_database_or_the_new_one(
    start: Start, url: str, copy: Path, clock: SetClock, tmp_path: Path
) -> None:
    with closing(open_database(url, clock)) as database:
        Scene(database).chat(UserId("u_second"))
        # As a server leaves it that was killed.
        shutil.copytree(tmp_path / "data", tmp_path / "killed")
    shutil.rmtree(tmp_path / "data")
    (tmp_path / "killed").rename(tmp_path / "data")
    assert (tmp_path / "data" / "data.sqlite3-wal").stat().st_size
    *killed, through = kill(start, tmp_path, copy, "restore")

    assert len(killed) >= 3
    for found in killed:
        old, new = "['works', 'works'] data.sqlite3 data.sqlite3.lock", "['user'] data.sqlite3"
        assert found == old or found.startswith(new)
        assert "restoring" not in found
    assert through == "['user'] data.sqlite3 data.sqlite3.before-1 data.sqlite3.lock"


def test_a_backup_killed_at_any_moment_leaves_no_half_backup_under_its_name(
    start: Start, copy: Path, tmp_path: Path
) -> None:
    *killed, through = kill(start, tmp_path, copy, "backup")

    assert any(".part" in found for found in killed)
    assert through == "['works'] copy data.sqlite3 data.sqlite3.lock"


def test_what_a_killed_backup_left_is_removed_by_the_next_one(
    url: str, copy: Path, tmp_path: Path
) -> None:
    left, busy = tmp_path / ".next.aaaaaaaa.part", tmp_path / ".next.bbbbbbbb.part"
    others = tmp_path / "next.part"
    for file in (left, busy, others):
        file.write_bytes(copy.read_bytes()[:4096])
    with busy.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        backup.copy_at_rest(url, tmp_path / "next")

    assert backup.check_copy(tmp_path / "next") == []
    assert not left.exists()
    assert busy.exists()
    assert others.exists()


@pytest.mark.parametrize("is_empty", [False, True])
@pytest.mark.parametrize("beside", ["data.sqlite3.before-1", "data.sqlite3.restoring"])
def test_no_new_database_is_made_beside_one_that_was_set_aside(
    url: str, copy: Path, clock: SetClock, *, beside: str, is_empty: bool
) -> None:
    path = Path(make_url(url).database or "")
    path.rename(path.with_name(beside))
    if is_empty:
        path.touch()
    for refuse in (lambda: open_database(url, clock), lambda: look_at_database(url)):
        with pytest.raises(StoreFailed, match=beside) as refused:
            refuse()
        assert "backburner db restore" in refused.value.hint
        assert refused.value.permanent
    put = backup.put_back(url, copy, clock)

    assert put.what.paused == 1
    open_database(url, clock).close()


def test_a_database_beside_the_one_it_replaced_starts_as_usual(
    url: str, copy: Path, clock: SetClock
) -> None:
    kept = [backup.put_back(url, copy, clock).kept for _ in range(2)]
    open_database(url, clock).close()

    assert [path and path.name for path in kept] == [
        "data.sqlite3.before-1",
        "data.sqlite3.before-2",
    ]


def test_a_log_that_could_not_be_written_back_is_kept_with_its_database(
    url: str, copy: Path, clock: SetClock
) -> None:
    path = Path(make_url(url).database or "")
    path.write_bytes(b"ruined" * 1000)
    Path(f"{path}-wal").write_bytes(b"its log")
    kept = backup.put_back(url, copy, clock).kept

    assert kept
    assert kept.read_bytes() == b"ruined" * 1000
    assert Path(f"{kept}-wal").read_bytes() == b"its log"
    open_database(url, clock).close()


def test_a_restore_that_stopped_before_its_last_step_is_undone_at_the_next_start(
    url: str, copy: Path, clock: SetClock
) -> None:
    path = Path(make_url(url).database or "")
    with closing(open_database(url, clock)) as database:
        Scene(database).chat(UserId("u_second"))
        # As it is before SQLite has written the log back.
        log = Path(f"{path}-wal").read_bytes()
        whole = path.read_bytes()
    path.write_bytes(whole)
    kept = path.with_name("data.sqlite3.before-1")
    kept.hardlink_to(path)
    Path(f"{kept}-wal").write_bytes(log)
    shutil.copy(copy, path.with_name("data.sqlite3.restoring"))
    with closing(open_database(url, clock)) as database:
        found = database.run(lambda tx: tx.connection.execute(select(conversations.c.id)).all())

    assert len(found) == 2
    names = sorted(one.name for one in path.parent.iterdir())
    assert names == ["data.sqlite3", "data.sqlite3.lock"]
