"""The command itself: its help, its version, and what becomes of an error nobody expected."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.programs.programs import Ended, Start

from backburner import __version__, log
from backburner.cli.server_main import crashes_explained
from backburner.core.errors import BackburnerError, Conflict
from backburner.settings import load

pytestmark = pytest.mark.starts

HEAVY = ("fastapi", "pydantic", "sqlalchemy", "structlog", "uvicorn")


def test_help_names_the_commands_without_loading_them(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    ended = start("--help").end()
    imported = {line.rsplit("|", 1)[-1].strip() for line in ended.err}

    assert ended.code == 0
    assert any("up " in line for line in ended.out)
    assert "click" in imported
    assert imported.isdisjoint(HEAVY)


def test_the_version_is_told(call: Callable[..., Ended]) -> None:
    ended = call("--version")

    assert (ended.code, ended.out) == (0, [f"Backburner {__version__}"])


@pytest.mark.parametrize("arguments", [["upp"], ["--wrong"], ["up", "wrong"]])
def test_a_mistyped_command_is_one_line(call: Callable[..., Ended], arguments: list[str]) -> None:
    ended = call(*arguments)

    assert ended.code == 2
    assert len(ended.err) == 1


def test_an_unexpected_error_becomes_one_line_and_a_file(tmp_path: Path) -> None:
    log.redact(["correct-horse"])
    with pytest.raises(BackburnerError) as caught, crashes_explained(load(data=tmp_path)):
        raise RuntimeError("this was\nnot expected: correct-horse")
    kept = (tmp_path / "crash.log").read_text()

    assert "this was not expected: [secret]" in str(caught.value)
    assert str(tmp_path / "crash.log") in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "Traceback" in kept
    assert "correct-horse" not in kept


def test_an_unexpected_error_shows_its_traceback_to_whoever_asked_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = load(data=tmp_path, log_level="debug")
    with pytest.raises(BackburnerError), crashes_explained(settings):
        raise RuntimeError("boom")

    assert "RuntimeError: boom" in capsys.readouterr().err


def test_an_error_raised_on_purpose_is_not_lost_among_the_parts(tmp_path: Path) -> None:
    with pytest.raises(Conflict), crashes_explained(load(data=tmp_path)):
        raise ExceptionGroup("parts", [Conflict()])

    assert not (tmp_path / "crash.log").exists()
