"""The frame around `up`, `serve` and `worker`: load settings, log, run until stopped."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from traceback import format_exception

import click

from backburner import log
from backburner.app.program import Invocation, root_advice, run
from backburner.cli.command_name import command_name, name_commands
from backburner.cli.main import describe_bug
from backburner.cli.output import print_line
from backburner.core.errors import BackburnerError, BadSetting
from backburner.settings import Settings, load


def run_until_stopped(
    options: Mapping[str, str | None],
    banner: Callable[[Settings, str], Iterable[str]],
    *,
    needs_postgres: str = "",
    serves: bool = True,
    works: bool = True,
) -> None:
    """Run until SIGINT or SIGTERM.

    `banner` makes the lines printed when it is ready, from the settings and its address or the
    name of the worker. `needs_postgres` is the error with a SQLite database, for parts that share
    the database with other processes.
    """
    settings = load(**options)
    if needs_postgres and settings.database.get_secret_value().startswith("sqlite"):
        hint = "Set database_url, or use `backburner up`, which runs both in one process."
        raise BadSetting(needs_postgres, hint=hint)
    shown_level = _shown_level(settings)
    # Otherwise a line of the log says so.
    advice = root_advice(settings, works=works) if shown_level in ("warning", "error") else ""
    log.set_up(
        level=settings.log_level,
        style=settings.log_format,
        secrets=settings.secrets(),
        shown_level=shown_level,
    )

    def announce(name: str) -> None:
        for line in banner(settings, name):
            print_line(name_commands(line))
        if advice:
            click.echo(advice, err=True)

    def welcome(link: str) -> None:
        print_line(f"Sign in (once, within 15 minutes): {link}")

    # Before the program installs its signal handlers, a signal arrives as KeyboardInterrupt.
    with bugs_reported(settings), suppress(KeyboardInterrupt):
        run(
            settings,
            announce=announce,
            welcome=welcome,
            serves=serves,
            works=works,
            invocation=Invocation(command=command_name(), load_settings=lambda: load(**options)),
        )
    print_line("Stopped.")


def _shown_level(settings: Settings) -> str:
    """Show only warnings, unless the settings ask for log lines; the file has the rest."""
    is_asked_for = {"log_level", "log_format"} & settings.model_fields_set
    return settings.log_level if is_asked_for else "warning"


@contextmanager
def bugs_reported(settings: Settings) -> Iterator[None]:
    """Turn an unexpected error into one line that names the file with its traceback."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 (the outermost edge)
        cause = _first_cause(error)
        if isinstance(cause, BackburnerError):
            raise cause from None
        if settings.log_level == "debug":
            click.echo(log.clean("".join(format_exception(error))), err=True)
        raise BackburnerError(
            f"{log.clean(describe_bug(cause))}.",
            hint=_save_traceback(error, settings.data),
        ) from None


def _first_cause(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _save_traceback(error: Exception, folder: Path) -> str:
    try:
        return f"The traceback is in {log.save_traceback(error, folder)}."
    except (OSError, ValueError):
        return "Start it with --log-level debug for a traceback."
