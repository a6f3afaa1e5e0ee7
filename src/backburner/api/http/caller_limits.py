"""How much one caller may use: requests a minute, and connections that last.

Each server counts for itself. A client that is refused is told how long to wait.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from time import monotonic

from fastapi import Request

from backburner.api.http.problems import Problem
from backburner.core.ids import UserId

REQUESTS_PER_MINUTE = 600
MAX_CONNECTIONS = 10
#: Each takes twice as much memory as its file.
MAX_UPLOADS = 4
#: Of credentials that are remembered; above it, those that may send all they like are forgotten.
MAX_REMEMBERED = 10_000
RETRY_AFTER = timedelta(seconds=10)


class HeldRequest(StrEnum):
    STREAM = "stream"
    CALL = "call"  #: Of an MCP client; it may wait for work.
    UPLOAD = "upload"  #: Of a file, which is in memory as a whole.


@dataclass(slots=True)
class CallerLimits:
    requests_per_minute: int = REQUESTS_PER_MINUTE
    #: Of each kind, for each user.
    max_connections: int = MAX_CONNECTIONS
    clock: Callable[[], float] = monotonic
    #: By credential: how many requests it has left, and since when.
    _left: dict[str, tuple[float, float]] = field(default_factory=dict)
    _open: Counter[tuple[UserId, HeldRequest]] = field(default_factory=Counter)

    def count_request(self, credential: str) -> None:
        """Refuse a request above the rate. A pause earns a burst, of a minute's worth at most."""
        now, most = self.clock(), float(self.requests_per_minute)
        left, since = self._left.get(credential, (most, now))
        left = min(most, left + (now - since) * most / 60)
        if left < 1:
            raise Problem(
                429,
                f"This credential has sent more than {self.requests_per_minute} requests a minute.",
                "Wait, and send fewer.",
                retry_after=timedelta(seconds=(1 - left) * 60 / most),
            )
        self._left[credential] = (left - 1, now)
        if len(self._left) > MAX_REMEMBERED:
            self._left = {
                key: (count, at)
                for key, (count, at) in self._left.items()
                if count + (now - at) * most / 60 < most
            }

    def hold(self, user: UserId, kind: HeldRequest) -> AbstractContextManager[None]:
        """Refuse a connection above the limit, or return what counts it while it is open."""
        most = self.max_connections
        if kind is HeldRequest.UPLOAD:
            most = min(most, MAX_UPLOADS)
        if self._open[user, kind] >= most:
            raise Problem(
                429,
                f"You have {most} {kind}s open, and there may not be more.",
                f"End one of your {kind}s first.",
                retry_after=RETRY_AFTER,
            )
        return self._count(user, kind)

    @contextmanager
    def _count(self, user: UserId, kind: HeldRequest) -> Iterator[None]:
        self._open[user, kind] += 1
        try:
            yield
        finally:
            self._open[user, kind] -= 1
            if not self._open[user, kind]:
                del self._open[user, kind]


def get_limits(request: Request) -> CallerLimits:
    limits: CallerLimits = request.app.state.limits
    return limits
