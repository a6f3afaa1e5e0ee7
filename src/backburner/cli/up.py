"""`backburner up`: everything in one process, for one machine."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from traceback import format_exception
from typing import Any, TypeVar

import click

from backburner import __version__, log
from backburner.app.running import run
from backburner.cli.main import in_one_line
from backburner.core.errors import BackburnerError
from backburner.settings import Settings, load, secret_names, variable

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def setting(name: str, metavar: str) -> Callable[[Decorated], Decorated]:
    """Make an option of a setting; its value is checked together with all other settings."""
    field = Settings.model_fields[name]
    note = " Others on this machine can see it on a command line." if name in secret_names() else ""
    return click.option(
        f"--{name.replace('_', '-')}",
        metavar=metavar,
        help=f"{field.description}{note} [{variable(name)}]",
    )


@click.command("up")
@setting("data", "FOLDER")
@setting("host", "ADDRESS")
@setting("port", "NUMBER")
@setting("config", "FILE")
@setting("database_url", "URL")
@setting("log_level", "LEVEL")
def command(**options: str | None) -> None:
    """Start Backburner on this machine."""
    settings = load(**options)
    log.set_up(level=settings.log_level, style=settings.log_format, secrets=settings.secrets())

    def announce(address: str) -> None:
        say(f"Backburner {__version__} is ready at {address}")
        say(f"Data: {settings.data}")
        say("Press Ctrl-C to stop.")

    def welcome(link: str) -> None:
        say(f"Sign in, once and within 15 minutes: {link}")

    # An interrupt arrives as an exception until the server has its own way to stop.
    with crashes_explained(settings), suppress(KeyboardInterrupt):
        run(settings, announce=announce, welcome=welcome)
    say("Stopped.")


def say(line: str) -> None:
    # Nobody may be reading, which is no reason to stop.
    with suppress(OSError):
        click.echo(line)


@contextmanager
def crashes_explained(settings: Settings) -> Iterator[None]:
    """Turn what nobody expected into one line that says where the rest of it is."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 (the outermost edge)
        cause = _cause(error)
        if isinstance(cause, BackburnerError):
            raise cause from None
        if settings.log_level == "debug":
            click.echo(log.clean("".join(format_exception(error))), err=True)
        raise BackburnerError(
            f"{log.clean(in_one_line(cause))}.",
            hint=_keep(error, settings.data),
        ) from None


def _cause(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _keep(error: Exception, folder: Path) -> str:
    try:
        return f"The details are in {log.keep_traceback(error, folder)}."
    except (OSError, ValueError):
        return "Start it with --log-level debug to see where."
