"""SIGINT and SIGTERM."""

import asyncio
import os
import signal
from collections.abc import Callable


def stop_on_signals(stop: Callable[[], None]) -> None:
    """Call `stop` at the first signal, and exit at once at the second."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)

    def stop_once() -> None:
        stop()
        for number in signals:
            loop.remove_signal_handler(number)
            # Not through the loop, which may be what hangs.
            signal.signal(number, lambda *_: os._exit(130))

    for number in signals:
        loop.add_signal_handler(number, stop_once)
