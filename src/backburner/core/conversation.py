"""A conversation, its messages, and the state of its background work."""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from backburner.core.content.file import FileReference
from backburner.core.ids import ConversationId, MessageId, QuestionId, RunId, UserId
from backburner.core.question import Question
from backburner.core.schedule import Schedule, is_recurring
from backburner.core.validation import check_json, check_text

#: For the context and the data each: both have to fit into a prompt.
MAX_STATE_BYTES = 24_000
MAX_TITLE_CHARS = 200
MAX_STEP_CHARS = 2_000
#: Marks of a state besides those of its data, which are `data.` and the key.
CONTEXT_MARK, STEP_MARK = "context", "step"


class Status(StrEnum):
    ACTIVE = "active"  #: An ordinary chat; the worker starts nothing in it.
    BACKGROUND = "background"  #: Has work due at `next_run_at`, or when an event arrives.
    WAITING_INPUT = "waiting_input"  #: Has an open question; background work waits for the answer.
    ARCHIVED = "archived"  #: Closed; nothing runs.


class Kind(StrEnum):
    """How a conversation was created."""

    CHAT = "chat"
    TASK = "task"
    JOB = "job"
    DISCOVERY = "discovery"


class EndedAs(StrEnum):
    """How its last background work ended."""

    COMPLETED = "completed"
    ERROR = "error"
    CANCELLED = "cancelled"
    DISMISSED = "dismissed"  #: A proposal that the user rejected.


class PauseReason(StrEnum):
    """Why its schedule is paused."""

    USER = "user"
    FAILURES = "failures"
    CRASHES = "crashes"
    ALLOWANCE = "allowance"
    SIGNED_OUT = "signed_out"  #: A connection needs its owner to sign in again.
    CONNECTION_REMOVED = "connection_removed"  #: One that its brief names.


#: Work that is paused for one of these continues by itself.
PASSING_PAUSES = frozenset({PauseReason.ALLOWANCE, PauseReason.SIGNED_OUT})
#: Work that is paused for one of these has not failed.
HARMLESS_PAUSES = frozenset({PauseReason.USER, PauseReason.CONNECTION_REMOVED, *PASSING_PAUSES})


class Notify(StrEnum):
    ALWAYS = "always"
    ON_CHANGE = "on_change"
    ON_FAILURE = "on_failure"
    NEVER = "never"


class OnRepeatedFailure(StrEnum):
    PAUSE = "pause"  #: After two failures in a row.
    NOTIFY = "notify"  #: After three, once; the schedule continues.


class Author(StrEnum):
    USER = "user"
    AGENT = "agent"


class Use(StrEnum):
    """Something of the user's that work may use."""

    MEMORIES = "memories"
    FOLDERS = "folders"
    SIGN_INS = "sign-ins"


#: What of the user's work is restricted to; None for everything.
Uses = frozenset[Use] | None


class MessageRole(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"


class Source(StrEnum):
    CHAT = "chat"
    WORKER = "worker"


@dataclass(frozen=True, slots=True)
class State:
    """The state of background work."""

    #: The description of the work: prompt and parameters.
    context: Mapping[str, Any] = field(default_factory=dict)
    #: The progress of the work, in a phrase.
    step: str = ""
    #: Facts that runs have collected.
    data: Mapping[str, Any] = field(default_factory=dict)
    #: The parts that were written in a session that had read outside text.
    outside: frozenset[str] = frozenset()

    def is_outside(self, key: str) -> bool:
        """Return whether a key of the data may contain outside text."""
        return _data_mark(key) in self.outside


@dataclass(frozen=True, slots=True)
class Session:
    """The agent's own session for a conversation; its id is valid for one engine only."""

    profile: str
    id: str
    #: Its approximate length, without system prompt and tools.
    tokens: int = 0
    #: It does not contain the messages since then: another profile replied to them.
    missed_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Destination:
    """The destination of notices: a channel and a target on it."""

    channel: str
    target: str


@dataclass(frozen=True, slots=True)
class WorkFolder:
    """The folder in which a conversation works; `core.work.folders` has those of a user."""

    path: str
    #: The id of its machine; empty: all machines share it.
    machine: str = ""
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    id: ConversationId
    user_id: UserId
    kind: Kind
    created_at: datetime
    status: Status = Status.ACTIVE
    title: str = ""
    created_by: Author = Author.USER

    #: The conversation that created it, and the batch it belongs to.
    parent_id: ConversationId | None = None
    batch: str | None = None
    #: Jobs only: the run and the message that requested it, and the root conversation.
    parent_run_id: RunId | None = None
    parent_message_id: MessageId | None = None
    root_id: ConversationId | None = None
    #: Reports of jobs are stored as messages only, without a reply.
    keeps_only: bool = False

    schedule: Schedule | None = None
    #: The run whose agent set up this work; None: its owner did, or it was changed since.
    set_up_by: RunId | None = None
    #: Increases with every change of the schedule; a run affects only the revision it was claimed
    #: under.
    schedule_revision: int = 0
    next_run_at: datetime | None = None
    #: Slots up to here are accounted for; if None, slots before `next_run_at`.
    settled_until: datetime | None = None
    pause_reason: PauseReason | None = None

    state: State = field(default_factory=State)
    #: Open questions, oldest first.
    questions: tuple[Question, ...] = ()
    session: Session | None = None
    #: There is a summary of an earlier session.
    summarized: bool = False
    #: The agent's session has read outside text.
    outside_read: bool = False
    #: When the user let it start afresh: marked messages up to then are not shown to agents.
    fresh_at: datetime | None = None

    ended_as: EndedAs | None = None
    ended_at: datetime | None = None
    #: A completed job that is working on a follow-up.
    resuming: bool = False
    resume_count: int = 0
    #: When the parent fetched its result.
    retrieved_at: datetime | None = None

    #: Consecutive failures and crashes.
    failures: int = 0
    crashes: int = 0
    #: How often one-time work has ended with `continue` since `again_since`.
    again_count: int = 0
    again_since: datetime | None = None
    #: Replies to job results since the user's last message.
    unattended_replies: int = 0

    run_count: int = 0
    max_runs: int | None = None
    last_run_at: datetime | None = None
    run_timeout: timedelta | None = None
    #: Where its commands and file tools work; None for the private workspace of the user.
    folder: WorkFolder | None = None
    #: The tools it is restricted to; None for all of the user's tools.
    tools: tuple[str, ...] | None = None
    #: The names of the connections it may use; None: those of its kind.
    connections: tuple[str, ...] | None = None
    #: Restricted in work that a token handed out, and in all below it.
    uses: Uses = None
    #: The agent requested by name; its tools are those in `tools`.
    agent: str | None = None
    #: The profile requested by name; None to use the routes.
    requested_profile: str | None = None
    #: The name of its profile; empty for the server's default.
    profile: str = ""
    #: The profiles that messages ask for, for the next reply and the next background run.
    reply_profile: str = ""
    work_profile: str = ""
    on_repeated_failure: OnRepeatedFailure = OnRepeatedFailure.NOTIFY
    notify: Notify = Notify.ON_CHANGE
    last_result_hash: str | None = None
    reports_to: tuple[Destination, ...] = ()

    @property
    def pending_question(self) -> Question | None:
        """The question that is shown; later ones are queued behind it."""
        return self.questions[0] if self.questions else None

    @property
    def folder_path(self) -> str | None:
        """Where it works; None for the private workspace."""
        return None if self.folder is None else self.folder.path

    @property
    def is_recurring(self) -> bool:
        return self.schedule is not None and is_recurring(self.schedule)

    @property
    def has_work(self) -> bool:
        return self.schedule is not None or bool(self.state.context)

    def may_use(self, use: Use) -> bool:
        return self.uses is None or use in self.uses


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    id: MessageId
    conversation_id: ConversationId
    role: MessageRole
    content: str
    source: Source
    created_at: datetime
    run_id: RunId | None = None
    #: Outside text: shown to the agent as data, never as a request.
    outside: bool = False
    #: The question that it shows in our own words.
    shows: QuestionId | None = None
    #: The question whose end it records.
    closes: QuestionId | None = None
    #: What its user attached, or what its run handed over.
    files: tuple[FileReference, ...] = ()


def common_uses(first: Uses, second: Uses) -> Uses:
    """Return what both restrictions leave."""
    if first is None or second is None:
        return second if first is None else first
    return first & second


def advance_state(
    state: State, update: Mapping[str, Any], step: str | None, *, outside: bool = False
) -> State:
    """Merge a run's state update, key by key; refuse one that exceeds the size limit.

    `outside`: the session that wrote it had read outside text.
    """
    check_text("The step", step or state.step, limit=MAX_STEP_CHARS)
    data = {**state.data, **update}
    check_json("The state of the work", data, limit=MAX_STATE_BYTES)
    written = {_data_mark(key) for key in update} | ({STEP_MARK} if step else set())
    marks = state.outside | written if outside else state.outside - written
    return replace(state, data=data, step=step or state.step, outside=frozenset(marks))


def drop_outside(state: State) -> State:
    """Leave out data and progress that are marked; the description of the work stays."""
    return State(
        context=state.context,
        step="" if STEP_MARK in state.outside else state.step,
        data={key: value for key, value in state.data.items() if not state.is_outside(key)},
        outside=state.outside & {CONTEXT_MARK},
    )


def _data_mark(key: str) -> str:
    return f"data.{key}"


def check_state(state: State) -> None:
    check_json("The description of the work", dict(state.context), limit=MAX_STATE_BYTES)
    advance_state(state, {}, None)


def may_contain_outside_text(conversation: Conversation) -> bool:
    """Return whether its brief or its results may contain outside text."""
    return conversation.outside_read or CONTEXT_MARK in conversation.state.outside


def mark_brief(conversation: Conversation, *, outside: bool) -> Conversation:
    """Mark new work whose brief was written in a session that had read outside text."""
    if not outside:
        return conversation
    marked = replace(conversation.state, outside=conversation.state.outside | {CONTEXT_MARK})
    return replace(conversation, state=marked, outside_read=True)


def make_title(text: str) -> str:
    """Make a title from the first line of a message, cut at a word."""
    line = unicodedata.normalize("NFC", next(iter(text.strip().splitlines()), "").strip())
    if len(line) <= 60:
        return line
    return line[:60].rsplit(" ", 1)[0].rstrip(" ,.;:") + "…"
