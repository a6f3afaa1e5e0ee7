"""Requests to stop a run before it is done, and their order of precedence."""

import asyncio
from enum import StrEnum


class StopReason(StrEnum):
    """Why a run has to end early; of several reasons the first in this list counts."""

    FENCED = "fenced"  #: Another holder has the turn: nothing of this run may be written.
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    REPEATING = "repeating"  #: The agent makes the same call again and again.
    SPENT = "spent"  #: An allowance is used up.
    BUDGET_RESERVED = "budget reserved"  #: Other runs reserve the rest: try later.
    APPROVAL = "approval"  #: A tool call needs the owner's consent.
    IN_DOUBT = "in doubt"  #: Nobody knows whether a call on a connection was made.
    INPUT_NEEDED = "input needed"  #: A server asks the user something during a call.
    SIGNED_OUT = "signed out"  #: A connection needs its owner to sign in again.
    WAITING_FOR_JOBS = "waiting for jobs"  #: Nothing is held meanwhile.
    USER_WAITING = "user waiting"  #: A user waits for a reply, and this run is in the way.
    SHUTDOWN = "shutdown"  #: The process stops now.
    DRAINING = "draining"  #: The process is asked to stop.


#: Reasons that do not wait for a tool call in progress.
IMMEDIATE_REASONS = frozenset(
    {
        StopReason.FENCED,
        StopReason.CANCELLED,
        StopReason.TIMEOUT,
        StopReason.SPENT,
        StopReason.SHUTDOWN,
    }
)


class StopRequests:
    """The reasons why one run has to stop."""

    def __init__(self) -> None:
        self._reasons: set[StopReason] = set()
        self._changed = asyncio.Event()

    def request(self, reason: StopReason) -> None:
        if reason not in self._reasons:
            self._reasons.add(reason)
            self._changed.set()

    @property
    def reason(self) -> StopReason | None:
        return next((reason for reason in StopReason if reason in self._reasons), None)

    async def wait(self) -> None:
        """Wait for a reason, or for a further one."""
        await self._changed.wait()
        self._changed.clear()
