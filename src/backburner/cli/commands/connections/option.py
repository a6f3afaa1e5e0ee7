"""`--connection`, of the commands that hand out work."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def connection_option(help_text: str) -> Callable[[Decorated], Decorated]:
    return click.option(
        "--connection", "connections", metavar="NAME", multiple=True, help=help_text
    )


may_use = connection_option("Connection that it may use; repeatable. [default: none]")
