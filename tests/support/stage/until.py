"""Waiting for facts that set no event: rows, files, and the ends of programs."""

import asyncio
from collections.abc import Callable

#: In seconds; only what is broken takes as long.
BOUND = 20


async def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(BOUND):
        while not condition():  # noqa: ASYNC110 (there is no event)
            await asyncio.sleep(0.005)
