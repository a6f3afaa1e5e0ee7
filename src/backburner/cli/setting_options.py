"""Command-line options made from settings."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import click

from backburner.data_folder import variable
from backburner.settings import Settings, secret_names

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def setting(name: str, metavar: str) -> Callable[[Decorated], Decorated]:
    """Make an option of a setting; its value is validated with all other settings."""
    field = Settings.model_fields[name]
    is_secret = name in secret_names()
    note = f" Without a password, which others could see: {_alternative(name)}" if is_secret else ""
    return click.option(
        f"--{name.replace('_', '-')}",
        metavar=metavar,
        help=f"{field.description}{note} [{variable(name)}]",
        callback=_refuse_password if is_secret else None,
    )


def _alternative(name: str) -> str:
    return f"use {variable(name)} or {variable(name)}_FILE instead."


def _refuse_password(_: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Refuse a password among the arguments, which every program of this machine can read."""
    # A value that is not a URL is refused later, with a better message.
    with suppress(ValueError):
        url = urlsplit(value or "")
        if url.password or "password" in parse_qs(url.query):
            raise click.UsageError(
                f"Other programs can see the password in {option.opts[0]}:"
                f" {_alternative(option.name or '')}"
            )
    return value


def file_options(command: Decorated) -> Decorated:
    """Add the options that select the data folder, the settings file and the database."""
    for option in (
        setting("database_url", "URL"),
        setting("config", "FILE"),
        setting("data", "FOLDER"),
    ):
        command = option(command)
    return command
