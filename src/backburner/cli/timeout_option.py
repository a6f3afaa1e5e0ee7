"""Options for timeouts, and how a timeout is shown."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import click

from backburner.core.errors import BadRequest
from backburner.core.work.timeouts import (
    MAX_TIMEOUT,
    MIN_TIMEOUT,
    describe_timeout,
    parse_timeout,
)

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class TimeoutType(click.ParamType[float]):
    """A timeout such as `2h`, which becomes seconds."""

    name = "time"

    def __init__(self, shortest: timedelta = MIN_TIMEOUT, longest: timedelta = MAX_TIMEOUT) -> None:
        self._bounds = shortest, longest

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> float:
        try:
            return parse_timeout(str(value), *self._bounds).total_seconds()
        except BadRequest as error:
            self.fail(str(error), param, context)


def timeout_option(*, default: str = "") -> Callable[[Decorated], Decorated]:
    text = "How long a run may take: 20m, 3h; at most 24h."
    return click.option(
        "--timeout",
        metavar="TIME",
        type=TimeoutType(),
        help=f"{text} Default: the setting {default}." if default else text,
    )


def describe_seconds(seconds: float | None) -> str:
    return "" if seconds is None else describe_timeout(timedelta(seconds=seconds))
