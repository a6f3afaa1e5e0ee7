"""Threads of the page, for what takes long: on the loop of requests everybody would wait for it.

A thread that works holds the interpreter, for milliseconds at a time, so there are few.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

_threads = ThreadPoolExecutor(2, thread_name_prefix="page")


async def run_off_loop(work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(_threads, work)


def check_off_loop() -> None:
    """Refuse to do on the loop what a message or a server can make long."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("This holds up all requests: pass a function to `respond`.")
