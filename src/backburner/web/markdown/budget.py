"""Bounds of one parse, counted in steps, so that the same text always gives the same HTML."""

from collections.abc import MutableMapping
from typing import Any

#: A text that people write needs a step for ten characters or more.
_STEPS, _CHARS_OF_STEP = 20_000, 4


class TooComplex(Exception):
    """The text costs more to parse than a message is worth; it is shown as it is."""


class StepBudget:
    """Counts the steps of one parse."""

    def __init__(self, text: str) -> None:
        self._left = _STEPS + len(text) // _CHARS_OF_STEP

    def spend(self, steps: int = 1) -> None:
        self._left -= steps
        if self._left < 0:
            raise TooComplex


def spend(env: MutableMapping[str, Any], steps: int = 1) -> None:
    env["budget"].spend(steps)
