"""`backburner serve`: a server on a PostgreSQL database that others work on."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from support.programs.programs import Ended, Start

from backburner.cli.client import NotSignedIn, Server

pytestmark = pytest.mark.starts


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


@pytest.mark.parametrize("command", ["up", "serve", "worker", "doctor"])
def test_the_help_says_where_else_a_secret_can_be(call: Callable[..., Ended], command: str) -> None:
    shown = " ".join(call(command, "--help").out)
    assert "BACKBURNER_DATABASE_URL_FILE" in " ".join(shown.split())


def test_a_password_in_an_address_on_the_command_line_is_warned_of(
    call: Callable[..., Ended], tmp_path: Path
) -> None:
    where = ("--data", str(tmp_path), "--database-url")
    open_one = call("worker", *where, "postgresql://ann:secret-words@127.0.0.1:1/none")
    without = call("worker", *where, "postgresql://ann@127.0.0.1:1/none")

    assert "BACKBURNER_DATABASE_URL_FILE" in open_one.err[0]
    assert "secret-words" not in "".join(open_one.err)
    assert len(open_one.err) == len(without.err) + 1
