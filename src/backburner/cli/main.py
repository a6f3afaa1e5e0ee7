"""The command `backburner`, and the one place where its errors become a line and an exit code."""

import importlib
import os
import signal
import sys
import traceback
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem

from backburner import __version__
from backburner.core.errors import BackburnerError, BadRequest, Conflict, NotFound

#: One line each, kept here so that listing the commands does not load them.
COMMANDS = {
    "up": "Start Backburner on this machine.",
    "setup": "Set up a model, or replace the one that is there.",
    "doctor": "See what works here, and what to do about what does not.",
    "say": "Say something, and see the reply as it comes.",
    "status": "See how things stand.",
    "away": "See what happened while you were away.",
    "conversations": "List conversations, or show one.",
    "tasks": "List tasks, or set up, look at, try, steer and cancel one.",
    "approve": "Say yes to a proposed task.",
    "reject": "Say no to a proposed task.",
    "runs": "List what was done in a conversation, or show one run.",
    "questions": "List what waits for your answer.",
    "answer": "Answer a question.",
    "grants": "See, widen or take back what may be done without asking.",
    "pause": "Let background work stand still.",
    "resume": "Let background work go on.",
    "run-now": "Do background work at once.",
    "cancel": "Stop background work for good.",
    "jobs": "List jobs, or start, show, await, resume, cancel and clear them.",
    "notices": "List what you were told.",
    "memories": "See to what is remembered across conversations.",
    "discovery": "Let the agent look for work to propose, or not.",
    "user": "See to accounts: who there is, and how they get in.",
    "token": "Make, list and revoke tokens for programs.",
    "mcp": "Let an editor or another agent use the tools, over its pipes.",
    "export": "Take out everything that is yours.",
    "erase": "Erase everything that is yours, for good.",
    "db": "Copy, put back, check or migrate the database.",
    "serve": "Start a server without a worker, on one PostgreSQL.",
    "worker": "Start a worker beside others on one PostgreSQL.",
    "completion": "Print what lets your shell complete commands.",
}
#: Commands that share a file.
TOGETHER = {
    **dict.fromkeys(("pause", "resume", "run-now", "cancel"), "pause_resume"),
    **dict.fromkeys(("approve", "reject"), "approve"),
}
EXIT_CODES = """\b
Exit codes: 0 done, 1 it failed, 2 wrong usage, 3 not found,
4 it does not fit the way things are, 5 not signed in, 6 no server."""


class LateGroup(click.Group):
    """Loads a command when it is used: most of them need libraries that take their time."""

    def list_commands(self, _context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"backburner.cli.commands.{TOGETHER.get(name, name)}")
        command: click.Command = module.commands[name] if name in TOGETHER else module.command
        return command

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, context: click.Context, incomplete: str) -> list[CompletionItem]:
        found = [
            CompletionItem(name, help=words)
            for name, words in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, context, incomplete)


@click.group(cls=LateGroup, invoke_without_command=True, epilog=EXIT_CODES)
@click.version_option(__version__, message="Backburner %(version)s")
@click.pass_context
def backburner(context: click.Context) -> None:
    """Conversations that keep working after you stop typing."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> None:
    # Until a command has its own way to stop, both ways to ask for it are one.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        done = backburner.main(arguments, prog_name="backburner", standalone_mode=False)
    except BackburnerError as error:
        sys.exit(fail(str(error), code=exit_code(error)))
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "backburner"
        sys.exit(fail(f"{error.format_message()} `{path} --help` lists what there is.", code=2))
    except click.ClickException as error:
        sys.exit(fail(error.format_message(), code=error.exit_code))
    except (click.Abort, KeyboardInterrupt):
        sys.exit(fail("Stopped.", code=130))
    except Exception as error:  # noqa: BLE001 (the outermost edge)
        if os.environ.get("BACKBURNER_LOG_LEVEL") == "debug":
            traceback.print_exc()
        hint = "Set BACKBURNER_LOG_LEVEL=debug to see where."
        sys.exit(fail(f"{in_one_line(error)}. {hint}", code=1))
    sys.exit(done or 0)


def exit_code(error: BackburnerError) -> int:
    """Tell scripts what kind of error it was."""
    codes: tuple[tuple[type[BackburnerError], int], ...]
    codes = (BadRequest, 2), (NotFound, 3), (Conflict, 4)
    known = next((code for kind, code in codes if isinstance(error, kind)), 1)
    return getattr(error, "exit_code", known)


def in_one_line(error: BaseException) -> str:
    """Tell of an error that nobody expected."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return f"Backburner stopped because of a fault of its own: {text}"


def fail(why: str, *, code: int) -> int:
    click.echo(why, err=True)
    return code
