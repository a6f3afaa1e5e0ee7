"""Calls that were made on connections, for their owner to look at: one by one, and counted."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from backburner.core.ids import CallId, ConnectionId, ConversationId, RunId
from backburner.core.validation import escape_hidden

#: Of what an agent was told of a failure.
MAX_TOLD_CHARS = 300


class CallOutcome(StrEnum):
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"  #: It may have been made, or may not.


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionCall:
    id: CallId
    connection_id: ConnectionId
    server: str
    tool: str
    conversation_id: ConversationId
    run_id: RunId
    #: Of server, tool, definition and arguments.
    digest: str
    outcome: CallOutcome
    started_at: datetime
    ended_at: datetime
    #: What its agent was told of a failure, in a line; perhaps in words of the server. As long as
    #: the run is kept: later nobody knows.
    told: str = ""


def cut_told(text: str) -> str:
    """Cut what an agent was told to a line that can be shown."""
    line = " ".join(text.split())
    shown = escape_hidden(line[:MAX_TOLD_CHARS])
    return f"{shown}…" if len(line) > MAX_TOLD_CHARS else shown


#: What a day of calls is divided into.
SLOT = timedelta(minutes=30)
DAY_SLOTS = 48
#: A call that takes longer is counted as slow.
SLOW_CALL = timedelta(seconds=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCounts:
    """The calls of a connection that began in one slot of time."""

    at: datetime
    calls: int = 0
    failed: int = 0
    unknown: int = 0
    slow: int = 0
    #: Of all calls together.
    took: timedelta = timedelta()


@dataclass(frozen=True, slots=True)
class CallsOfDay:
    """The calls of a connection in the last day, slot by slot, oldest first."""

    slots: Sequence[CallCounts]

    @property
    def calls(self) -> int:
        return sum(slot.calls for slot in self.slots)

    @property
    def failed(self) -> int:
        return sum(slot.failed for slot in self.slots)

    @property
    def unknown(self) -> int:
        return sum(slot.unknown for slot in self.slots)

    @property
    def slow(self) -> int:
        return sum(slot.slow for slot in self.slots)

    @property
    def average(self) -> timedelta | None:
        """The duration of a call; None: there was none."""
        took = sum((slot.took for slot in self.slots), timedelta())
        return took / self.calls if self.calls else None

    @property
    def is_slow(self) -> bool:
        """Whether most calls were slow."""
        return self.slow * 2 > self.calls


def start_of_day(now: datetime) -> datetime:
    """Return when the first slot begins; the last one has the present in it."""
    first = datetime.fromtimestamp(0, UTC)
    return first + SLOT * ((now - first) // SLOT - DAY_SLOTS + 1)


def fill_day(counted: Sequence[CallCounts], since: datetime) -> CallsOfDay:
    """Add the slots without calls."""
    known = {slot.at: slot for slot in counted}
    times = (since + SLOT * number for number in range(DAY_SLOTS))
    return CallsOfDay([known.get(at) or CallCounts(at=at) for at in times])
