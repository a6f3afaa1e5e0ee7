"""`backburner worker`: one of many on a PostgreSQL database."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from support.programs.programs import Ended, Start

pytestmark = pytest.mark.starts


def test_it_works_beside_another_until_a_signal_stops_it(
    start: Start, tmp_path: Path, empty_postgres_url: str
) -> None:
    where = ("--data", tmp_path, "--database-url", empty_postgres_url)
    workers = [start("worker", *where) for _ in range(2)]
    names = {worker.read_line() for worker in workers}
    ended = [worker.end(signal.SIGTERM) for worker in workers]

    assert all(name.startswith("Backburner ") and " works as " in name for name in names)
    assert len(names) == 2
    for one in ended:
        assert (one.code, one.out, one.err) == (0, ["Press Ctrl-C to stop.", "Stopped."], [])


def test_a_sqlite_file_has_its_own_worker(
    call: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_DATA", str(tmp_path))

    refused = call("worker")

    assert (refused.code, refused.out) == (2, [])
    (line,) = refused.err
    assert line.startswith("A worker of its own needs PostgreSQL.")
    assert "`backburner up`" in line
