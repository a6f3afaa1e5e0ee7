"""Failures of connections in one run, as its gate recorded them.

The agent is told in words and may do without. What becomes of the run is decided from this record.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from backburner.core.connections import access
from backburner.core.connections.offer import make_tool
from backburner.core.conversation import Conversation
from backburner.core.errors import CallInDoubt, ConnectionFailed, SignedOut
from backburner.core.ids import ConnectionId
from backburner.core.question import SKIP, Purpose
from backburner.core.run import Failure, FailureKind, Item, ItemKind, Turn
from backburner.core.tool_journal import JournalEntry
from backburner.core.tool_policy import Tool
from backburner.core.transitions.answers import FAILED_CONNECTIONS
from backburner.ports import ToolResult, Tx
from backburner.runs.stopping import StopReason


@dataclass(slots=True)
class ConnectionTroubles:
    #: The names of connections that the owner said to go on without.
    left_out: frozenset[str] = frozenset()
    #: Connections that need a sign-in, by their names.
    signed_out: dict[str, ConnectionId] = field(default_factory=dict)
    #: Why those that the work is about cannot be used at all, by their names.
    unusable: dict[str, str] = field(default_factory=dict)
    #: What failed for good, by the name of the connection.
    failed: dict[str, ConnectionFailed] = field(default_factory=dict)

    def refuse(self, tool: Tool) -> ToolResult | None:
        """Refuse a call on a connection that is of no use in this run any more."""
        if tool.connection is None:
            return None
        if tool.server in self.left_out:
            return _refusal(f"The owner said to continue without {tool.server}.")
        failed = self.failed.get(tool.server)
        return None if failed is None else _refusal(describe_failure(tool.server, failed))

    def note(
        self, tool: Tool, error: ConnectionFailed, *, may_repeat: bool
    ) -> tuple[ToolResult, StopReason | None]:
        """Record what went wrong; return what the agent is told, and why the run has to stop."""
        if isinstance(error, SignedOut) and tool.connection is not None:
            self.signed_out[tool.server] = tool.connection
            text = (
                f"{tool.server} cannot be called before its owner has signed in again. They are"
                " asked, and this work continues afterwards. End here."
            )
            return ToolResult(text, failed=True, stop=True), StopReason.SIGNED_OUT
        if isinstance(error, CallInDoubt) and not may_repeat:
            text = (
                f"{error.message} Nobody knows whether this call was made: the owner is asked."
                " End here, and do not make it again."
            )
            return ToolResult(text, failed=True, stop=True), StopReason.IN_DOUBT
        self.failed.setdefault(tool.server, error)
        return _refusal(describe_failure(tool.server, error)), None

    @property
    def failure(self) -> Failure | None:
        """The failure of a run that nobody watches; None: no connection failed for good."""
        if self.unusable:
            text = " ".join(self.unusable.values())
            return Failure(FailureKind.TOOL, text, connections=tuple(sorted(self.unusable)))
        if not self.failed:
            return None
        sentences = [f"{name}: {error.message}" for name, error in sorted(self.failed.items())]
        return Failure(
            FailureKind.TOOL,
            f"A connection kept failing. {' '.join(sentences)}",
            connections=tuple(sorted(self.failed)),
        )


def describe_failure(name: str, error: ConnectionFailed) -> str:
    return (
        f"{name} cannot be used in this run: {error.message} Do without it if you can, and do not"
        " call its tools again."
    )


def find_left_out(items: Iterable[Item]) -> frozenset[str]:
    """Find the connections that the owner said to go on without, in the answers of a run."""
    return frozenset(
        name
        for item in items
        if item.kind is ItemKind.ANSWER
        and item.content.get("purpose") == Purpose.FAILURE
        and item.content.get("answer") == SKIP
        for name in item.content.get("binds_to", {}).get(FAILED_CONNECTIONS, ())
    )


def find_receipts(
    past_calls: Iterable[JournalEntry], turn: Turn, items: Iterable[Item]
) -> list[JournalEntry]:
    """Find the calls that must not be made again: of earlier attempts, and of the run itself those
    that its owner was asked about. What else it did, its agent remembers."""
    settled = {
        item.content.get("binds_to", {}).get("call_id")
        for item in items
        if item.kind is ItemKind.ANSWER and item.content.get("purpose") == Purpose.IN_DOUBT
    }
    return [entry for entry in past_calls if entry.run_id != turn.run_id or entry.id in settled]


def check_offered(
    tx: Tx, conversation: Conversation, tool: Tool
) -> tuple[Tool, str | None] | ToolResult:
    """Return a tool of a connection as its owner has ticked it by now, and the version of that.

    Refuse it if they have taken it away since the run began.
    """
    if tool.connection is None:
        return tool, ""
    found = tx.connections.find_offered(
        conversation.user_id, tool.connection, tool.name, tool.definition
    )
    if found is None or not access.may_use(conversation, found.connection):
        return _refusal(f"The owner has taken {tool.server}/{tool.name} away from this work.")
    return make_tool(found.connection, found.tool), found.version


def _refusal(text: str) -> ToolResult:
    return ToolResult(text, failed=True)
