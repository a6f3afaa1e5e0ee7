"""`backburner logs`, and how much of the log a terminal or a pipe shows."""

import json
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from support.programs.programs import Ended, Start
from support.programs.terminals import terminal

from backburner.cli.commands.operate.logs import last_lines, new_lines

Call = Callable[..., Ended]


def test_the_log_of_a_server_is_shown_while_and_after_it_runs(
    call: Call, start: Start, tmp_path: Path
) -> None:
    running = start("up", "--port", "0", "--data", tmp_path)
    running.wait_until_ready()
    assert call("say", "Hello?", "--data", str(tmp_path)).code == 0
    following = start("logs", "-f", "--data", tmp_path, "--lines", "500")
    while "run.started" not in following.read_line():
        pass
    running.end(signal.SIGINT)
    shown = call("logs", "--data", str(tmp_path), "--lines", "500")

    assert any("run.finished" in line for line in shown.out)
    path = tmp_path / "log" / "server.log"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert call("logs", "--data", str(tmp_path), "-n", "1").out == [
        path.read_text().splitlines()[-1]
    ]


def test_new_lines_are_followed_across_rotation(start: Start, tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    path = tmp_path / "log" / "server.log"
    path.write_text("one\n")
    following = start("logs", "-f", "--data", tmp_path)
    assert following.read_line() == "one"
    with path.open("a") as file:
        file.write("tw")
        file.flush()
        file.write("o\n")
        file.flush()
        path.rename(path.with_name("server.log.1"))
        # Written by a process that has not yet noticed.
        file.write("three\n")
    path.write_text("four\n")

    assert [following.read_line() for _ in range(3)] == ["two", "three", "four"]


def test_the_last_lines_reach_into_older_files(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.with_name("server.log.2").write_text("1\n2\n")
    path.with_name("server.log.1").write_text("3\n4\n")
    path.write_text("5\n")

    for count, expected in ((1, "5"), (2, "45"), (4, "2345"), (9, "12345"), (0, "")):
        with path.open() as file:
            lines = last_lines(path, file, count)
        assert "".join(lines).replace("\n", "") == expected


def test_an_incomplete_line_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text("whole\npart")
    with path.open() as file:
        lines = new_lines(path, file)
        assert next(lines) == "whole\n"
        with path.open("a") as more:
            more.write("ial\n")
        assert next(lines) == "partial\n"


@pytest.mark.parametrize(
    ("made", "name", "hint"),
    [
        ((), "server", "Start `"),
        (("server.log", "worker.log"), "clerk", "There are: server, worker."),
    ],
)
def test_a_log_that_is_not_there_is_an_error(
    call: Call, tmp_path: Path, made: tuple[str, ...], name: str, hint: str
) -> None:
    (tmp_path / "log").mkdir()
    for file in made:
        (tmp_path / "log" / file).touch()

    ended = call("logs", name, "--data", str(tmp_path))

    assert ended.code == 3
    assert hint in ended.err[0]


def test_a_terminal_shows_sentences_and_no_routine_lines(tmp_path: Path, call: Call) -> None:
    data = str(tmp_path / "data")
    with terminal("up", "--port", "0", "--data", data) as shown:
        shown.wait_for("Press Ctrl-C to stop.")
        assert call("say", "Hello?", "--data", data).code == 0
        shown.interrupt()
        shown.end()

    assert "run.started" not in shown.seen
    assert "runs_as_root" not in shown.seen
    assert "run.started" in (tmp_path / "data" / "log" / "server.log").read_text()


def test_a_level_that_was_asked_for_is_shown(tmp_path: Path, call: Call) -> None:
    data = str(tmp_path / "data")
    with terminal("up", "--port", "0", "--data", data, "--log-level", "info") as shown:
        shown.wait_for("Press Ctrl-C to stop.")
        assert call("say", "Hello?", "--data", data).code == 0
        shown.interrupt()
        shown.end()

    assert "run.started" in shown.seen


def test_a_pipe_has_the_sentences_of_a_terminal_and_no_routine_lines(
    start: Start, call: Call, tmp_path: Path
) -> None:
    running = start("up", "--port", "0", "--data", tmp_path)
    running.wait_until_ready()
    assert call("say", "Hello?", "--data", str(tmp_path)).code == 0
    ended = running.end(signal.SIGTERM)

    assert ended.out[-1] == "Stopped."
    assert not any("run.started" in line for line in ended.out + ended.err)
    assert "run.started" in (tmp_path / "log" / "server.log").read_text()


@pytest.mark.parametrize(
    ("name", "value"), [("BACKBURNER_LOG_LEVEL", "info"), ("BACKBURNER_LOG_FORMAT", "text")]
)
def test_a_service_manager_gets_every_line_when_the_settings_say_so(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    running = start("up", "--port", "0", "--data", tmp_path)
    running.wait_until_ready()
    ended = running.end(signal.SIGTERM)

    assert any("server.started" in line for line in ended.err)
    assert not any("server.started" in line for line in ended.out)


def test_log_lines_on_stderr_can_be_json(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_LOG_FORMAT", "json")
    running = start("up", "--port", "0", "--data", tmp_path)
    running.wait_until_ready()
    ended = running.end(signal.SIGTERM)

    events = [json.loads(line)["event"] for line in ended.err]
    assert "server.started" in events
