"""Calls that were made on connections, for their owner to look at."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from backburner.core.ids import CallId, ConnectionId, ConversationId, RunId


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
