"""Connections to those who do not take what they are sent, and how they end."""

import asyncio
from datetime import timedelta

from uvicorn.protocols.http.h11_impl import H11Protocol


def ends_when_stalled(after: timedelta) -> type[asyncio.Protocol]:
    """Make a kind of connection that is cut once it has taken nothing for so long.

    It would be kept otherwise, with what is to be sent: also one that is closed waits for that.
    """

    class Impatient(H11Protocol):
        _cut: asyncio.TimerHandle | None = None

        def pause_writing(self) -> None:
            super().pause_writing()
            self._stop_waiting()
            self._cut = self.loop.call_later(after.total_seconds(), self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            self._stop_waiting()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def _stop_waiting(self) -> None:
            if self._cut is not None:
                self._cut.cancel()
                self._cut = None

    return Impatient
