"""One use of a conversation's turn, what started it, and what waits in the inbox to start one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from backburner.core.ids import ConversationId, ItemId, RunId, UserId, new_item_id
from backburner.core.schedule import Gap


class RunKind(StrEnum):
    REPLY = "reply"  #: Answers somebody: a person, a job's result.
    BACKGROUND = "background"  #: Works by itself and ends with an outcome.


class RunStatus(StrEnum):
    QUEUED = "queued"  #: Handed back, or waiting for something; the same row goes on later.
    RUNNING = "running"
    SUCCESS = "success"
    FAILURE = "failure"  #: With a `FailureKind`.
    SKIPPED = "skipped"  #: Never started; stands for slots that nobody served.
    CANCELLED = "cancelled"


class FailureKind(StrEnum):
    TIMEOUT = "timeout"  #: It took longer than a run may.
    INCOMPLETE = "incomplete"  #: It ended without a valid outcome, also when asked again.
    CRASHED = "crashed"  #: Its process went away.
    MODEL = "model"  #: The model was down, overloaded or refused the request.
    TOOL = "tool"  #: A tool kept failing.
    SIGNED_OUT = "signed_out"  #: A connection needs its owner to sign in again.
    ENGINE = "engine"  #: Anything else that went wrong in the agent.


class SkipReason(StrEnum):
    MISSED = "missed"  #: Nothing ran at the time.
    STILL_RUNNING = "still running"
    WAITING = "waiting for you"


class ItemKind(StrEnum):
    """What reaches a conversation and waits in its inbox until a run has served it."""

    MESSAGE = "message"
    ANSWER = "answer"
    EVENT = "event"
    JOB_RESULT = "job_result"
    RUN_NOW = "run_now"


@dataclass(frozen=True, slots=True)
class Failure:
    kind: FailureKind
    #: For people: what happened, in a sentence.
    message: str
    #: Trying again cannot help: a wrong key, a model that does not exist.
    permanent: bool = False
    #: How long the other side asked to be left alone.
    retry_after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class SkippedSlots:
    """Slots that end in no run, with the reason."""

    gap: Gap
    reason: SkipReason


@dataclass(frozen=True, slots=True, kw_only=True)
class NewItem:
    """Something to put into an inbox."""

    kind: ItemKind
    run_kind: RunKind
    #: Starts a background run even while the conversation is active: somebody asked for just this.
    at_once: bool = False
    content: Mapping[str, Any] = field(default_factory=dict)
    id: ItemId = field(default_factory=new_item_id, compare=False)

    @property
    def is_from_user(self) -> bool:
        """A user waits for the reply; results of jobs are answered with nobody waiting."""
        return self.run_kind is RunKind.REPLY and self.kind is not ItemKind.JOB_RESULT


@dataclass(frozen=True, slots=True, kw_only=True)
class Item(NewItem):
    """What lies in an inbox."""

    id: ItemId
    arrived_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    id: RunId
    conversation_id: ConversationId
    kind: RunKind
    status: RunStatus
    #: The fencing number of the turn it holds or last held.
    epoch: int
    #: The schedule it was claimed under; it clears or advances no later one.
    schedule_revision: int
    started_at: datetime
    ended_at: datetime | None = None
    #: The slot it stands for, where a slot started it.
    slot_at: datetime | None = None
    failure: Failure | None = None
    result: str | None = None
    tokens: int = 0
    #: The profile it was done under, and the one before, where that one could not.
    profile: str | None = None
    escalated_from: str | None = None
    skipped: SkippedSlots | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """What the holder of a turn proves itself with."""

    user_id: UserId
    conversation_id: ConversationId
    run_id: RunId
    #: The fencing number under which it was claimed.
    epoch: int
    kind: RunKind


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnding:
    """How a run ended."""

    status: RunStatus
    failure: Failure | None = None
    result: str | None = None
    tokens: int = 0
    profile: str | None = None
    escalated_from: str | None = None
