"""The `backburner` command, and the one place where errors become a line and an exit code."""

import importlib
import os
import signal
import sys
import traceback
from collections.abc import Sequence

import click
from click.exceptions import NoArgsIsHelpError
from click.shell_completion import CompletionItem

from backburner import __version__
from backburner.cli.command_name import command_name, name_commands
from backburner.cli.list_group import HELP_OPTIONS
from backburner.core.errors import BackburnerError, BadRequest, Conflict, NotFound
from backburner.core.validation import escape_unprintable
from backburner.garbage import without_collection

#: The help line of each command, kept here so that listing the commands does not import them.
GROUPS = {
    "Talk": {
        "say": "Send a message and print the reply.",
        "stop": "Stop a reply.",
        "conversations": "Manage conversations.",
        "models": "Manage the models of conversations.",
        "summary": "Show or delete the summary of a long conversation.",
        "fresh": "Let the agent start afresh, without outside text.",
        "memories": "Manage memories.",
        "mcp": "Serve the tools over stdio (MCP).",
    },
    "Work": {
        "tasks": "Manage tasks.",
        "jobs": "Manage jobs.",
        "schedule": "Set, preview or clear the schedule of a conversation.",
        "agents": "List the agents that jobs and tasks can name.",
        "runs": "List the last runs, or show one.",
        "upcoming": "List what will run.",
        "watch": "Watch work as it happens.",
        "pause": "Pause background work.",
        "resume": "Resume background work.",
        "run-now": "Run background work now.",
        "stop-run": "Stop a run of recurring work.",
        "cancel": "Cancel background work permanently.",
        "discovery": "Turn discovery on or off.",
        "files": "Manage the files of messages and of tools.",
        "folders": "Manage the folders that agents may work in.",
        "connect": "Connect to an MCP server, or sign in to one again.",
        "connections": "Manage connections to MCP servers.",
        "disconnect": "Remove a connection.",
    },
    "Answer": {
        "questions": "List open questions, or show one.",
        "answer": "Answer a question.",
        "approve": "Say yes to a proposed task, a call or a question.",
        "reject": "Say no to a proposed task, a call or a question.",
        "snooze": "Put off the reminder of a question.",
        "grants": "Manage the calls that agents may make without asking.",
        "away": "Show what happened while you were away.",
        "notices": "List notices.",
    },
    "Account": {
        "me": "Show your settings, or change them.",
        "spend": "Show what you have spent.",
        "user": "Manage user accounts.",
        "token": "Manage API tokens.",
        "sessions": "Manage your sessions in browsers.",
        "push": "Manage the browsers that take push messages.",
        "export": "Export all your data as JSON.",
        "erase": "Erase your account and all your data.",
    },
    "Operate": {
        "up": "Start the server and a worker on this machine.",
        "setup": "Set up a model.",
        "doctor": "Check this installation and suggest fixes.",
        "status": "Show the state of the server and your work.",
        "overview": "Show workers, queue, models and database (operators only).",
        "failures": "List what failed last, of all users (operators only).",
        "logs": "Show the log of the server.",
        "db": "Back up, restore, check or migrate the database.",
        "vault": "Manage the keys that seal secrets.",
        "serve": "Start a server without a worker (PostgreSQL only).",
        "worker": "Start a worker without a server (PostgreSQL only).",
        "completion": "Print the shell completion script.",
    },
}
COMMANDS = {name: text for group in GROUPS.values() for name, text in group.items()}
#: Modules of the commands that do not have one of their own name.
MODULES = {
    "up": "serve",
    "worker": "serve",
    "away": "status",
    "files": "work.files",
    "folders": "work.folders",
    "connect": "connections.connect",
    "connections": "connections.connections",
    "disconnect": "connections.connect",
    "watch": "status",
    "agents": "jobs",
    "runs": "views.runs",
    "upcoming": "views.upcoming",
    "summary": "conversations",
    "stop": "say",
    "reject": "approve",
    "answer": "questions",
    "pause": "pause_resume",
    "resume": "pause_resume",
    "run-now": "pause_resume",
    "stop-run": "pause_resume",
    "cancel": "pause_resume",
    "fresh": "pause_resume",
    "user": "accounts",
    "token": "accounts",
    "export": "personal_data",
    "erase": "personal_data",
    "me": "account.me",
    "spend": "account.spend",
    "sessions": "account.sessions",
    "push": "account.push",
    "models": "operate.models",
    "overview": "operate.overview",
    "failures": "operate.overview",
    "logs": "operate.logs",
    "vault": "operate.vault",
    "schedule": "work.schedule",
    "snooze": "work.snooze",
}
COMPLETE_VARIABLE = "_BACKBURNER_COMPLETE"
#: As shells report SIGINT.
INTERRUPTED = 130
EXIT_CODES = """\b
Exit codes: 0 success, 1 failure, 2 usage error, 3 not found,
4 conflict, 5 not signed in, 6 server unavailable."""


class LazyGroup(click.Group):
    """Imports a command when it is used: most need libraries that are slow to import."""

    def list_commands(self, _context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        with without_collection():
            module = importlib.import_module(f"backburner.cli.commands.{MODULES.get(name, name)}")
        command: click.Command = getattr(module, name.replace("-", "_"))
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(context, args)
        except click.NoSuchCommand as error:
            # With those that are not imported, so that similar ones are named.
            raise click.NoSuchCommand(
                error.command_name, possibilities=COMMANDS, ctx=context
            ) from None

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in GROUPS.items():
            with formatter.section(title):
                # One width for all groups, so that the texts stand below each other.
                width = max(map(len, COMMANDS))
                formatter.write_dl([(name.ljust(width), text) for name, text in commands.items()])

    def shell_complete(self, context: click.Context, incomplete: str) -> list[CompletionItem]:
        items = [
            CompletionItem(name, help=text)
            for name, text in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return items + click.Command.shell_complete(self, context, incomplete)


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": list(HELP_OPTIONS)},
)
@click.version_option(__version__, message="Backburner %(version)s")
@click.pass_context
def backburner(context: click.Context) -> None:
    """Conversations that keep working after you stop typing."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> None:
    # Until a command handles signals itself, SIGTERM acts like Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = backburner.main(
            arguments,
            prog_name=command_name(),
            complete_var=COMPLETE_VARIABLE,
            standalone_mode=False,
        )
    except BackburnerError as error:
        sys.exit(fail(str(error), code=exit_code(error)))
    except NoArgsIsHelpError as error:
        # A group whose command is missing.
        click.echo(error.format_message())
        sys.exit(0)
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else _command_path(arguments)
        text = " ".join(error.format_message().split())
        text = text if text.endswith((".", "?", ")")) else f"{text}."
        sys.exit(fail(f"{text} Run `{path} --help` for usage.", code=2))
    except click.ClickException as error:
        sys.exit(fail(error.format_message(), code=error.exit_code))
    except (click.Abort, KeyboardInterrupt):
        sys.exit(fail("Interrupted.", code=INTERRUPTED))
    except Exception as error:  # noqa: BLE001 (the outermost edge)
        if os.environ.get("BACKBURNER_LOG_LEVEL") == "debug":
            traceback.print_exc()
        hint = "Set BACKBURNER_LOG_LEVEL=debug for a traceback."
        sys.exit(fail(f"{describe_bug(error)}. {hint}", code=1))
    sys.exit(code or 0)


def _command_path(arguments: Sequence[str] | None) -> str:
    """Name the command of arguments, where click does not: an option had no value."""
    path = command_name()
    command: click.Command = backburner
    context = click.Context(backburner)
    for word in sys.argv[1:] if arguments is None else arguments:
        found = command.get_command(context, word) if isinstance(command, click.Group) else None
        if found is None:
            break
        path, command = f"{path} {word}", found
    return path


def exit_code(error: BackburnerError) -> int:
    codes: tuple[tuple[type[BackburnerError], int], ...]
    codes = (BadRequest, 2), (NotFound, 3), (Conflict, 4)
    default = next((code for kind, code in codes if isinstance(error, kind)), 1)
    return getattr(error, "exit_code", default)


def describe_bug(error: BaseException) -> str:
    """Describe an unexpected error in one line."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return f"This is a bug in Backburner: {text}"


def fail(message: str, *, code: int) -> int:
    # It may quote what an agent has written.
    click.echo(escape_unprintable(name_commands(message)), err=True)
    return code
