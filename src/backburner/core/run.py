"""Runs, the inbox items that start them, and the turns they hold."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from backburner.core.ids import ConnectionId, ConversationId, ItemId, RunId, UserId, new_item_id
from backburner.core.schedule import Gap

#: Of the prompt of a run that is kept with it: its beginning and its end.
MAX_KEPT_PROMPT_CHARS = 8_000
_KEPT_END_CHARS = 2_000
_LEFT_OUT = "\n\n[… {:,} characters left out …]\n\n"
#: Of a line of progress.
MAX_PROGRESS_CHARS = 200


class RunKind(StrEnum):
    REPLY = "reply"  #: Answers a message, an answer or a job's result.
    BACKGROUND = "background"  #: Works unattended and ends with an outcome.


class RunStatus(StrEnum):
    QUEUED = "queued"  #: Handed back, or waiting; the same run continues later.
    RUNNING = "running"
    SUCCESS = "success"
    FAILURE = "failure"  #: With a `FailureKind`.
    SKIPPED = "skipped"  #: Never started; an entry for skipped slots.
    CANCELLED = "cancelled"


class FailureKind(StrEnum):
    TIMEOUT = "timeout"  #: It exceeded the time limit of a run.
    INCOMPLETE = "incomplete"  #: It ended without a valid outcome, even after a repair turn.
    CRASHED = "crashed"  #: Its process ended or was lost.
    UNAVAILABLE = "unavailable"  #: The model's provider has trouble; the work is not at fault.
    ACCESS_DENIED = "access_denied"  #: The model's key was refused, or there is no credit left.
    MODEL = "model"  #: The model refused the request.
    TOOL = "tool"  #: A tool kept failing.
    SIGNED_OUT = "signed_out"  #: A connection needs its owner to sign in again.
    ENGINE = "engine"  #: Any other failure of the agent.


class SkipReason(StrEnum):
    MISSED = "missed"  #: No worker could take it at the time.
    PAUSED = "paused"  #: All background work was, of this user or of everyone.
    STILL_RUNNING = "still running"
    WAITING = "waiting for you"


_SKIP_REASONS = {
    SkipReason.MISSED: "machine off or busy, or model unavailable",
    SkipReason.PAUSED: "background work was paused",
    SkipReason.STILL_RUNNING: "an earlier run was still going",
    SkipReason.WAITING: "it waited for your answer",
}


class ItemKind(StrEnum):
    """The kind of an inbox item."""

    MESSAGE = "message"
    ANSWER = "answer"
    EVENT = "event"
    JOB_RESULT = "job_result"
    RUN_NOW = "run_now"


class StartedBy(StrEnum):
    """The cause of a run: an item of the inbox, by its kind, or the time of its work."""

    MESSAGE = "message"
    ANSWER = "answer"
    EVENT = "event"
    JOB_RESULT = "job_result"
    RUN_NOW = "run_now"
    SCHEDULE = "schedule"
    START = "start"  #: The work was to start at once.
    RETRY = "retry"  #: The run before it failed.
    CONTINUATION = "continuation"  #: The run before it had not finished the work.


@dataclass(frozen=True, slots=True)
class Failure:
    kind: FailureKind
    #: One sentence for the user.
    message: str
    #: Retrying cannot help: a wrong key, a model that does not exist.
    permanent: bool = False
    #: How long the other side asked us to wait before the next attempt.
    retry_after: timedelta | None = None
    #: The names of the connections that failed.
    connections: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The message, to be followed by others; words of a server may have no full stop."""
        return self.message if self.message.endswith((".", "!", "?")) else f"{self.message}."


@dataclass(frozen=True, slots=True)
class SkippedSlots:
    """Slots without a run, and the reason."""

    gap: Gap
    reason: SkipReason

    @property
    def in_words(self) -> str:
        """The reason, and how often, as a phrase for people."""
        bound = "at least " if self.gap.or_more else ""
        times = "" if self.gap.count == 1 else f" ({bound}{self.gap.count} times)"
        return f"{_SKIP_REASONS[self.reason]}{times}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewItem:
    """An inbox item before it is stored."""

    kind: ItemKind
    run_kind: RunKind
    #: Starts a background run even while the conversation is `active`: the user asked for it.
    at_once: bool = False
    content: Mapping[str, Any] = field(default_factory=dict)
    id: ItemId = field(default_factory=new_item_id, compare=False)

    @property
    def is_from_user(self) -> bool:
        """Whether the user waits for the reply; nobody waits for the reply to a job result."""
        return self.run_kind is RunKind.REPLY and self.kind is not ItemKind.JOB_RESULT


@dataclass(frozen=True, slots=True, kw_only=True)
class Item(NewItem):
    """An inbox item: it stays in the inbox until a run has served it."""

    id: ItemId
    arrived_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelWait:
    """The reason why a run that is handed back waits, and since when: mostly its model."""

    failure: Failure | None = None
    #: The first trouble since its model last answered it.
    since: datetime | None = None
    #: It has met trouble though the model answered in between: as if it had waited since then.
    own_trouble_since: datetime | None = None
    #: It waits for its owner to sign in to this connection.
    connection: ConnectionId | None = None


NO_WAIT = ModelWait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    id: RunId
    conversation_id: ConversationId
    kind: RunKind
    status: RunStatus
    #: The epoch of the turn it holds or last held.
    epoch: int
    #: The schedule revision it was claimed under; it does not affect later ones.
    schedule_revision: int
    started_at: datetime
    ended_at: datetime | None = None
    #: When it was last taken up again after it was handed back.
    resumed_at: datetime | None = None
    #: The slot that started it, if one did.
    slot_at: datetime | None = None
    #: None: it began before this was stored, or stands for skipped slots.
    started_by: StartedBy | None = None
    failure: Failure | None = None
    #: See `ModelWait`.
    waits_since: datetime | None = None
    own_trouble_since: datetime | None = None
    connection: ConnectionId | None = None
    #: It was handed back without a time: an answer or a sign-in of its user resumes it.
    waits_for_user: bool = False
    result: str | None = None
    tokens: int = 0
    #: The profile that did the work, and the one that failed before it, if any.
    profile: str | None = None
    escalated_from: str | None = None
    skipped: SkippedSlots | None = None
    #: Its session had read outside text, so that its result may contain some.
    outside: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress that a run last reported."""

    text: str
    reported_at: datetime


@dataclass(frozen=True, slots=True)
class Turn:
    """Identifies the holder of a conversation's turn."""

    user_id: UserId
    conversation_id: ConversationId
    run_id: RunId
    #: The conversation's epoch at the time of the claim.
    epoch: int
    kind: RunKind
    #: When it was taken; None: by an earlier version of the program.
    began_at: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnding:
    """How a run ended."""

    status: RunStatus
    failure: Failure | None = None
    #: The summary, as text.
    result: str | None = None
    #: The bare result that the agent returned, as JSON.
    data: str | None = None
    tokens: int = 0
    profile: str | None = None
    escalated_from: str | None = None
    outside: bool = False


def shorten_prompt(text: str) -> str:
    """Shorten a prompt to what is kept of it: its beginning, and its end with the cause."""
    left_out = len(text) - MAX_KEPT_PROMPT_CHARS
    if left_out <= 0:
        return text
    beginning = text[: MAX_KEPT_PROMPT_CHARS - _KEPT_END_CHARS]
    return f"{beginning}{_LEFT_OUT.format(left_out)}{text[-_KEPT_END_CHARS:]}"
