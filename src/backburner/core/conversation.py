"""The one noun: a conversation, its messages, and the state of the work it carries."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from backburner.core.ids import ConversationId, MessageId, RunId, UserId
from backburner.core.question import Question
from backburner.core.schedule import Schedule, is_recurring
from backburner.core.validation import check_json, check_text

#: Of the context and of the data, each: a prompt has to have room for both.
MAX_STATE_BYTES = 24_000
MAX_MESSAGE_CHARS = 100_000
MAX_TITLE_CHARS = 200
MAX_STEP_CHARS = 2_000


class Status(StrEnum):
    ACTIVE = "active"  #: An ordinary chat; the worker leaves it alone.
    BACKGROUND = "background"  #: Has work to do at `next_run_at`.
    WAITING_INPUT = "waiting_input"  #: Asked something; stays put until it is answered.
    ARCHIVED = "archived"  #: Closed; nothing runs.


class Kind(StrEnum):
    """How it was born."""

    CHAT = "chat"
    TASK = "task"
    JOB = "job"
    DISCOVERY = "discovery"


class EndedAs(StrEnum):
    """How its last work ended."""

    COMPLETED = "completed"
    ERROR = "error"
    CANCELLED = "cancelled"
    DISMISSED = "dismissed"  #: It was proposed, and its owner said no.


class PauseReason(StrEnum):
    """Why its schedule stands still."""

    USER = "user"
    FAILURES = "failures"
    CRASHES = "crashes"
    ALLOWANCE = "allowance"


class Notify(StrEnum):
    ALWAYS = "always"
    ON_CHANGE = "on_change"
    ON_FAILURE = "on_failure"
    NEVER = "never"


class OnRepeatedFailure(StrEnum):
    PAUSE = "pause"  #: After two failures in a row.
    NOTIFY = "notify"  #: After three, once; the schedule goes on.


class Author(StrEnum):
    USER = "user"
    AGENT = "agent"


class MessageRole(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"


class Source(StrEnum):
    CHAT = "chat"
    WORKER = "worker"


@dataclass(frozen=True, slots=True)
class State:
    """What the work is about and how far it has come."""

    context: Mapping[str, Any] = field(default_factory=dict)
    step: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Session:
    """The agent's own memory of a conversation: an id that means something to one engine."""

    profile: str
    id: str
    #: About how long it has become, apart from system prompt and tools.
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Destination:
    """Where to report: a channel, and whom or what on it."""

    channel: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    id: ConversationId
    user_id: UserId
    kind: Kind
    created_at: datetime
    status: Status = Status.ACTIVE
    title: str = ""
    created_by: Author = Author.USER

    #: What made it, and the group it was made in.
    parent_id: ConversationId | None = None
    batch: str | None = None
    #: Of a job: the run and the message it was asked for in, and what all it belongs to began with.
    parent_run_id: RunId | None = None
    parent_message_id: MessageId | None = None
    root_id: ConversationId | None = None
    #: Results that reach it are only written down; nobody is there to answer them.
    keeps_only: bool = False

    schedule: Schedule | None = None
    #: Grows with every change of the schedule; a run touches only the one it was claimed under.
    schedule_revision: int = 0
    next_run_at: datetime | None = None
    #: Slots up to here are accounted for; without it, up to just before `next_run_at`.
    settled_until: datetime | None = None
    pause_reason: PauseReason | None = None

    state: State = field(default_factory=State)
    #: Open ones, oldest first.
    questions: tuple[Question, ...] = ()
    session: Session | None = None
    #: Words of others were read in its work.
    outside_read: bool = False

    ended_as: EndedAs | None = None
    ended_at: datetime | None = None
    #: A finished job that was given a follow-up and works on it.
    resuming: bool = False
    resume_count: int = 0
    #: When its result was fetched by what made it.
    retrieved_at: datetime | None = None

    #: In a row.
    failures: int = 0
    crashes: int = 0
    #: How often one-time work has said "not yet" since `again_since`.
    again_count: int = 0
    again_since: datetime | None = None
    #: Replies to results of jobs since a person last spoke.
    unattended_replies: int = 0

    run_count: int = 0
    max_runs: int | None = None
    last_run_at: datetime | None = None
    run_timeout: timedelta | None = None
    #: The tools it is restricted to; None: all that its user has.
    tools: tuple[str, ...] | None = None
    #: The profile that was asked for by name; None: whichever the routes give.
    requested_profile: str | None = None
    #: The name of the profile it works under; empty: the default where it runs.
    profile: str = ""
    on_repeated_failure: OnRepeatedFailure = OnRepeatedFailure.NOTIFY
    notify: Notify = Notify.ON_CHANGE
    last_result_hash: str | None = None
    reports_to: tuple[Destination, ...] = ()

    @property
    def pending_question(self) -> Question | None:
        """The one that is shown; the others wait behind it."""
        return self.questions[0] if self.questions else None

    @property
    def is_recurring(self) -> bool:
        return self.schedule is not None and is_recurring(self.schedule)

    @property
    def has_work(self) -> bool:
        return self.schedule is not None or bool(self.state.context)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    id: MessageId
    role: MessageRole
    content: str
    source: Source
    created_at: datetime
    run_id: RunId | None = None
    #: Somebody else's words: to be shown to the agent as data, never as a request.
    outside: bool = False


def advance_state(state: State, update: Mapping[str, Any], step: str | None) -> State:
    """Merge what a run learned, key by key; refuse what would grow the state beyond its limit."""
    check_text("The step", step or state.step, limit=MAX_STEP_CHARS)
    data = {**state.data, **update}
    check_json("The state of the work", data, limit=MAX_STATE_BYTES)
    return replace(state, data=data, step=step or state.step)


def check_state(state: State) -> None:
    check_json("What the work is about", dict(state.context), limit=MAX_STATE_BYTES)
    advance_state(state, {}, None)


def check_message(text: str) -> str:
    """Refuse a message that nobody could store or read."""
    return check_text("The message", text, limit=MAX_MESSAGE_CHARS)


def make_title(text: str) -> str:
    """Make a title from what was said first: its first line, cut at a word."""
    line = next(iter(text.strip().splitlines()), "").strip()
    if len(line) <= 60:
        return line
    return line[:60].rsplit(" ", 1)[0].rstrip(" ,.;:") + "…"
