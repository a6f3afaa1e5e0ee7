"""The log in a file: private, of limited size, and no reason to stop."""

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from backburner import log
from backburner.log_file import RotatingLogFile, old_paths

SECRET = "sk-canary-271828182845904"  # noqa: S105 (of nobody)


@pytest.fixture(autouse=True)
def _closed_file(restore_logging: None) -> Iterator[None]:
    del restore_logging
    yield
    log.close_file()


def write(handler: logging.Handler, *lines: str) -> None:
    for line in lines:
        handler.emit(logging.makeLogRecord({"msg": line, "levelno": logging.INFO}))


def test_the_file_has_what_stderr_does_not_show_and_no_secrets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log.set_up(level="info", style="text", secrets=[SECRET], shown_level="warning")
    log.open_file(tmp_path / "log", "server")
    structlog.get_logger("test").info("run.started", key=SECRET)
    structlog.get_logger("test").debug("run.detail")
    log.close_file()

    (line,) = (tmp_path / "log" / "server.log").read_text().splitlines()
    assert "run.started" in line
    assert log.REPLACEMENT in line
    assert SECRET not in line
    assert "\x1b" not in line
    assert capsys.readouterr().err == ""


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    file = RotatingLogFile(tmp_path / "log", "server", max_bytes=10)
    write(file, "a" * 6, "b" * 6)
    file.close()

    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == 0o700
    files = list((tmp_path / "log").iterdir())
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert {path.name for path in files} == {"server.log", "server.log.1", ".server.lock"}


def test_old_files_are_few(tmp_path: Path) -> None:
    file = RotatingLogFile(tmp_path, "server", max_bytes=10, old_files=3)
    write(file, *(f"{number}{'.' * 20}" for number in range(9)))
    file.close()

    path = tmp_path / "server.log"
    assert [one.read_text()[0] for one in (path, *old_paths(path))] == ["8", "7", "6", "5"]
    assert len(list(tmp_path.glob("server.log*"))) == 4


def test_each_process_has_a_file_of_its_own(tmp_path: Path) -> None:
    first, second = RotatingLogFile(tmp_path, "worker"), RotatingLogFile(tmp_path, "worker")
    write(first, "first")
    write(second, "second")
    first.close()
    third = RotatingLogFile(tmp_path, "worker")
    write(third, "third")

    assert (tmp_path / "worker.log").read_text() == "first\nthird\n"
    assert (tmp_path / "worker-2.log").read_text() == "second\n"
    second.close()
    third.close()


def test_a_disk_that_is_full_stops_nothing_and_later_lines_are_written(tmp_path: Path) -> None:
    log.set_up(level="info", style="text")
    file = RotatingLogFile(tmp_path, "server")
    assert file.stream is not None
    descriptor = file.stream.fileno()
    kept, full = os.dup(descriptor), os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, descriptor)
    write(file, "One more.", "And another.")
    os.dup2(kept, descriptor)
    write(file, "There is room again.")
    file.close()
    os.close(kept)
    os.close(full)

    assert (tmp_path / "server.log").read_text().endswith("There is room again.\n")


def test_without_a_file_stderr_has_every_line_and_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log").write_text("in the way")
    log.set_up(level="info", style="text", shown_level="warning")

    log.open_file(tmp_path / "log", "server")
    structlog.get_logger("test").info("run.started")

    assert (tmp_path / "log").read_text() == "in the way"
    failed, started = capsys.readouterr().err.splitlines()
    assert "log.file_failed" in failed
    assert str(tmp_path / "log") in failed
    assert "run.started" in started
