"""`backburner up`, `serve` and `worker` as real processes: start, respond, stop, refuse."""

import json
import os
import re
import signal
import socket
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import httpx2
import pytest
from support.programs.programs import AS_NOBODY, Ended, Start
from support.requirements import requirement

from backburner import __version__
from backburner.cli.client import NotSignedIn, Server
from backburner.process.confinement import RUNS_AS_ROOT

ROOT = Path(__file__).parents[3]

UP_AS_NOBODY = f"""
import sys
from backburner.cli import main
from backburner.cli.commands import serve
{AS_NOBODY}
main.main(sys.argv[1:])
"""

#: A server whose event loop hangs when it is told to stop.
HANGS = """
import asyncio, threading
from backburner.app.signals import stop_on_signals
def hang():
    print("stopping", flush=True)
    threading.Event().wait()
async def wait():
    loop = asyncio.get_running_loop()
    stop_on_signals(lambda: loop.call_soon(hang))
    print("waiting is ready at nowhere", flush=True)
    await asyncio.Event().wait()
asyncio.run(wait())
"""


def get(url: str) -> Any:
    with urlopen(url, timeout=10) as answer:  # noqa: S310 (the address of our server)
        return json.load(answer)


@pytest.mark.starts
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_up_starts_in_an_empty_folder_and_stops_at_a_signal(
    start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    data = tmp_path / "new" / "data"
    running = start("up", "--port", "0", "--data", data)
    address = running.wait_until_ready()
    health, ready = get(f"{address}/health"), get(f"{address}/ready")
    ended = running.end(number)

    assert health == {"status": "ok", "version": __version__}
    checks = {"data folder": "ok", "database": "ok", "worker": "ok", "queue": "ok"}
    assert ready == {"status": "ready", "checks": checks}
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert ended.code == 0
    assert ended.out[0] == f"Data: {data}"
    assert ended.out[1].startswith("Press Ctrl-C to stop. See the log with `")
    assert ended.out[1].endswith(" logs`.")
    assert ended.out[2].startswith(f"Sign in (once, within 15 minutes): {address}/sign-in#")
    assert ended.out[3:] == ["Stopped."]
    assert_only_warns_root(ended.err)


def test_the_sign_in_link_leads_to_a_page(start: Start, tmp_path: Path) -> None:
    running = start("up", "--port", "0", "--data", tmp_path / "data")
    address = running.wait_until_ready()
    link = [running.read_line() for _ in range(3)][-1].split()[-1]

    for page in (link, address, f"{address}/reset", f"{address}/invitation"):
        with urlopen(page, timeout=10) as answer:  # noqa: S310 (the address of our server)
            assert answer.headers.get_content_type() == "text/html"
            assert answer.headers["content-security-policy"].startswith("default-src '")


def test_a_second_signal_ends_a_server_that_hangs(start: Start) -> None:
    running = start(command=(sys.executable, "-c", HANGS))
    running.wait_until_ready()
    running.process.send_signal(signal.SIGINT)

    assert running.read_line() == "stopping"
    assert running.end(signal.SIGINT).code == 130


def test_dev_py_starts_up_from_any_folder_and_passes_signals_on(
    start: Start, tmp_path: Path
) -> None:
    # Modules in the current folder must not be imported.
    (tmp_path / "click.py").write_text("raise RuntimeError")
    dev = (sys.executable, str(ROOT / "dev.py"))
    running = start("up", "--port", "0", "--data", "here", command=dev, cwd=tmp_path)
    running.wait_until_ready()
    ended = running.end(signal.SIGINT)

    assert ended.code == 0
    assert ended.out[0] == f"Data: {tmp_path / 'here'}"
    assert ended.out[-1] == "Stopped."


def test_a_used_port_is_one_line_with_a_hint(start: Start, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = start("up", "--port", str(port), "--data", tmp_path).end()

    assert ended.code == 1
    assert ended.out == []
    assert len(ended.err) == 1
    assert str(port) in ended.err[0]
    assert "--port" in ended.err[0]


def test_a_read_only_data_folder_is_one_line(start: Start, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    ended = start(
        *("up", "--port", "0", "--data", locked / "data"),
        command=(sys.executable, "-c", UP_AS_NOBODY),
    ).end()

    assert ended.code == 1
    assert len(ended.err) == 1
    assert f"{locked / 'data'}: permission denied." in ended.err[0]
    assert "--data" in ended.err[0]


def test_a_file_in_place_of_the_data_folder_is_one_line(start: Start, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    ended = start("up", "--port", "0", "--data", tmp_path / "data").end()

    assert ended.code == 1
    assert len(ended.err) == 1
    assert str(tmp_path / "data") in ended.err[0]


@requirement("B-config")
@pytest.mark.parametrize(
    ("variables", "arguments", "named"),
    [
        ({"BACKBURNER_PROT": "1"}, [], "Did you mean BACKBURNER_PORT?"),
        ({"BACKBURNER_PORT": "many"}, [], "BACKBURNER_PORT cannot be 'many'"),
        ({}, ["--host", "0.0.0.0"], "would not be encrypted"),  # noqa: S104 (must be refused)
        ({}, ["--host", "here"], "--host cannot be 'here'"),
        ({"BACKBURNER_TLS_KEY": "key.pem"}, [], "Set both"),
        ({"BACKBURNER_PUBLIC_URL": "http://b.example"}, [], "an https URL"),
        ({"BACKBURNER_PUBLIC_URL": "https://b.example/path"}, [], "an https URL"),
        ({}, ["--config", "absent.toml"], "absent.toml"),
        ({}, ["--prot", "1"], "--prot"),
    ],
)
def test_an_invalid_setting_is_one_line_and_exit_code_2(
    call: Callable[..., Ended],
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    arguments: list[str],
    named: str,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    ended = call("up", *arguments)

    assert ended.code == 2
    assert ended.out == []
    assert len(ended.err) == 1
    assert named in ended.err[0]


@requirement("B-config")
def test_an_option_overrides_a_variable_which_overrides_the_file(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It would not start with any of the overridden values.
    file = tmp_path / "settings.toml"
    file.write_text('port = "wrong"\ndata = ""\nlog_level = "debug"\n')
    monkeypatch.setenv("BACKBURNER_PORT", "wrong, too")
    monkeypatch.setenv("BACKBURNER_DATA", str(tmp_path / "data"))
    running = start("up", "--port", "0", "--config", file)
    running.wait_until_ready()
    ended = running.end(signal.SIGTERM)

    assert ended.out[0] == f"Data: {tmp_path / 'data'}"
    assert any("Started server process" in line for line in ended.err)


@pytest.mark.starts
def test_serve_prints_a_sign_in_link_that_works_once(
    start: Start, tmp_path: Path, empty_postgres_url: str
) -> None:
    where = ("--data", tmp_path, "--database-url", empty_postgres_url)
    running = start("serve", "--port", "0", *where)
    server = Server(running.wait_until_ready(), "")
    lines = [running.read_line() for _ in range(2)]
    link = lines[1].split()[-1]

    assert "backburner worker`" in lines[0]
    assert link.startswith(f"{server.address}/sign-in#")
    assert server.post("/api/sign-in", {"link": link})["id"]
    with pytest.raises(NotSignedIn):
        server.post("/api/sign-in", {"link": link})
    ended = running.end(signal.SIGTERM)
    assert (ended.code, ended.out, ended.err) == (0, ["Stopped."], [])


def test_serve_refuses_sqlite(
    call: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_DATA", str(tmp_path))

    refused = call("serve")

    assert (refused.code, refused.out) == (2, [])
    assert "needs PostgreSQL" in refused.err[0]
    assert "`backburner up`" in refused.err[0]


@pytest.mark.parametrize("command", ["up", "serve", "worker", "doctor"])
def test_help_names_safer_ways_to_pass_a_secret(call: Callable[..., Ended], command: str) -> None:
    shown = " ".join(call(command, "--help").out)
    assert "BACKBURNER_DATABASE_URL_FILE" in " ".join(shown.split())


@pytest.mark.parametrize(
    "url", ["postgresql://ann:secret-words@h/d", "postgresql://ann@h/d?password=secret-words"]
)
@pytest.mark.parametrize("command", ["up", "serve", "worker", "doctor"])
def test_a_password_on_the_command_line_is_refused(
    call: Callable[..., Ended], tmp_path: Path, command: str, url: str
) -> None:
    exposed = call(command, "--data", str(tmp_path), "--database-url", url)

    (line,) = exposed.err
    assert exposed.code == 2
    assert "BACKBURNER_DATABASE_URL_FILE" in line
    assert "secret-words" not in line


def assert_only_warns_root(lines: list[str]) -> None:
    assert [RUNS_AS_ROOT in line for line in lines] == [True] * (os.geteuid() == 0)


@pytest.mark.starts
def test_two_workers_share_a_database_until_a_signal(
    start: Start, tmp_path: Path, empty_postgres_url: str
) -> None:
    where = ("--data", tmp_path, "--database-url", empty_postgres_url)
    workers = [start("worker", *where) for _ in range(2)]
    names = {worker.read_line() for worker in workers}
    ended = [worker.end(signal.SIGTERM) for worker in workers]

    assert all(name.startswith(f"Backburner {__version__}: worker ") for name in names)
    assert len(names) == 2
    for one in ended:
        assert (one.code, one.out) == (0, ["Press Ctrl-C to stop.", "Stopped."])
        assert_only_warns_root(one.err)


@pytest.mark.starts
def test_a_worker_serves_its_own_readiness_and_metrics(
    start: Start, tmp_path: Path, migrated_postgres_url: str
) -> None:
    where = ("--data", tmp_path, "--database-url", migrated_postgres_url)
    worker = start("worker", *where, "--worker-port", "0")
    (address,) = re.findall(r"\((http://127\.0\.0\.1:\d+)\) started", worker.read_line())

    ready = httpx2.get(f"{address}/ready", headers={"host": "worker-1.internal"})
    assert (ready.status_code, ready.json()["checks"]) == (
        200,
        {"data folder": "ok", "database": "ok", "worker": "ok", "queue": "ok"},
    )
    assert httpx2.get(f"{address}/metrics").status_code == 401
    assert httpx2.get(f"{address}/api/me").status_code == 404
    assert worker.end(signal.SIGTERM).code == 0


def test_worker_refuses_sqlite(
    call: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_DATA", str(tmp_path))

    refused = call("worker")

    assert (refused.code, refused.out) == (2, [])
    (line,) = refused.err
    assert "needs PostgreSQL" in line
    assert "`backburner up`" in line
