"""`backburner up` as a real process: it starts, answers, stops, and says in one line why not."""

import json
import signal
import socket
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from support.programs.programs import AS_NOBODY, Ended, Start
from support.requirements import requirement

from backburner import __version__

pytestmark = pytest.mark.starts

ROOT = Path(__file__).parents[2]

UP_AS_NOBODY = f"""
import sys
from backburner.cli import main
from backburner.cli.commands import up
{AS_NOBODY}
main.main(sys.argv[1:])
"""

#: A server that has been told to stop and does not: its loop hangs.
HANGS = """
import asyncio, threading
from backburner.app.serving import stop_on_signals
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
    with urlopen(url, timeout=10) as answer:  # noqa: S310 (an address we were just told)
        return json.load(answer)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_starts_in_an_empty_folder_answers_and_stops_at_a_signal(
    start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    data = tmp_path / "new" / "data"
    running = start("up", "--port", "0", "--data", data)
    address = running.wait_until_ready()
    health, ready = get(f"{address}/health"), get(f"{address}/ready")
    ended = running.end(number)

    assert health == {"status": "ok", "version": __version__}
    assert ready == {"status": "ready", "checks": {"data folder": "ok", "database": "ok"}}
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert ended.code == 0
    assert ended.out[:2] == [f"Data: {data}", "Press Ctrl-C to stop."]
    assert ended.out[2].startswith(f"Sign in, once and within 15 minutes: {address}/sign-in#")
    assert ended.out[3:] == ["Stopped."]
    assert ended.err == []


def test_the_link_it_prints_leads_to_a_page(start: Start, tmp_path: Path) -> None:
    running = start("up", "--port", "0", "--data", tmp_path / "data")
    address = running.wait_until_ready()
    link = [running.read_line() for _ in range(3)][-1].split()[-1]

    for page in (link, address, f"{address}/reset", f"{address}/invitation"):
        with urlopen(page, timeout=10) as answer:  # noqa: S310 (an address we were just told)
            assert answer.headers.get_content_type() == "text/html"
            assert answer.headers["content-security-policy"].startswith("default-src 'self'")


def test_a_second_signal_ends_even_a_server_that_hangs(start: Start) -> None:
    running = start(command=(sys.executable, "-c", HANGS))
    running.wait_until_ready()
    running.process.send_signal(signal.SIGINT)

    assert running.read_line() == "stopping"
    assert running.end(signal.SIGINT).code == 130


def test_dev_py_starts_it_from_any_folder_and_hands_signals_on(
    start: Start, tmp_path: Path
) -> None:
    # What lies in the current folder must not get in the way.
    (tmp_path / "click.py").write_text("raise RuntimeError")
    dev = (sys.executable, str(ROOT / "dev.py"))
    running = start("up", "--port", "0", "--data", "here", command=dev, cwd=tmp_path)
    running.wait_until_ready()
    ended = running.end(signal.SIGINT)

    assert ended.code == 0
    assert ended.out[0] == f"Data: {tmp_path / 'here'}"
    assert ended.out[-1] == "Stopped."


def test_a_taken_port_is_one_line_that_says_what_to_do(start: Start, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = start("up", "--port", str(port), "--data", tmp_path).end()

    assert ended.code == 1
    assert ended.out == []
    assert len(ended.err) == 1
    assert str(port) in ended.err[0]
    assert "--port" in ended.err[0]


def test_a_data_folder_that_may_not_be_written_is_one_line(start: Start, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    ended = start(
        *("up", "--port", "0", "--data", locked / "data"),
        command=(sys.executable, "-c", UP_AS_NOBODY),
    ).end()

    assert ended.code == 1
    assert len(ended.err) == 1
    assert f"{locked / 'data'} cannot be used: permission denied." in ended.err[0]
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
def test_a_wrong_setting_is_one_line_and_exit_code_2(
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
def test_an_option_beats_a_variable_which_beats_the_file(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # None of the weaker values would let it start.
    file = tmp_path / "settings.toml"
    file.write_text('port = "wrong"\ndata = ""\nlog_level = "debug"\n')
    monkeypatch.setenv("BACKBURNER_PORT", "wrong, too")
    monkeypatch.setenv("BACKBURNER_DATA", str(tmp_path / "data"))
    running = start("up", "--port", "0", "--config", file)
    running.wait_until_ready()
    ended = running.end(signal.SIGTERM)

    assert ended.out[0] == f"Data: {tmp_path / 'data'}"
    assert any("Started server process" in line for line in ended.err)
