"""What there is to see of a user's own, a page at a time.

A page is asked for with where the one before ended, and one row more than is shown tells whether
there is another. Whoever asks names the owner.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol

from backburner.core.conversation import Conversation, Kind, Message, Status
from backburner.core.ids import (
    CallId,
    ConversationId,
    GrantId,
    MessageId,
    NoticeId,
    QuestionId,
    RunId,
    UserId,
)
from backburner.core.memory import Memory
from backburner.core.notice import NoticeKind
from backburner.core.question import Question
from backburner.core.run import Run
from backburner.core.tool_policy import Grant
from backburner.core.work.views import JobStatus, TaskStatus

#: Where a page ends: what the rows are ordered by.
PageKey = tuple[Any, ...]


class View(StrEnum):
    CHATS = "chats"  #: What was born a chat.
    TASKS = "tasks"  #: What was born a task, and chats that have a schedule.
    JOBS = "jobs"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationFilter:
    """Which conversations; None: whichever."""

    status: Status | None = None
    kind: Kind | None = None
    view: View | None = None
    archived: bool | None = None
    parent_id: ConversationId | None = None
    #: How it stands as a task.
    task: TaskStatus | None = None
    #: How it stands as a job, and the group it was handed out in.
    job: JobStatus | None = None
    batch: str | None = None
    #: Words that its title or one of its messages has.
    words: str | None = None


@dataclass(frozen=True, slots=True)
class ConversationRow:
    conversation: Conversation
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ConversationPage:
    """Conversations of one page, and where the next one begins; None: there is none."""

    conversations: Sequence[ConversationRow]
    mark: PageKey | None


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A message with its place among all."""

    number: int
    message: Message


@dataclass(frozen=True, slots=True)
class QuestionRow:
    question: Question
    conversation_id: ConversationId
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallRow:
    id: CallId
    server: str
    tool: str
    arguments: Mapping[str, Any]
    read_only: bool
    #: started, done or unknown.
    state: str
    failed: bool
    result: str | None
    grant_id: GrantId | None
    started_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeRow:
    """A notice, as it was given."""

    number: int
    id: NoticeId
    conversation_id: ConversationId
    run_id: RunId | None
    kind: NoticeKind
    text: str
    question_id: QuestionId | None
    created_at: datetime
    seen_at: datetime | None


@dataclass(frozen=True, slots=True)
class GrantRow:
    grant: Grant
    conversation_id: ConversationId
    given_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class UserProfile:
    """Who somebody is, for themselves."""

    id: UserId
    name: str
    login: str | None
    role: str
    zone: str
    paused: bool
    #: Whether all background work of everybody stands still.
    all_paused: bool
    #: Whether the agent looks for work to propose to them.
    discovery: bool


@dataclass(frozen=True, slots=True)
class Gauges:
    """How much of what there is, for those who see to the whole."""

    #: Under way and handed back; and those that ended in the last hour.
    runs: Mapping[str, int]
    ended: Mapping[str, int]
    #: What could be taken up now, and how long the first of it has waited.
    claimable: int
    oldest: timedelta
    people_waiting: int
    questions: int
    deliveries: int
    users: int
    paused: bool


class Browse(Protocol):
    def conversations(
        self, user: UserId, wanted: ConversationFilter, after: PageKey | None, *, limit: int
    ) -> ConversationPage:
        """Find those that were changed last, first."""

    def conversation(self, user: UserId, conversation_id: ConversationId) -> ConversationRow: ...
    def messages(
        self, user: UserId, conversation_id: ConversationId, after: PageKey | None, *, limit: int
    ) -> Sequence[MessageRow]:
        """Read messages, newest first."""

    def message(self, user: UserId, message_id: MessageId) -> Message: ...
    def questions(
        self, user: UserId, after: PageKey | None, *, limit: int
    ) -> Sequence[QuestionRow]:
        """Read open questions, oldest first."""

    def question(self, user: UserId, question_id: QuestionId) -> QuestionRow: ...
    def runs(
        self, user: UserId, conversation_id: ConversationId, after: PageKey | None, *, limit: int
    ) -> Sequence[Run]:
        """Read runs, newest first."""

    def calls(self, user: UserId, run: RunId) -> Sequence[ToolCallRow]: ...
    def notices(
        self, user: UserId, after: PageKey | None, *, unseen: bool, limit: int
    ) -> Sequence[NoticeRow]:
        """Read notices, newest first."""

    def grants(self, user: UserId, conversation_id: ConversationId) -> Sequence[GrantRow]: ...
    def all_grants(
        self, user: UserId, after: PageKey | None, *, limit: int
    ) -> Sequence[GrantRow]: ...
    def grant(self, user: UserId, grant_id: GrantId) -> GrantRow: ...
    def memories(self, user: UserId, after: PageKey | None, *, limit: int) -> Sequence[Memory]:
        """Read memories by their keys."""

    def memory(self, user: UserId, key: str) -> Memory: ...
    def me(self, user: UserId) -> UserProfile: ...
    def gauges(self, *, now: datetime) -> Gauges: ...
