"""The command itself: its help, its version, and unexpected errors."""

from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from support.programs.programs import Ended, Start

from backburner import __version__, log
from backburner.cli.command_name import COMMAND_VARIABLE
from backburner.cli.main import COMMANDS, LazyGroup, backburner, fail
from backburner.cli.server_main import bugs_reported
from backburner.core.errors import BackburnerError, Conflict
from backburner.settings import load

pytestmark = pytest.mark.starts

#: Commands that print nothing or one value, or write a file or a stream.
ONE_VALUE = {
    *("mcp", "export", "erase", "db backup", "memories forget", "grants revoke"),
    *("discovery on", "discovery off", "discovery status", "token create", "token revoke"),
    *("conversations delete", "tasks delete", "sessions end", "user password"),
    "disconnect",
    "files get",
    "files delete",
    "folders remove",
    "push remove",
    *("user add", "user invite", "user uninvite", "user reset", "user disable", "user link"),
}
HEAVY = ("fastapi", "pydantic", "sqlalchemy", "structlog", "uvicorn")


def test_help_lists_the_commands_without_importing_them(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    ended = start("--help").end()
    imported = {line.rsplit("|", 1)[-1].strip() for line in ended.err}

    assert ended.code == 0
    assert any("up " in line for line in ended.out)
    assert "click" in imported
    assert imported.isdisjoint(HEAVY)


def test_each_command_has_its_help_line() -> None:
    assert isinstance(backburner, LazyGroup)
    context = click.Context(backburner)
    for name, text in COMMANDS.items():
        command = backburner.get_command(context, name)
        assert command is not None
        assert (command.name, (command.help or "").startswith(text.removesuffix("."))) == (
            name,
            True,
        )


def test_commands_are_listed_in_groups(call: Callable[..., Ended]) -> None:
    titles = [line for line in call("--help").out if line.endswith(":")]

    assert titles == ["Options:", "Talk:", "Work:", "Answer:", "Account:", "Operate:"]


def test_every_command_that_asks_a_server_prints_json() -> None:
    missing = [
        path
        for path, command in walk(backburner, "")
        if (options := {one.name for one in command.params}) >= {"url", "token_file"}
        and "as_json" not in options
    ]

    assert set(missing) == ONE_VALUE


def walk(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path.strip(), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from walk(inner, f"{path} {name}")


def test_the_version_is_printed(call: Callable[..., Ended]) -> None:
    ended = call("--version")

    assert (ended.code, ended.out) == (0, [f"Backburner {__version__}"])


@pytest.mark.parametrize("arguments", [["upp"], ["--wrong"], ["up", "wrong"]])
def test_a_mistyped_command_is_one_line(call: Callable[..., Ended], arguments: list[str]) -> None:
    ended = call(*arguments)

    assert ended.code == 2
    assert len(ended.err) == 1


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["task"], "No such command 'task'. (Did you mean one of: 'status', 'tasks'?) Run `"),
        (["memorys"], "No such command 'memorys'. Did you mean 'memories'? Run `backburner"),
        (["tasks", "ad"], "No such command 'ad'. Did you mean 'add'? Run `backburner tasks "),
        (["completion"], "Missing argument 'SHELL'. Choose from: bash, zsh, fish. Run `"),
        (["conversations", "--status", "odd"], "Invalid value for '--status': 'odd' is not "),
        (["conversations", "--kind", "odd"], "Invalid value for '--kind': 'odd' is not one of"),
        (["jobs", "--status", "odd"], "Invalid value for '--status': 'odd' is not one of"),
        (["away", "--since", "soon"], "Invalid value for '--since': 'soon' is not a time. Use"),
    ],
)
def test_a_wrong_argument_is_one_line_that_says_what_is_right(
    call: Callable[..., Ended],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    expected: str,
) -> None:
    monkeypatch.setenv(COMMAND_VARIABLE, "backburner")
    ended = call(*arguments)

    assert ended.code == 2
    (line,) = ended.err
    assert line.startswith(expected)


def test_a_group_without_a_command_prints_its_help_if_it_lists_nothing(
    call: Callable[..., Ended], talk: Callable[..., Ended]
) -> None:
    groups = [path for path, one in walk(backburner, "") if path and isinstance(one, click.Group)]
    listing = {
        "connections",
        "conversations",
        "tasks",
        "jobs",
        "models",
        "memories",
        "grants",
        "files",
        "folders",
    }
    for path in groups:
        bare = talk(path)
        assert (bare.code, bare.err) == (0, []), path
        is_help = any(line.startswith("Usage: ") for line in bare.out)
        assert is_help is (path not in {*listing, "push", "sessions"}), path
        assert call(path, "-h").out == call(path, "--help").out


def test_help_fits_80_columns_and_no_summary_of_a_command_is_cut() -> None:
    def texts(command: click.Command, path: str, parent: click.Context | None) -> Iterator[str]:
        context = click.Context(command, info_name=path, parent=parent, terminal_width=80)
        yield command.get_help(context)
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                if (inner := command.get_command(context, name)) is not None:
                    yield from texts(inner, name, context)

    lines = [line for text in texts(backburner, "bb", None) for line in text.splitlines()]

    # It names the path of the program.
    assert [line for line in lines if len(line) > 80 and "mcpServers" not in line] == []
    cut = [line for line in lines if line.endswith("...") and "Usage:" not in line]
    assert cut == []


@pytest.mark.usefixtures("restore_logging")
def test_an_unexpected_error_becomes_one_line_and_a_file(tmp_path: Path) -> None:
    log.set_up(level="info", style="text", secrets=["correct-horse"])
    with pytest.raises(BackburnerError) as caught, bugs_reported(load(data=tmp_path)):
        raise RuntimeError("this was\nnot expected: correct-horse")
    saved = (tmp_path / "crash.log").read_text()

    assert "this was not expected: [secret]" in str(caught.value)
    assert str(tmp_path / "crash.log") in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "Traceback" in saved
    assert "correct-horse" not in saved


def test_at_log_level_debug_an_unexpected_error_shows_its_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = load(data=tmp_path, log_level="debug")
    with pytest.raises(BackburnerError), bugs_reported(settings):
        raise RuntimeError("boom")

    assert "RuntimeError: boom" in capsys.readouterr().err


def test_an_expected_error_in_a_group_is_unwrapped(tmp_path: Path) -> None:
    with pytest.raises(Conflict), bugs_reported(load(data=tmp_path)):
        raise ExceptionGroup("parts", [Conflict()])

    assert not (tmp_path / "crash.log").exists()


def test_what_an_error_quotes_cannot_control_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert fail("Several questions match: Pay \x1b]0;mine\x07 \u202eelse.", code=2) == 2

    assert capsys.readouterr().err == (
        "Several questions match: Pay \\u001b]0;mine\\u0007 \\u202eelse.\n"
    )
