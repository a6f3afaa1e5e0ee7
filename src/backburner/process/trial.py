"""A trial of what the system gives to commands: its answer is kept, and a missing one is not."""

import time
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

import structlog

_Answer = TypeVar("_Answer")

#: After a trial without an answer, such as on a busy machine.
RETRY_SECONDS = 300

_log = structlog.get_logger(__name__)


class SystemTrial(Generic[_Answer]):
    """Asks once, and again later if there was no answer. The first call blocks."""

    def __init__(
        self, event: str, ask: Callable[[], _Answer | None], *, otherwise: _Answer
    ) -> None:
        self._event = event
        self._ask = ask
        self._otherwise = otherwise
        self._answer: _Answer | None = None
        self._next = float("-inf")
        #: One thread at a time asks.
        self._lock = Lock()

    def result(self, now: float | None = None) -> _Answer:
        now = time.monotonic() if now is None else now
        with self._lock:
            if self._answer is None and now >= self._next:
                self._answer = self._ask()
                self._next = now + RETRY_SECONDS
                self._report()
            return self._otherwise if self._answer is None else self._answer

    def _report(self) -> None:
        # Programs without a log, such as `doctor`, report it themselves.
        if not structlog.is_configured():
            return
        if self._answer is None:
            _log.warning(self._event, given=None, retry_in=RETRY_SECONDS)
        else:
            _log.info(self._event, given=self._answer)
