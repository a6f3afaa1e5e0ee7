"""The profiles whose model has an outage, as this process last saw them."""

import random
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta

#: Another process may have ended the outage meanwhile: it is looked at again after this long.
MAX_TRUST = timedelta(seconds=30)
#: Processes return to a profile whose outage is over at different times, within this period.
RETURN_PERIOD = timedelta(seconds=5)


class KnownOutages:
    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        spread: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._clock = clock
        self._spread = spread
        self._until: dict[str, float] = {}
        self._returning: set[str] = set()

    def update(self, probe_delays: Mapping[str, timedelta]) -> None:
        """Take over the profiles in an outage, each with the time until it may be probed."""
        if not self._until and not probe_delays:
            return
        now = self._clock()
        for name, left in probe_delays.items():
            self._until[name] = now + min(left, MAX_TRUST).total_seconds()
            self._returning.discard(name)
        for name in self._until.keys() - probe_delays.keys() - self._returning:
            self._until[name] = now + self._spread(0, RETURN_PERIOD.total_seconds())
            self._returning.add(name)

    @property
    def names(self) -> tuple[str, ...]:
        if not self._until:
            return ()
        now = self._clock()
        return tuple(sorted(name for name, until in self._until.items() if until > now))

    def added_to(self, full: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted({*full, *self.names}))
