"""What the commands share that start something: options of settings, and the frame around a run."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from traceback import format_exception
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click

from backburner import log
from backburner.app.running import run
from backburner.cli.main import in_one_line
from backburner.core.errors import BackburnerError, BadSetting
from backburner.settings import Settings, load, secret_names, variable

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def setting(name: str, metavar: str) -> Callable[[Decorated], Decorated]:
    """Make an option of a setting; its value is checked together with all other settings."""
    field = Settings.model_fields[name]
    is_secret = name in secret_names()
    note = f" Others can see a command line; {_elsewhere(name)}" if is_secret else ""
    return click.option(
        f"--{name.replace('_', '-')}",
        metavar=metavar,
        help=f"{field.description}{note} [{variable(name)}]",
        callback=_warn if is_secret else None,
    )


def _elsewhere(name: str) -> str:
    return f"set {variable(name)}, or {variable(name)}_FILE to a file with it."


def _warn(_: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Say so where everybody on the machine can read a password."""
    # What is no address is refused later, in words.
    with suppress(ValueError):
        if value and urlsplit(value).password:
            name = option.name or ""
            click.echo(
                f"Others on this machine can see the password in {option.opts[0]}:"
                f" {_elsewhere(name)}",
                err=True,
            )
    return value


def start(
    options: Mapping[str, str | None],
    words: Callable[[Settings, str], Iterable[str]],
    *,
    apart: str = "",
    serves: bool = True,
    works: bool = True,
) -> None:
    """Run until a signal says stop, and say what whoever started it needs to know.

    `words` is said when it is ready, of its address or its name. `apart` is why a SQLite file will
    not do, where something else has to have it open as well.
    """
    settings = load(**options)
    if apart and settings.database.get_secret_value().startswith("sqlite"):
        hint = "Set database_url, or use `backburner up`, which serves and works in one."
        raise BadSetting(apart, hint=hint)
    log.set_up(level=settings.log_level, style=settings.log_format, secrets=settings.secrets())

    def announce(what: str) -> None:
        for line in words(settings, what):
            say(line)

    def welcome(link: str) -> None:
        say(f"Sign in, once and within 15 minutes: {link}")

    # An interrupt arrives as an exception until the program has its own way to stop.
    with crashes_explained(settings), suppress(KeyboardInterrupt):
        run(settings, announce=announce, welcome=welcome, serves=serves, works=works)
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
