"""`--here`: for those whom no server lets in, and who sit at its machine."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click


def or_here(make: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a command that talks to a server print a way in from the database itself.

    `make` is the name of what makes it, in `app.helping`.
    """

    def decorate(talking: Callable[..., Any]) -> Callable[..., Any]:
        @click.option(
            "--here",
            is_flag=True,
            help="Ask no server: on this machine, while none has the data folder open, or with"
            " PostgreSQL. Without a login it is for the owner.",
        )
        @wraps(talking)
        def either(*, here: bool, login: str | None, **options: Any) -> Any:
            if not here:
                return talking(login=login, **options)
            if options["url"] or options["token_file"]:
                raise click.UsageError("--here asks no server.")
            return _print(make, login, options["data"])

        return either

    return decorate


def _print(make: str, login: str | None, data: str | None) -> None:
    # Late: whoever talks to a server needs none of it.
    from backburner.app import helping  # noqa: PLC0415
    from backburner.settings import load  # noqa: PLC0415

    found: helping.WayIn = getattr(helping, make)(load(data=data), login)
    # Apart from the link, which scripts read.
    click.echo(f"For {found.user.login or 'the owner, who has no login'}:", err=True)
    click.echo(found.link)
