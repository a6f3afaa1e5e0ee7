"""Lists and summaries of what a user owns. Pages are keyed by the sort key of their last row."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol

from backburner.core.accounts import ZoneSource
from backburner.core.allowance import Allowance, Amount, Cost
from backburner.core.content.file import FileReference
from backburner.core.content.search import ExcerptPart
from backburner.core.conversation import Conversation, Kind, Message, MessageRole, Status
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
from backburner.core.run import Progress, Run, RunKind, RunStatus, Turn
from backburner.core.tool_policy import Grant
from backburner.core.work.activity import CallSummary, RunActivity
from backburner.core.work.discovery import Snippet
from backburner.core.work.facts import WorkFacts
from backburner.core.work.list_states import ListState
from backburner.core.work.proposal import RejectedProposal
from backburner.core.work.timeline import AskedQuestion, PaidCall, RunPart
from backburner.core.work.views import JobStatus, TaskStatus, WorkSummary
from backburner.ports.timeline import RunDetails, TimelineQuestion

_NOTHING = Amount()
#: The sort key of the last row of a page.
PageKey = tuple[Any, ...]


class View(StrEnum):
    CHATS = "chats"  #: Created as a chat.
    TASKS = "tasks"  #: Created as a task, and chats with a schedule.
    JOBS = "jobs"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationFilter:
    """Conditions that a conversation must meet; None: no condition."""

    status: Status | None = None
    kind: Kind | None = None
    view: View | None = None
    archived: bool | None = None
    parent_id: ConversationId | None = None
    #: Status as a task.
    task: TaskStatus | None = None
    #: Status as a job, and the batch it was started in.
    job: JobStatus | None = None
    batch: str | None = None
    #: As a person thinks of it.
    state: ListState | None = None
    pinned: bool | None = None
    #: There is something in it that its owner has not seen.
    unread: bool | None = None
    #: One of these, or the parent of one.
    among: Sequence[ConversationId] | None = None
    #: Words to find in the title, or in one message and the title together.
    search: str | None = None
    #: Leave out jobs and tasks whose parent is listed.
    top_level: bool = False


@dataclass(frozen=True, slots=True)
class Children:
    """The children of a conversation: how many, and the newest of those with work to do."""

    count: int = 0
    open: "Sequence[ConversationRow]" = ()


@dataclass(frozen=True, slots=True)
class LastMessage:
    """The last message of a conversation, in a list."""

    id: MessageId
    role: MessageRole
    #: Its beginning, as plain text.
    excerpt: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFacts:
    """The facts that a list shows of a conversation besides its row."""

    #: Messages that its owner has not seen; more than a hundred are not counted.
    unseen_messages: int = 0
    #: When they looked last.
    seen_at: datetime | None = None
    pinned_at: datetime | None = None
    last_message: LastMessage | None = None
    #: A message of its owner, or an answer, that no run has served yet.
    awaits_reply: bool = False
    #: Its last message, which they have not seen, is that of a reply that failed.
    reply_failed: bool = False
    #: Of the root of a tree: what was spent in all of it, and its own allowance if it has one.
    spent: Amount = _NOTHING
    own_allowance: Allowance | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """Where a search found its words."""

    #: An excerpt of it.
    parts: tuple[ExcerptPart, ...]
    #: None: in the title.
    message_id: MessageId | None = None
    role: MessageRole | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ConversationRow:
    conversation: Conversation
    updated_at: datetime
    #: Its run in progress.
    running: RunActivity | None = None
    children: Children = Children()
    #: What its run in progress is doing, if it has said so.
    progress: Progress | None = None
    facts: ListFacts = ListFacts()
    #: Of a search.
    hits: Sequence[Hit] = ()

    @property
    def unseen(self) -> int:
        """How many messages its owner has not seen; without any, how many open questions.

        Most questions come with a message.
        """
        seen_at = self.facts.seen_at
        asked = self.conversation.questions
        unseen = [one for one in asked if seen_at is None or one.asked_at > seen_at]
        return self.facts.unseen_messages or len(unseen)


@dataclass(frozen=True, slots=True)
class ConversationPage:
    """One page of conversations. `next_key` is None on the last page."""

    conversations: Sequence[ConversationRow]
    next_key: PageKey | None


@dataclass(frozen=True, slots=True)
class QuestionRow:
    question: Question
    conversation_id: ConversationId
    title: str


@dataclass(frozen=True, slots=True)
class RunRow:
    run: Run
    #: Of its conversation.
    title: str
    #: None: it is not in progress.
    running: RunActivity | None
    #: A queued run goes on then; None: when something lets it.
    resumes_at: datetime | None = None


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
    files: tuple[FileReference, ...] = ()


class DeliveryState(StrEnum):
    WAITING = "waiting"  #: It is sent at the time of the next try.
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"  #: For good.


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRow:
    """The delivery of a notice to one place, and its state."""

    channel: str
    target: str
    state: DeliveryState
    attempts: int
    #: Of the last attempt that failed.
    error: str | None = None
    next_try_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeRow:
    id: NoticeId
    conversation_id: ConversationId
    run_id: RunId | None
    #: Of its conversation.
    title: str
    kind: NoticeKind
    text: str
    message: str | None
    options: tuple[str, ...]
    question_id: QuestionId | None
    created_at: datetime
    seen_at: datetime | None
    #: One for each place that it is sent to.
    deliveries: tuple[DeliveryRow, ...] = ()


@dataclass(frozen=True, slots=True)
class GrantRow:
    grant: Grant
    conversation_id: ConversationId
    given_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class UserProfile:
    """An account as its user sees it."""

    id: UserId
    name: str
    login: str | None
    role: str
    zone: str
    zone_source: ZoneSource
    paused: bool
    #: Background work of all users is paused.
    all_paused: bool
    #: Discovery is on.
    discovery: bool
    has_password: bool = False
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Gauges:
    """Counts for operators."""

    #: Queued and running runs by status, then runs that ended in the last hour.
    runs: Mapping[str, int]
    ended_last_hour: Mapping[str, int]
    #: Runs that could be claimed now, and how long the oldest has waited.
    claimable: int
    oldest_wait: timedelta
    users_waiting: int
    questions: int
    deliveries: int
    users: int
    paused: bool


@dataclass(frozen=True, slots=True)
class AwaitedJobs:
    """The jobs that a run waits for, and how many of them have ended, or wait themselves."""

    count: int
    settled: int


@dataclass(frozen=True, slots=True)
class RunCost:
    """The cost of the model calls of a run."""

    spent: Amount
    #: Of the tokens, those that models wrote, and those from their caches; None: not recorded.
    output: int | None
    cached: int | None
    #: The number of model calls.
    calls: int
    #: False: the price of some of them is unknown.
    is_all_priced: bool


class Browse(Protocol):
    def conversations(
        self, user: UserId, filters: ConversationFilter, after: PageKey | None, *, limit: int
    ) -> ConversationPage:
        """List conversations, last changed first."""

    def conversation(self, user: UserId, conversation_id: ConversationId) -> ConversationRow: ...
    def children(
        self, user: UserId, parent_ids: Collection[ConversationId], *, limit: int
    ) -> Mapping[ConversationId, Children]:
        """Summarise the children of conversations; `limit` is for each of them."""

    def work_facts(self, user: UserId, conversation_id: ConversationId, *, limit: int) -> WorkFacts:
        """Read the work of a conversation and of its children, in one statement."""

    def list_facts(
        self, user: UserId, conversation_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, ListFacts]:
        """Read what a list shows of these conversations besides their rows."""

    def titles(
        self, user: UserId, conversation_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, str]:
        """Read the titles of those conversations that exist."""

    def titles_in_folder(
        self, user: UserId, path: str, machine: str, *, limit: int
    ) -> Mapping[ConversationId, str]:
        """Read the titles of conversations that work in a folder, newest first.

        Without a machine, it is that of all machines.
        """

    def activities(
        self, user: UserId, conversation_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, RunActivity]:
        """Read the runs in progress of these conversations."""

    def messages(
        self, user: UserId, conversation_id: ConversationId, after: PageKey | None, *, limit: int
    ) -> Sequence[Message]:
        """List messages, newest first."""

    def questions(
        self, user: UserId, after: PageKey | None, *, limit: int
    ) -> Sequence[QuestionRow]:
        """List open questions, oldest first."""

    def question(self, user: UserId, question_id: QuestionId) -> QuestionRow: ...
    def runs(
        self, user: UserId, conversation_id: ConversationId, after: PageKey | None, *, limit: int
    ) -> Sequence[Run]:
        """List runs, newest first."""

    def asked(
        self, user: UserId, conversation_id: ConversationId, after: PageKey | None, *, limit: int
    ) -> Sequence[TimelineQuestion]:
        """List the questions of a conversation, open and closed, newest first."""

    def runs_with_ids(
        self, user: UserId, conversation_id: ConversationId, run_ids: Collection[RunId]
    ) -> Sequence[Run]:
        """Read those of these runs that are in a conversation and still stored."""

    def run_details(self, user: UserId, run_ids: Collection[RunId]) -> Mapping[RunId, RunDetails]:
        """Read what runs did and cost; those that did nothing are left out."""

    def runs_by_status(
        self, user: UserId, status: RunStatus | None, after: PageKey | None, *, limit: int
    ) -> Sequence[RunRow]:
        """List runs of all conversations: the newest first, or the last ended.

        Without a status, those that have ended with any.
        """

    def count_running(self, user: UserId) -> int:
        """Count the runs in progress."""

    def awaited_jobs(self, user: UserId, run_ids: Collection[RunId]) -> Mapping[RunId, AwaitedJobs]:
        """Count the jobs that runs wait for; one that waits for none is missing."""

    def calls(
        self, user: UserId, run_id: RunId, *, with_results: bool = True
    ) -> Sequence[ToolCallRow]:
        """List the tool calls of a run, oldest first; their results may be left out."""

    def call(self, user: UserId, run_id: RunId, call_id: CallId) -> ToolCallRow: ...
    def call_summaries(
        self, user: UserId, run_id: RunId, after: PageKey | None, *, limit: int
    ) -> Sequence[CallSummary]:
        """List the tool calls of a run without their results, newest first."""

    def run_parts(
        self, user: UserId, run_ids: Collection[RunId]
    ) -> Mapping[RunId, Sequence[RunPart]]:
        """Read from when to when runs worked, oldest first; a part in progress is missing."""

    def prompts(self, user: UserId, run_id: RunId, *, limit: int) -> Sequence[str]:
        """Read what a run was told, oldest first."""

    def model_calls(self, user: UserId, run_id: RunId, *, limit: int) -> Sequence[PaidCall]:
        """List the model calls of a run, oldest first."""

    def run_costs(self, user: UserId, run_ids: Collection[RunId]) -> Mapping[RunId, RunCost]:
        """Sum up the model calls of runs; one without any is missing."""

    def run_totals(self, user: UserId, run_ids: Collection[RunId]) -> Mapping[RunId, Amount]:
        """Read what runs have spent, without looking at each model call."""

    def asked_by(self, user: UserId, run: Run, *, limit: int) -> Sequence[AskedQuestion]:
        """List the questions that a run has asked, oldest first."""

    def earlier_runs(self, user: UserId, run: Run, *, limit: int) -> Sequence[Run]:
        """List the runs of a conversation before one, newest first."""

    def later_runs(self, user: UserId, run: Run, *, limit: int) -> Sequence[Run]:
        """List the runs of a conversation after one, oldest first."""

    def last_runs(
        self, user: UserId, conversation_id: ConversationId, *, limit: int
    ) -> Sequence[Run]:
        """List the last runs without skipped ones, newest first; after many of those, fewer."""

    def notices(
        self, user: UserId, after: PageKey | None, *, unseen: bool, limit: int
    ) -> Sequence[NoticeRow]:
        """List notices, newest first."""

    def count_unseen_notices(self, user: UserId, *, limit: int) -> int:
        """Count unseen notices, to a limit."""

    def grants(self, user: UserId, conversation_id: ConversationId) -> Sequence[GrantRow]: ...
    def all_grants(
        self, user: UserId, after: PageKey | None, *, limit: int
    ) -> Sequence[GrantRow]: ...
    def grant(self, user: UserId, grant_id: GrantId) -> GrantRow: ...
    def memories(self, user: UserId, after: PageKey | None, *, limit: int) -> Sequence[Memory]:
        """List memories by key."""

    def memory(self, user: UserId, key: str) -> Memory: ...
    def profile(self, user: UserId) -> UserProfile: ...
    def gauges(self, *, now: datetime) -> Gauges: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCounts:
    """Unattended runs by outcome, in one conversation or in all."""

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
    #: The last failure, if any run failed.
    failure: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingQuestion:
    question: QuestionId
    conversation: ConversationId
    title: str
    purpose: str
    prompt: str
    asked_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentNotice:
    notice: NoticeId
    conversation: ConversationId
    title: str
    kind: str
    text: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """The last message that unattended runs have left in a conversation."""

    conversation: ConversationId
    text: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBar:
    """A run on a line of time."""

    run_id: RunId
    conversation_id: ConversationId
    #: Of its conversation.
    title: str
    status: RunStatus
    started_at: datetime
    #: None: it is in progress, or waits.
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class SpendTotal:
    amount: Amount
    #: False: the price of some model calls is unknown.
    is_all_priced: bool


class Away(Protocol):
    def since(self, user: UserId) -> datetime:
        """Return the time up to which the user has seen the summary."""

    def mark_seen(self, user: UserId, until: datetime) -> None:
        """Record that the user has seen the summary up to then."""

    def totals(self, user: UserId, since: datetime) -> RunCounts: ...
    def runs_by_conversation(
        self, user: UserId, since: datetime, *, limit: int
    ) -> Sequence[ConversationRuns]:
        """Count runs by conversation: with failures first, then the latest."""

    def reports(
        self, user: UserId, conversation_ids: Collection[ConversationId], since: datetime
    ) -> Sequence[RunReport]:
        """Return what successful unattended runs last said in these conversations since then.

        Only the newest messages of each are read.
        """

    def bars(self, user: UserId, since: datetime, *, limit: int) -> Sequence[RunBar]:
        """List unattended runs that ended since then, the last ended first."""

    def active_bars(self, user: UserId, *, limit: int) -> Sequence[RunBar]:
        """List unattended runs that are in progress, or wait, the newest first."""

    def asked(
        self,
        user: UserId,
        conversation_ids: Collection[ConversationId],
        since: datetime,
        *,
        limit: int,
    ) -> Sequence[tuple[ConversationId, AskedQuestion]]:
        """List what was asked in these conversations since then, oldest first."""

    def pending_questions(self, user: UserId, *, limit: int) -> Sequence[PendingQuestion]: ...
    def spent(self, user: UserId, since: datetime) -> SpendTotal: ...
    def recent_notices(
        self, user: UserId, since: datetime, *, limit: int
    ) -> Sequence[RecentNotice]:
        """List notices, newest first."""


class Discovery(Protocol):
    def conversation_ids(self, user: UserId) -> Sequence[ConversationId]:
        """Find the discovery conversations of a user; empty: discovery is off."""

    def recent_snippets(self, user: UserId, *, limit: int) -> Sequence[Snippet]:
        """Read the latest messages of a user's chats, oldest first."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a message, and its last run; None: no run will answer.

    A run that waits for its user has answered as far as it can.
    """

    run: Run | None
    messages: Sequence[Message]
    #: Open questions that the run has asked or waits for, and where they were asked.
    questions: Sequence[tuple[ConversationId, Question]] = ()


class Replies(Protocol):
    def find(
        self,
        user: UserId,
        conversation_id: ConversationId,
        message_id: MessageId,
        items: Collection[ItemId],
    ) -> Reply | None:
        """Find the reply to a message with these inbox items; None: not finished."""

    def message(
        self, user: UserId, conversation_id: ConversationId, message_id: MessageId
    ) -> Message: ...


@dataclass(frozen=True, slots=True)
class JobParent:
    """A conversation that has started jobs, and is none itself."""

    id: ConversationId
    title: str
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCounts:
    """The jobs of one conversation."""

    total: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0


@dataclass(frozen=True, slots=True)
class JobLevel:
    """The jobs of several conversations, each by its parent, and all of them counted."""

    jobs: Mapping[ConversationId, Sequence[Conversation]]
    counts: Mapping[ConversationId, JobCounts]


class Jobs(Protocol):
    def parents(self, user: UserId, *, searched: int, limit: int) -> Sequence[JobParent]:
        """List the conversations whose jobs changed last, among the last `searched` jobs."""

    def level(
        self, user: UserId, parent_ids: Collection[ConversationId], *, each: int, limit: int
    ) -> JobLevel:
        """Read the jobs of conversations: open ones first, then the newest; `each` at most."""

    def costs(
        self, user: UserId, job_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, Amount]:
        """Sum up what the runs of jobs have spent; one that has spent nothing may be missing."""

    def started_by(
        self,
        user: UserId,
        parent_id: ConversationId,
        *,
        limit: int,
        ids: Collection[str] | None = None,
        batch: str | None = None,
    ) -> Sequence[Conversation]:
        """List jobs started by a conversation, newest first; `ids` are prefixes."""

    def load(
        self, user: UserId, conversation_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, Conversation]:
        """Load the conversations that still exist."""

    def lock(
        self, user: UserId, conversation_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, Conversation]:
        """Load and lock the conversations that still exist."""

    def work_summaries(
        self, user: UserId, conversation_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, WorkSummary]:
        """Summarise the runs of each job."""

    def count_open(self, user: UserId, root_id: ConversationId) -> int: ...
    def mark_retrieved(self, user: UserId, conversation_ids: Collection[ConversationId]) -> None:
        """Record the first time that the results of these jobs were fetched."""

    def has_session(self, user: UserId, conversation_id: ConversationId, session_id: str) -> bool:
        """Check whether entries of an agent's session are left."""

    def wait(self, turn: Turn, conversation_ids: Mapping[ConversationId, bool]) -> None:
        """Resume a run that was just handed back once these jobs settle or the user writes."""

    def waiting_kind(
        self, user: UserId, parent_id: ConversationId, job_id: ConversationId
    ) -> RunKind | None:
        """Return the kind of run that waits for a job; None: no run waits."""

    def redirect(self, user: UserId, items: Collection[ItemId], kind: RunKind) -> None:
        """Assign waiting inbox items to a run of this kind."""


@dataclass(frozen=True, slots=True)
class PlannedWork:
    """A conversation with a schedule."""

    conversation: Conversation
    #: A run of it, or a reply in it, is in progress.
    is_running: bool


class Tasks(Protocol):
    def active(self, user: UserId) -> Sequence[tuple[ConversationId, str]]:
        """List id and title of the tasks that run or will run, including chats with work."""

    def scheduled(self, user: UserId, *, limit: int) -> Sequence[Conversation]:
        """List the tasks with a schedule: active, paused and proposed, newest first."""

    def planned(self, user: UserId, *, limit: int) -> Sequence[PlannedWork]:
        """List the conversations with a schedule, jobs too, by their next time; no proposals."""

    def by_title_or_id(self, user: UserId, name: str, *, limit: int) -> Sequence[Conversation]:
        """Find tasks, including ended ones, by exact title or id prefix."""

    def count_proposed(self, user: UserId, parent_id: ConversationId, *, since: datetime) -> int:
        """Count the proposals made under a conversation, whatever their outcome."""

    def rejected_proposals(
        self, user: UserId, *, since: datetime
    ) -> Sequence[RejectedProposal]: ...
    def recent_costs(
        self, user: UserId, conversation_id: ConversationId, *, limit: int
    ) -> Sequence[Cost]:
        """Read the cost of each of the last background runs of a conversation."""

    def recent_costs_by_profile(
        self, user: UserId, profile: str, *, since: datetime, limit: int
    ) -> Sequence[Cost]:
        """Read the cost of each of a user's last background runs under a profile."""
