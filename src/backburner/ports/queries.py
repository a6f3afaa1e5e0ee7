"""Lists and summaries of what a user owns. Pages are keyed by the sort key of their last row."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol

from backburner.core.allowance import Amount, Cost
from backburner.core.conversation import Conversation, Kind, Message, Status
from backburner.core.ids import (
    CallId,
    ConversationId,
    GrantId,
    ItemId,
    MessageId,
    NoticeId,
    QuestionId,
    RunId,
    UserId,
)
from backburner.core.memory import Memory
from backburner.core.notice import NoticeKind
from backburner.core.question import Question
from backburner.core.run import Run, RunKind, Turn
from backburner.core.tool_policy import Grant
from backburner.core.work.discovery import Snippet
from backburner.core.work.proposal import RejectedProposal
from backburner.core.work.views import JobStatus, TaskStatus, WorkSummary

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
    search: str | None = None


@dataclass(frozen=True, slots=True)
class ConversationRow:
    conversation: Conversation
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ConversationPage:
    """Conversations of one page, and where the next one begins; None: there is none."""

    conversations: Sequence[ConversationRow]
    next_key: PageKey | None


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
    ended_last_hour: Mapping[str, int]
    #: What could be taken up now, and how long the first of it has waited.
    claimable: int
    oldest_wait: timedelta
    users_waiting: int
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
    ) -> Sequence[Message]:
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
    def profile(self, user: UserId) -> UserProfile: ...
    def gauges(self, *, now: datetime) -> Gauges: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCounts:
    """How often something ran by itself, by how that ended; in one conversation or in all."""

    succeeded: int = 0
    failed: int = 0
    skipped: int = 0
    cancelled: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRuns:
    conversation: ConversationId
    title: str
    counts: RunCounts
    last_at: datetime
    #: Why it last failed, where it did.
    failure: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingQuestion:
    """An open question."""

    question: QuestionId
    conversation: ConversationId
    title: str
    purpose: str
    prompt: str
    asked_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentNotice:
    """A notice."""

    notice: NoticeId
    conversation: ConversationId
    kind: str
    text: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SpendTotal:
    amount: Amount
    #: Some of it has no price that is known.
    is_all_priced: bool


class Away(Protocol):
    def since(self, user: UserId) -> datetime:
        """Tell since when a user has not been told what happened."""

    def mark_seen(self, user: UserId, until: datetime) -> None:
        """Note that a user has been told all that happened until then."""

    def totals(self, user: UserId, since: datetime) -> RunCounts: ...
    def runs_by_conversation(
        self, user: UserId, since: datetime, *, limit: int
    ) -> Sequence[ConversationRuns]:
        """Count runs by conversation: those with failures first, then the latest."""

    def pending_questions(self, user: UserId, *, limit: int) -> Sequence[PendingQuestion]: ...
    def spent(self, user: UserId, since: datetime) -> SpendTotal: ...
    def recent_notices(
        self, user: UserId, since: datetime, *, limit: int
    ) -> Sequence[RecentNotice]:
        """Read notices, the newest first."""


class Discovery(Protocol):
    def conversation_ids(self, user: UserId) -> Sequence[ConversationId]:
        """Find the conversation that looks for work for a user; none: it is switched off."""

    def recent_snippets(self, user: UserId, *, limit: int) -> Sequence[Snippet]:
        """Read what was said last in a user's chats, oldest first."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What was said in return, and the last run that did; None: nobody will answer."""

    run: Run | None
    messages: Sequence[Message]


class Replies(Protocol):
    def find(
        self,
        user: UserId,
        conversation_id: ConversationId,
        said: MessageId,
        items: Collection[ItemId],
    ) -> Reply | None:
        """Find what came of a message that put these items into the inbox; None: not yet."""

    def message(
        self, user: UserId, conversation_id: ConversationId, said: MessageId
    ) -> Message: ...


class Jobs(Protocol):
    def started_by(
        self,
        user: UserId,
        parent: ConversationId,
        *,
        limit: int,
        ids: Collection[str] | None = None,
        batch: str | None = None,
    ) -> Sequence[Conversation]:
        """Read what a conversation handed out, newest first: whose id begins so, of one batch."""

    def load(
        self, user: UserId, conversation_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, Conversation]:
        """Read the ones that are still there."""

    def lock(
        self, user: UserId, conversation_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, Conversation]:
        """Read the ones that are still there; until the transaction ends nobody changes them."""

    def work_summaries(
        self, user: UserId, conversation_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, WorkSummary]:
        """Tell what is known of their runs."""

    def count_open(self, user: UserId, root: ConversationId) -> int: ...
    def mark_retrieved(self, user: UserId, conversation_ids: Collection[ConversationId]) -> None:
        """Note that the results of these were fetched, unless they were before."""

    def has_session(self, user: UserId, conversation_id: ConversationId, session_id: str) -> bool:
        """See whether anything is left of an agent's session."""

    def wait(self, turn: Turn, conversation_ids: Mapping[ConversationId, bool]) -> None:
        """Let a run that was just handed back go on once all of these have settled.

        It does at once where they have, each, or where a person has spoken meanwhile.
        """

    def waiting_kind(
        self, user: UserId, parent: ConversationId, job: ConversationId
    ) -> RunKind | None:
        """Tell what kind of run waits for a job; None: nothing does."""

    def redirect(self, user: UserId, items: Collection[ItemId], kind: RunKind) -> None:
        """Let what waits in an inbox be served by a run of this kind."""


class Tasks(Protocol):
    def active(self, user: UserId) -> Sequence[tuple[ConversationId, str]]:
        """Name the tasks that run or will go on by themselves, chats with work among them."""

    def scheduled(self, user: UserId, *, limit: int) -> Sequence[Conversation]:
        """Read the tasks that have a schedule: active, paused and proposed, newest first."""

    def by_title_or_id(self, user: UserId, name: str, *, limit: int) -> Sequence[Conversation]:
        """Find tasks, ended ones too, that have just this title, or an id that begins so."""

    def count_proposed(self, user: UserId, parent: ConversationId, *, since: datetime) -> int:
        """Count what was proposed under a conversation, whatever became of it."""

    def rejected_proposals(
        self, user: UserId, *, since: datetime
    ) -> Sequence[RejectedProposal]: ...

    def recent_costs(
        self, user: UserId, conversation_id: ConversationId, *, limit: int
    ) -> Sequence[Cost]:
        """Read what the last background runs of a conversation cost, each."""

    def recent_costs_by_profile(
        self, user: UserId, profile: str, *, since: datetime, limit: int
    ) -> Sequence[Cost]:
        """Read what the last background runs of a user under a profile cost, each."""
