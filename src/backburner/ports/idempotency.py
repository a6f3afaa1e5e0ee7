"""What was answered to requests that carry a key of their sender's."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from backburner.core.ids import UserId


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A request that came with a key before."""

    #: Digest of the request.
    request: str
    #: None: nobody has answered it yet.
    status: int | None
    body: str | None
    begun_at: datetime


class StoredResponses(Protocol):
    def begin(
        self, user: UserId, key: str, request: str, *, now: datetime
    ) -> StoredResponse | None:
        """Take a key; if it was taken before, give what is known. None: it is the caller's now."""

    def keep(self, user: UserId, key: str, status: int, body: str) -> None: ...
    def release(self, user: UserId, key: str) -> None:
        """Let a key be used again, since nothing was done."""

    def prune(self, *, before: datetime, limit: int) -> int: ...
