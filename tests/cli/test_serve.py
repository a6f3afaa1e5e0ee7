"""`backburner serve`: a server on a PostgreSQL database that others work on."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from programs import Ended, Start

from backburner.cli.client import NotSignedIn, Server


def test_it_prints_a_link_for_the_owner_that_signs_in_once(
    start: Start, tmp_path: Path, empty_postgres_url: str
) -> None:
    where = ("--data", tmp_path, "--database-url", empty_postgres_url)
    running = start("serve", "--port", "0", *where)
    server = Server(running.wait_until_ready(), "")
    lines = [running.read_line() for _ in range(2)]
    link = lines[1].split()[-1]

    assert "`backburner worker`" in lines[0]
    assert link.startswith(f"{server.address}/sign-in#")
    assert server.post("/api/sign-in", {"link": link})["id"]
    with pytest.raises(NotSignedIn):
        server.post("/api/sign-in", {"link": link})
    ended = running.end(signal.SIGTERM)
    assert (ended.code, ended.out, ended.err) == (0, ["Stopped."], [])


def test_nobody_else_could_work_on_a_sqlite_file(
    call: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_DATA", str(tmp_path))

    refused = call("serve")

    assert (refused.code, refused.out) == (2, [])
    assert "needs PostgreSQL" in refused.err[0]
    assert "`backburner up`" in refused.err[0]
