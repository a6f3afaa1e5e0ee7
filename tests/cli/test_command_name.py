"""Hints name the program the way it was started."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.programs.programs import Ended

from backburner.cli.command_name import COMMAND_VARIABLE, command_name
from backburner.cli.commands.say import Reply

DEV = "python3 dev.py run"


@pytest.fixture(autouse=True)
def _unnamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(COMMAND_VARIABLE, raising=False)


def test_the_name_is_the_one_that_starts_it_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "some folder" / "backburner"
    program.parent.mkdir()
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", "/nowhere")

    monkeypatch.setattr(sys, "argv", [str(program)])
    assert command_name() == f"'{program}'"
    monkeypatch.setenv("PATH", str(program.parent))
    assert command_name() == "backburner"
    monkeypatch.setattr(sys, "argv", ["/lib/backburner/__main__.py"])
    assert command_name() == f"{sys.executable} -m backburner"
    monkeypatch.setenv(COMMAND_VARIABLE, DEV)
    assert command_name() == DEV


def test_errors_usage_and_findings_use_it(
    call: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COMMAND_VARIABLE, DEV)
    monkeypatch.setenv("BACKBURNER_DATA", str(tmp_path))
    missing, mistyped = call("status"), call("tasks", "--wrong")
    usage, found = call("tasks", "--help"), call("doctor", "--offline")
    client = call("mcp", "--help")

    assert f"Start it with `{DEV} up`" in missing.err[0]
    assert f"Run `{DEV} tasks" in mistyped.err[0]
    assert usage.out[0].startswith(f"Usage: {DEV} tasks")
    assert any(f"`{DEV} setup`" in line for line in found.out)
    # A client starts it from any folder.
    script = Path(sys.executable).with_name("backburner")
    assert any(f"claude mcp add backburner -- {script} mcp" in line for line in client.out)


@pytest.mark.parametrize("end", ["`ls`", "Run `backburner", "`backburner setup`", "`", "`b\n"])
def test_a_reply_is_printed_as_it_was_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setenv(COMMAND_VARIABLE, DEV)
    pieces = ["Run `back", "burner", " set", "up`. ", end]
    at = [len("".join(pieces[:number])) for number in range(len(pieces))]
    deltas = [("delta", {"text": piece, "at": at[n]}) for n, piece in enumerate(pieces)]
    text = "".join(pieces)
    done = ("done", {"messages": [{"role": "assistant", "content": text}]})
    Reply(echo=True).follow(iter([*deltas, done]))

    assert capsys.readouterr().out == f"{text}\n"


def test_why_a_reply_comes_later_uses_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COMMAND_VARIABLE, DEV)
    Reply(echo=True).follow(iter([("later", {"detail": "Run `backburner setup`."})]))

    assert capsys.readouterr().out == f"Run `{DEV} setup`.\n"
