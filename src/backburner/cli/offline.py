"""`--here`: create a link directly in the database, for operators who cannot sign in."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click


def or_here(make_link: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `--here` to a command that talks to a server.

    `make_link` names the function in `app.owner` that creates the link.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @click.option(
            "--here",
            is_flag=True,
            help="Write to the database on this machine instead of asking a server. With SQLite,"
            " stop the server first. Without LOGIN, the link is for the owner.",
        )
        @wraps(command)
        def wrapper(*, here: bool, login: str | None, **options: Any) -> Any:
            if not here:
                return command(login=login, **options)
            if options["url"] or options["token_file"]:
                raise click.UsageError("--here cannot be combined with --url or --token-file.")
            return _print_link(make_link, login, options["data"])

        return wrapper

    return decorate


def _print_link(make_link: str, login: str | None, data: str | None) -> None:
    # Imported late: the commands that ask a server need none of it.
    from backburner.app import owner  # noqa: PLC0415
    from backburner.settings import load  # noqa: PLC0415

    created: owner.UserLink = getattr(owner, make_link)(load(data=data), login)
    # On stderr, so that scripts read the link alone.
    click.echo(f"For {created.user.login or 'the owner, who has no login'}:", err=True)
    click.echo(created.link)
