"""Asks before something that cannot be undone."""

import sys

import click

from backburner.cli.output import printable
from backburner.core.errors import BadRequest

yes_option = click.option("--yes", "is_sure", is_flag=True, help="Do not ask for confirmation.")


def confirm(question: str, *, is_sure: bool) -> None:
    """Ask, unless `--yes` was given; without a terminal, `--yes` is required."""
    if is_sure:
        return
    if not sys.stdin.isatty():
        raise BadRequest(f"{printable(question)} There is no terminal to ask.", hint="Add --yes.")
    click.confirm(printable(question), default=False, abort=True)
