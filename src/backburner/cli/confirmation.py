"""Asks before something is lost or cut off; docs/how-to/command-line.md says when."""

import sys

import click

from backburner.cli.output import printable
from backburner.core.errors import BackburnerError, BadRequest

yes_option = click.option("--yes", "is_sure", is_flag=True, help="Do not ask for confirmation.")


class Declined(BackburnerError):
    """Nothing was changed."""


def confirm(question: str, *, is_sure: bool, hint: str = "Add --yes.") -> None:
    """Ask, unless `--yes` was given; without a terminal it is refused, with the hint."""
    if is_sure:
        return
    if not sys.stdin.isatty():
        raise BadRequest(f"{printable(question)} There is no terminal to ask.", hint=hint)
    # On stderr: stdout may be a file that gets the result.
    if not click.confirm(printable(question), default=False, err=True):
        raise Declined
