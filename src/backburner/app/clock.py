"""The real clock."""

import time
from datetime import UTC, datetime


class Clock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def read(self) -> tuple[datetime, int]:
        """Return the time, and microseconds of a clock that stops during suspend."""
        return self.now(), time.monotonic_ns() // 1000
