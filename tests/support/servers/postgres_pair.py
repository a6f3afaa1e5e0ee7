"""A primary server and its synchronous standby, which can take over when the primary is killed."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from support.memory_disk import memory_disk
from support.servers.postgres_server import (
    OPTIONS,
    Runner,
    choose_runner,
    find_programs,
    make_cluster,
    running,
)

ACCESS = "host all postgres 127.0.0.1/32 trust\nhost replication postgres 127.0.0.1/32 trust\n"


@dataclass(frozen=True)
class Pair:
    #: With both hosts.
    url: str
    primary: Path
    standby: Path
    programs: Path
    runner: Runner

    def kill_primary(self) -> None:
        """Kill the server with all its processes, as if its machine were gone."""
        first, *_ = (self.primary / "postmaster.pid").read_text().split()
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        for process in (first, *children):
            os.kill(int(process), signal.SIGKILL)

    def promote_standby(self) -> None:
        command = [str(self.programs / "pg_ctl"), "promote", "-w", "-D", str(self.standby)]
        subprocess.run(command, check=True, capture_output=True, cwd="/", **self.runner)


@contextmanager
def postgres_pair() -> Iterator[Pair]:
    place = memory_disk() or "/tmp"  # noqa: S108
    folder = Path(tempfile.mkdtemp(prefix="bb-pair-", dir=place))
    try:
        runner, programs = choose_runner(folder), find_programs(folder)
        ports = [_free_port(), _free_port()]
        urls = [f"postgresql://postgres@127.0.0.1:{port}/postgres" for port in ports]
        primary, standby = folder / "primary", folder / "standby"
        make_cluster(programs, primary, runner)
        with (primary / "postgresql.conf").open("a") as options:
            options.write(f"{OPTIONS}listen_addresses = '127.0.0.1'\nhot_standby = on\n")
            options.write("unix_socket_directories = ''\n")
        (primary / "pg_hba.conf").write_text(ACCESS)
        with ExitStack() as stack:
            stack.enter_context(
                running(_server(programs, primary, ports[0]), urls[0], folder, runner)
            )
            copy = ["pg_basebackup", "-D", standby, "-d", urls[0], "-R", "--checkpoint=fast"]
            copy[0] = programs / "pg_basebackup"
            subprocess.run(
                list(map(str, copy)), check=True, capture_output=True, cwd=folder, **runner
            )
            stack.enter_context(
                running(_server(programs, standby, ports[1]), urls[1], folder, runner)
            )
            _wait_for_each_commit(urls[0])
            both = f"postgresql://postgres@127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}/postgres"
            yield Pair(both, primary, standby, programs, runner)
    finally:
        shutil.rmtree(folder)


def _server(programs: Path, data: Path, port: int) -> list[str]:
    return [str(programs / "postgres"), "-D", str(data), "-p", str(port)]


def _wait_for_each_commit(primary: str) -> None:
    """Let the primary answer only when the standby has what was committed."""
    with psycopg.connect(primary, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        connection.execute("SELECT pg_reload_conf()")
        query = "SELECT 1 FROM pg_sleep(0.05), pg_stat_replication WHERE sync_state = 'sync'"
        while connection.execute(query).fetchone() is None:
            pass


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
