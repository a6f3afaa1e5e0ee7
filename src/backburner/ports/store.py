"""The store: transactions, and the groups of rows that they read and write.

A transaction is a plain function of a `Tx`. It may be retried after a conflict, so it has no other
side effects. Every access names the owner of the rows.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol, TypeVar

from backburner.core.allowance import Allowance, AllowanceScope, Amount, Cost, Usage
from backburner.core.content.file import FileReference, StoredFile
from backburner.core.conversation import Conversation, Kind, Message, WorkFolder
from backburner.core.ids import (
    CallId,
    ConnectionId,
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
from backburner.core.question import Purpose, Question
from backburner.core.routing import NO_EXIT, AfterDemo
from backburner.core.run import Item, Progress, Run, RunKind, Turn
from backburner.core.tool_journal import JournalEntry
from backburner.core.tool_policy import Grant, ToolCall
from backburner.core.transitions import Step
from backburner.core.work.folders import Folder
from backburner.core.work.summary import NewSummary, Summary
from backburner.ports.accounts import (
    Accounts,
    Audit,
    Credentials,
    McpClients,
    PersonalData,
    RateLimits,
    StoredResponses,
    Users,
)
from backburner.ports.bus import EventKind, Events, Hint
from backburner.ports.channels import PushSubscriptions
from backburner.ports.connections import ConnectionCalls, Connections
from backburner.ports.oauth import StartedSignIns, TokenLeases
from backburner.ports.operations import Operations
from backburner.ports.queries import Away, Browse, Discovery, Jobs, PageKey, Replies, Tasks
from backburner.ports.queue import Outages, Queue, Turns
from backburner.ports.secrets import Secrets

T = TypeVar("T")
#: Longer than the server's own limit of a minute for a statement.
LONG_DEADLINE = timedelta(seconds=75)
#: For transactions of a run, which are retried: its lease should outlast one of them.
RUN_DEADLINE = timedelta(seconds=20)
#: For claims and the agenda. Transactions with this deadline or less never wait for others.
URGENT_DEADLINE = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One part of a notice to send, under a lease."""

    number: int
    user_id: UserId
    conversation_id: ConversationId
    key: str
    channel: str
    target: str
    notice_id: NoticeId
    kind: NoticeKind
    #: The title of the conversation; empty where the text begins with it.
    title: str
    text: str
    #: The page to open for it, on the server; empty for parts of an earlier version.
    address: str
    attempts: int
    lease: int


@dataclass(frozen=True, slots=True)
class SpendingState:
    """Spend totals, running runs and allowances of a user."""

    spent: Mapping[str, Amount]
    #: Each run with the conversation whose allowance it counts to.
    running: Sequence[tuple[RunId, ConversationId]]
    #: Set for this user and conversation; defaults are in the settings.
    allowances: Sequence[Allowance]
    #: The most that operators allow this user.
    ceilings: Sequence[Allowance]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    key: str
    text: str
    conversation_id: ConversationId | None = None
    outside: bool = False


class MemoryWrite(StrEnum):
    NEW = "new"
    REPLACED = "over"  #: A memory with the same key was overwritten.
    REFUSED = "refused"  #: The existing memory is trusted (has no outside text) and was kept.


class Memories(Protocol):
    def put(self, user: UserId, memory: NewMemory, *, keep_trusted: bool = False) -> MemoryWrite:
        """Write a memory over the one with its key, except a trusted one if `keep_trusted`."""

    def remove(self, user: UserId, key: str, *, keep_trusted: bool = False) -> bool:
        """Delete a memory; False: it is trusted, and `keep_trusted` was set."""

    def count(self, user: UserId) -> int: ...
    def search(self, user: UserId, words: Sequence[str], *, limit: int) -> Sequence[Memory]:
        """Find memories with any of the words, best first; the last word may be a prefix."""

    def recall(self, user: UserId, words: Sequence[str], *, limit: int) -> Sequence[Memory]:
        """Find memories with any of the whole words, best first, then the newest trusted ones."""


class Folders(Protocol):
    def list(self, user: UserId) -> Sequence[Folder]: ...
    def find(self, user: UserId, path: str, machine: str) -> Folder | None: ...
    def added_by_all(self) -> Sequence[tuple[UserId, str]]:
        """Return the folders that users have added, so that nobody else is given one of them."""

    def put(self, user: UserId, folder: Folder) -> None:
        """Add a folder, or replace it; its conversations then write in it or only read."""

    def remove(self, user: UserId, path: str, machine: str) -> None: ...
    def mark_reported(self, user: UserId, folder: WorkFolder, digest: str) -> None:
        """Record that the user was told about changed instructions with this digest."""

    def holders(self, user: UserId) -> Mapping[tuple[str, str], ConversationId]:
        """Return the conversations whose runs write now, by folder and machine."""

    def wanted_for_replies(
        self, after_demo: AfterDemo = NO_EXIT
    ) -> Mapping[tuple[UserId, str, str], frozenset[str]]:
        """Return owner, path and machine of folders that replies write in, with their profiles."""


class Conversations(Protocol):
    def load(self, user: UserId, conversation_id: ConversationId) -> Conversation: ...
    def lock(self, user: UserId, conversation_id: ConversationId) -> Conversation: ...
    def add(self, step: Step) -> None: ...
    def save(self, step: Step) -> None: ...
    def delete(self, user: UserId, conversation_id: ConversationId) -> None:
        """Delete a conversation and its rows; tool calls and spend are kept."""

    def followers(
        self, user: UserId, conversation_id: ConversationId
    ) -> Sequence[ConversationId]: ...
    def children(
        self, user: UserId, conversation_id: ConversationId
    ) -> Sequence[ConversationId]: ...
    def open_children(
        self, user: UserId, conversation_id: ConversationId
    ) -> Sequence[Conversation]:
        """Load the children that have work or an open question."""

    def paused_for_allowance(self, user: UserId) -> Sequence[ConversationId]:
        """Find the conversations that are paused because an allowance is used up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedConversation:
    """A conversation that its owner has deleted, until it is removed."""

    conversation: Conversation = field(kw_only=False)
    deleted_at: datetime
    #: The conversation that was deleted: this one, or one that it is below.
    deleted_with: ConversationId
    was_archived: bool


class Marks(Protocol):
    """Marks of owners on their conversations, which are locked for it."""

    def see(self, conversation: Conversation, up_to: MessageId | None = None) -> bool:
        """Mark everything as seen, or what came up to a message; False: it was seen before."""

    def pin(self, conversation: Conversation, *, pinned: bool) -> None: ...
    def count_pinned(self, user: UserId) -> int: ...
    def hide(self, before: Conversation, *, root: ConversationId) -> None:
        """Hide a conversation that is deleted with `root`; before its work was ended it was so."""

    def lock_deleted(self, user: UserId, conversation_id: ConversationId) -> DeletedConversation:
        """Lock a conversation that was deleted and not removed yet."""

    def is_deleted(self, user: UserId, conversation_id: ConversationId) -> bool: ...
    def show(self, user: UserId, conversation_id: ConversationId) -> None:
        """Show a deleted conversation again."""

    def deleted_before(
        self, before: datetime, *, limit: int
    ) -> Sequence[tuple[UserId, ConversationId]]:
        """Find those deleted by themselves before a time, the oldest first."""


class Messages(Protocol):
    def recent(
        self, user: UserId, conversation_id: ConversationId, *, limit: int
    ) -> Sequence[Message]: ...
    def recent_of_each(
        self, of: Sequence[Conversation], *, limit: int
    ) -> Mapping[ConversationId, Sequence[Message]]:
        """Read the newest messages of several conversations.

        Those that were written in the same transaction may be missing.
        """

    def last_of_user(self, user: UserId, conversation_id: ConversationId) -> Message | None: ...
    def remove_last(self, user: UserId, conversation_id: ConversationId) -> MessageId:
        """Mark the user's last message and all later ones as replaced; return its id."""

    def detach_replaced(self, user: UserId, conversation_id: ConversationId) -> None:
        """Delete the files that nothing else names than messages that were replaced.

        After the new message is stored, which may name some of them.
        """

    def files_of(
        self,
        user: UserId,
        conversation_id: ConversationId,
        *,
        limit: int,
        runs: Sequence[RunId] | None = None,
    ) -> Sequence[FileReference]:
        """Read the files of the newest messages that have any, newest first.

        With `runs`, only those of messages that these have written.
        """


class Inbox(Protocol):
    def waiting(
        self, user: UserId, conversation_id: ConversationId, kind: RunKind
    ) -> Sequence[Item]: ...
    def served_by(
        self, user: UserId, conversation_id: ConversationId, run_id: RunId
    ) -> Sequence[Item]: ...
    def pending_answers(self, user: UserId, conversation_id: ConversationId) -> Sequence[Item]:
        """Read the answers that wait for a run, or are with one that has not ended."""


class Questions(Protocol):
    def open_of(self, user: UserId, conversation_id: ConversationId) -> tuple[Question, ...]: ...
    def open_of_all(
        self, user: UserId, conversations: Sequence[ConversationId]
    ) -> Mapping[ConversationId, tuple[Question, ...]]: ...
    def conversation_of(self, user: UserId, question_id: QuestionId) -> ConversationId: ...
    def exists(self, user: UserId, question_id: QuestionId) -> bool: ...
    def open_around(
        self, user: UserId, conversation_id: ConversationId
    ) -> Sequence[tuple[ConversationId, Question]]:
        """Read the open questions of a conversation and of its children, oldest first."""

    def open_allowances(self, user: UserId) -> frozenset[str]:
        """Return the allowances that open questions ask about."""

    def open_with(
        self, user: UserId, purpose: Purpose
    ) -> Sequence[tuple[ConversationId, Question]]:
        """Read the open questions of a purpose, oldest first."""

    def unapproved_proposal(self, user: UserId, conversation_id: ConversationId) -> Question | None:
        """Read the last question that proposed work; None: there is none, or one was approved."""

    def purposes(self, user: UserId, question_ids: Iterable[QuestionId]) -> frozenset[Purpose]: ...
    def keep_answerer(self, user: UserId, question_id: QuestionId, credential: str) -> None: ...
    def snooze(self, user: UserId, question: Question) -> None: ...
    def due(self, *, limit: int) -> Sequence[tuple[UserId, QuestionId]]:
        """Find open questions that are due for a reminder or have expired."""


class Runs(Protocol):
    def load(self, user: UserId, run_id: RunId) -> Run: ...
    def history(
        self, user: UserId, conversation_id: ConversationId, *, limit: int
    ) -> Sequence[Run]: ...
    def save_draft(self, turn: Turn, text: str) -> None: ...
    def save_progress(self, turn: Turn, text: str) -> None: ...
    def progress_of(
        self, user: UserId, conversation_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, Progress]: ...
    def replies_since(
        self,
        user: UserId,
        conversation_id: ConversationId,
        run_ids: Collection[RunId],
        since: datetime,
    ) -> Collection[RunId]:
        """Return those of some runs that are replies here and began since a time."""

    def stop_reply(self, user: UserId, conversation_id: ConversationId) -> bool:
        """Ask a running reply to stop; False: there is none."""

    def stop_work(self, user: UserId, conversation_id: ConversationId) -> bool:
        """Ask a running background run to stop; False: there is none."""

    def prune(self, *, before: datetime, limit: int) -> int: ...
    def resume_waiting(
        self, user: UserId, conversation_id: ConversationId, *, at: datetime
    ) -> None:
        """Resume runs at this time that were handed back without a time."""

    def waiting_for_sign_in(self, user: UserId) -> Sequence[tuple[ConnectionId, Run]]:
        """List runs that wait for a sign-in to a connection, each with its connection."""


class Sessions(Protocol):
    def load(self, turn: Turn, session_id: str) -> Sequence[str]: ...
    def has_entries(self, turn: Turn) -> bool:
        """Check whether the agent stored session entries in this run."""

    def delete(self, user: UserId, conversation_id: ConversationId, session_id: str) -> None:
        """Delete an agent's session that will not be continued."""

    def append(self, turn: Turn, session_id: str, entries: Iterable[str]) -> None: ...


class Summaries(Protocol):
    def load(self, user: UserId, conversation_id: ConversationId) -> Summary: ...
    def put(
        self, user: UserId, conversation_id: ConversationId, new: NewSummary, *, outside: bool
    ) -> None:
        """Store a summary in place of the one before."""

    def delete(self, user: UserId, conversation_id: ConversationId) -> None: ...


@dataclass(frozen=True, slots=True)
class ReadVersions:
    """The versions of the rows from which it was decided that a tool may be called."""

    conversation: str
    #: Of the connection and its tool; empty: it belongs to none.
    offered: str = ""


@dataclass(frozen=True, slots=True)
class CallEnd:
    """The result of a call, and the files that it uses from now on."""

    call_id: CallId
    result: str
    failed: bool = False
    files: Sequence[FileReference] = ()


class ToolCalls(Protocol):
    def begin(
        self,
        turn: Turn,
        call_id: CallId,
        call: ToolCall,
        *,
        read_only: bool,
        uses: GrantId | None = None,
    ) -> None:
        """Record a call before it is made, and consume its grant."""

    def begin_again(
        self, turn: Turn, call_id: CallId, call: ToolCall, *, read_only: bool, read: ReadVersions
    ) -> bool:
        """Record a call before it is made, if nothing has changed and the run may continue.

        One statement, which waits for no lock. False: decide anew.
        """

    def has_begun(self, turn: Turn, call_id: CallId) -> bool: ...
    def end(self, turn: Turn, *ends: CallEnd, worked: bool = True) -> None:
        """Store the results of calls.

        If their connections `worked`, that is recorded too. Without files it is one statement.
        """

    def take_in_doubt(self, turn: Turn) -> Sequence[JournalEntry]:
        """Mark unfinished calls as unknown, and return the calls in doubt.

        A call that the owner was already asked about is left out: its run was handed back then.
        """

    def settle(self, user: UserId, call_id: CallId, result: str) -> None:
        """Record the owner's answer about a call marked unknown."""

    def undo(self, user: UserId, call_ids: Collection[CallId], result: str) -> None:
        """Give calls whose effects were taken back another result: none is answered with it."""

    def of_run(self, user: UserId, run_id: RunId) -> Sequence[JournalEntry]: ...


class Files(Protocol):
    """Files by the digest of their bytes. They are deleted with the last of their uses."""

    def begin(self, user: UserId, file: StoredFile) -> bool:
        """Add a file, whose pieces are to be written next; False: it is stored already.

        It is deleted after a while unless something uses it.
        """

    def write(self, user: UserId, digest: str, piece: int, data: bytes) -> None: ...
    def use(
        self,
        user: UserId,
        digest: str,
        *,
        conversation_id: ConversationId,
        used_by: CallId | MessageId,
        run_id: RunId | None = None,
    ) -> None:
        """Name a file, in the transaction that stores what names it.

        Raises `NotFound`, or `Conflict` if pieces of it are missing.
        """

    def load(self, user: UserId, digest: str) -> StoredFile: ...
    def piece(self, user: UserId, digest: str, piece: int) -> bytes: ...
    def find(self, user: UserId, beginning: str, conversation_id: ConversationId) -> StoredFile:
        """Find a file that a conversation uses, its parent, or one of its children."""

    def page(self, user: UserId, after: PageKey | None, *, limit: int) -> Sequence[StoredFile]: ...
    def total_size(self, user: UserId) -> int: ...
    def remove(self, user: UserId, digest: str) -> None: ...
    def remove_all(self, user: UserId) -> None: ...
    def sweep(self, *, before: datetime, user: UserId | None = None) -> bool:
        """Delete some bytes of deleted files, and of those that nothing used since `before`.

        False: none are left. None: of all users.
        """


class Grants(Protocol):
    def valid(self, user: UserId, conversation_id: ConversationId) -> Sequence[Grant]: ...
    def give(
        self, user: UserId, conversation_id: ConversationId, given: Iterable[Grant]
    ) -> None: ...
    def revoke(self, user: UserId, grant_id: GrantId) -> None: ...
    def end_of_server(self, user: UserId, server: str) -> None:
        """End all grants for the tools of a connection, in every conversation."""


@dataclass(frozen=True, slots=True)
class ConversationSpending:
    """Return the spending of a conversation with all jobs that it started."""

    id: ConversationId
    title: str
    kind: Kind
    spent: Amount


class Spending(Protocol):
    def add(
        self,
        turn: Turn,
        root_id: ConversationId,
        model: str,
        cost: Cost,
        *,
        counts_to: Iterable[str],
        usage: Usage | None = None,
    ) -> None: ...
    def state(
        self, user: UserId, root_id: ConversationId, keys: Iterable[str]
    ) -> SpendingState: ...
    def states(
        self, accounts: Mapping[UserId, tuple[ConversationId, Sequence[str]]]
    ) -> Mapping[UserId, SpendingState]:
        """Read the states of several users, each for a root conversation and some keys."""

    def top(self, user: UserId, *, searched: int, limit: int) -> Sequence[ConversationSpending]:
        """List the conversations that have spent most, among the last changed `searched`."""

    def was_recorded(self, turn: Turn, at: datetime) -> bool:
        """Check whether spend was recorded at exactly that time."""

    def set_allowance(
        self, user: UserId, allowance: Allowance, root_id: ConversationId
    ) -> None: ...
    def reset_allowance(
        self, user: UserId, scope: AllowanceScope, root_id: ConversationId | None = None
    ) -> None:
        """Remove a user's own allowance, so that the default applies again.

        With the root conversation, if the scope is a conversation.
        """

    def set_ceiling(self, user: UserId, ceiling: Allowance) -> None:
        """Set the most that a user may allow themselves."""

    def reset_ceiling(self, user: UserId, scope: AllowanceScope) -> None: ...


class Notices(Protocol):
    def mark_seen(self, user: UserId, notice_ids: Iterable[NoticeId]) -> int: ...
    def mark_seen_until(self, user: UserId, last_id: NoticeId) -> int: ...
    def mark_question_seen(self, user: UserId, which: ConversationId, asked: QuestionId) -> int: ...


class Deliveries(Protocol):
    def lease(self, *, lease: timedelta, besides: Collection[UserId] = ()) -> Delivery | None:
        """Lease the next delivery of a user who is not one of `besides`."""

    def release_all(self) -> None: ...
    def mark_sent(self, delivery: Delivery, *, provider_id: str | None = None) -> bool: ...
    def mark_failed(self, delivery: Delivery, why: str, *, again_at: datetime | None) -> bool: ...


class Tx(Protocol):
    """An open transaction."""

    @property
    def now(self) -> datetime: ...

    def hint(self, *hints: Hint) -> None:
        """Send hints to all processes once this transaction is committed."""

    def changed(self, user: UserId, conversation: ConversationId | None, *kinds: EventKind) -> None:
        """Record a change for subscribers of the feed."""

    @property
    def accounts(self) -> Accounts: ...
    @property
    def audit(self) -> Audit: ...
    @property
    def away(self) -> Away: ...
    @property
    def browse(self) -> Browse: ...
    @property
    def connection_calls(self) -> ConnectionCalls: ...
    @property
    def connections(self) -> Connections: ...
    @property
    def conversations(self) -> Conversations: ...
    @property
    def credentials(self) -> Credentials: ...
    @property
    def deliveries(self) -> Deliveries: ...
    @property
    def discovery(self) -> Discovery: ...
    @property
    def events(self) -> Events: ...
    @property
    def files(self) -> Files: ...
    @property
    def folders(self) -> Folders: ...
    @property
    def grants(self) -> Grants: ...
    @property
    def inbox(self) -> Inbox: ...
    @property
    def jobs(self) -> Jobs: ...
    @property
    def marks(self) -> Marks: ...
    @property
    def mcp_clients(self) -> McpClients: ...
    @property
    def memories(self) -> Memories: ...
    @property
    def messages(self) -> Messages: ...
    @property
    def notices(self) -> Notices: ...
    @property
    def operations(self) -> Operations: ...
    @property
    def personal_data(self) -> PersonalData: ...
    @property
    def outages(self) -> Outages: ...
    @property
    def push_subscriptions(self) -> PushSubscriptions: ...
    @property
    def questions(self) -> Questions: ...
    @property
    def queue(self) -> Queue: ...
    @property
    def rate_limits(self) -> RateLimits: ...
    @property
    def replies(self) -> Replies: ...
    @property
    def runs(self) -> Runs: ...
    @property
    def secrets(self) -> Secrets: ...
    @property
    def sessions(self) -> Sessions: ...
    @property
    def spending(self) -> Spending: ...
    @property
    def started_sign_ins(self) -> StartedSignIns: ...
    @property
    def stored_responses(self) -> StoredResponses: ...
    @property
    def summaries(self) -> Summaries: ...
    @property
    def tasks(self) -> Tasks: ...
    @property
    def token_leases(self) -> TokenLeases: ...
    @property
    def tool_calls(self) -> ToolCalls: ...
    @property
    def turns(self) -> Turns: ...
    @property
    def users(self) -> Users: ...


class Store(Protocol):
    async def transact(
        self, work: Callable[[Tx], T], *, within: timedelta = LONG_DEADLINE, single: bool = False
    ) -> T:
        """Run a transaction; raise `StoreFailed` if the database takes longer than `within`.

        `single`: one statement writes, and needs no transaction around it.
        """

    async def read(
        self, work: Callable[[Tx], T], *, within: timedelta = LONG_DEADLINE, single: bool = False
    ) -> T:
        """Run a transaction that reads one snapshot, and cannot write.

        It sees every commit that returned before it began. On SQLite it does not wait for writers.
        `single`: it has one statement, which is a snapshot without a transaction around it.
        """

    async def commit(self, turn: Turn, work: Callable[[Tx], None], *, alone: bool = False) -> None:
        """Run a transaction that gives up a turn, exactly once even if its result is lost.

        Unless it has to be `alone`, it may be one with the commits of other users' runs.
        """
