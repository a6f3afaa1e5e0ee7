"""What reaches a run while it is under way, and makes it end."""

import asyncio
from enum import StrEnum


class StopReason(StrEnum):
    """Why a run is to end before it is done; the first of those it has counts."""

    FENCED = "fenced"  #: Another holder has its turn: nothing of it may be written.
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    SPENT = "spent"  #: What may be spent has been spent.
    WAITS = "waits"  #: Others are about to spend what is left; they may leave something.
    ASKED = "asked"  #: A call needs its owner's consent.
    BLOCKED = "blocked"  #: It waits for jobs, and holds nothing meanwhile.
    PERSON = "person"  #: Somebody waits for a reply, and this is in the way.
    LEAVING = "leaving"  #: The process stops now.
    DRAINING = "draining"  #: The process is to stop.


#: These do not wait until the agent comes to a tool call.
IMMEDIATE_REASONS = frozenset(
    {
        StopReason.FENCED,
        StopReason.CANCELLED,
        StopReason.TIMEOUT,
        StopReason.SPENT,
        StopReason.LEAVING,
    }
)


class StopRequests:
    def __init__(self) -> None:
        self._given: set[StopReason] = set()
        self._changed = asyncio.Event()

    def give(self, reason: StopReason) -> None:
        if reason not in self._given:
            self._given.add(reason)
            self._changed.set()

    @property
    def reason(self) -> StopReason | None:
        return next((reason for reason in StopReason if reason in self._given), None)

    async def wait(self) -> None:
        """Wait until there is a reason, or a further one."""
        await self._changed.wait()
        self._changed.clear()
