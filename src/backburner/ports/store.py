"""The store: transactions, and what may be done in one.

A transaction is a plain function of a `Tx`. It may be run again if it collided with another, so it
does nothing besides. Whoever asks for something names its owner.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from backburner.core.allowance import Allowance, AllowanceScope, Amount, Cost
from backburner.core.conversation import Conversation, Message
from backburner.core.ids import (
    CallId,
    ConversationId,
    GrantId,
    ItemId,
    NoticeId,
    QuestionId,
    RunId,
    UserId,
)
from backburner.core.question import Purpose, Question
from backburner.core.run import Item, Run, RunEnding, RunKind, Turn
from backburner.core.tool_journal import JournalEntry
from backburner.core.tool_policy import Grant, ToolCall
from backburner.core.transitions import Step
from backburner.ports.accounts import Accounts, Credentials, McpClients, RateLimits
from backburner.ports.away import Away
from backburner.ports.browse import Browse
from backburner.ports.bus import Hint
from backburner.ports.discovery import Discovery
from backburner.ports.events import EventKind, Events
from backburner.ports.idempotency import StoredResponses
from backburner.ports.jobs import Jobs
from backburner.ports.memories import Memories
from backburner.ports.personal_data import PersonalData
from backburner.ports.replies import Replies
from backburner.ports.tasks import Tasks

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Claim:
    """A turn that was taken, for a run of a conversation as it was then."""

    turn: Turn
    run: Run
    conversation: Conversation
    #: The run was handed back before.
    goes_on: bool = False
    #: The jobs that it waited for meanwhile.
    awaited: tuple[ConversationId, ...] = ()
    #: Something lies in the inbox for it.
    has_items: bool = True
    #: The time zone of its owner, where that is known.
    zone: str | None = None
    #: Something is remembered for its owner, or nobody has looked.
    remembers: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimer:
    """Who takes turns, for how long, and which not."""

    worker: str
    lease: timedelta
    #: The most runs of background work that one user may have at the same time.
    cap: int
    #: Engines that have no free seat.
    full: tuple[str, ...] = ()
    #: How long a user has to be silent before discovery looks for work; None: it does not.
    discovers_after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class TurnFlags:
    """What a holder hears when it renews its lease."""

    cancelled: bool
    person_waits: bool


@dataclass(frozen=True, slots=True)
class Delivery:
    """A part to be sent, and the lease under which it may be."""

    number: int
    user_id: UserId
    conversation_id: ConversationId
    key: str
    channel: str
    target: str
    text: str
    attempts: int
    lease: int


@dataclass(frozen=True, slots=True)
class UserState:
    """A user, as far as their conversations are concerned."""

    id: UserId
    zone: str
    #: Whether their background work stands still: all of it.
    paused: bool


@dataclass(frozen=True, slots=True)
class SpendingState:
    """How a user stands: the sums asked for, the runs under way, and what was allowed."""

    spent: Mapping[str, Amount]
    #: Each with the conversation whose allowance it counts to.
    underway: Sequence[tuple[RunId, ConversationId]]
    #: For this user and conversation; what was not said is in the settings.
    allowances: Sequence[Allowance]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agenda:
    """How long until there is something to do, as far as time brings it; None: nothing is known.

    What can be done already is due in no time.
    """

    work: timedelta | None
    rescue: timedelta | None
    delivery: timedelta | None
    question: timedelta | None


class Tx(Protocol):
    @property
    def now(self) -> datetime: ...

    def hint(self, *hints: Hint) -> None:
        """Tell everybody, once this has been committed."""

    @property
    def events(self) -> Events: ...
    @property
    def replies(self) -> Replies: ...
    @property
    def absence(self) -> Away: ...
    @property
    def tasks(self) -> Tasks: ...

    def changed(self, user: UserId, conversation: ConversationId | None, *kinds: EventKind) -> None:
        """Let those who follow know that there is something new to see."""

    # Conversations and what happens to them

    def load(self, user: UserId, conversation_id: ConversationId) -> Conversation: ...
    def lock(self, user: UserId, conversation_id: ConversationId) -> Conversation: ...
    def add(self, step: Step) -> None: ...
    def save(self, step: Step) -> None: ...
    def delete(self, user: UserId, conversation_id: ConversationId) -> None:
        """Delete a conversation and what it owns, apart from what was done and spent in it."""

    def followers(
        self, user: UserId, conversation_id: ConversationId
    ) -> Sequence[ConversationId]: ...
    def children(
        self, user: UserId, conversation_id: ConversationId
    ) -> Sequence[ConversationId]: ...
    def open_children(
        self, user: UserId, conversation_id: ConversationId
    ) -> Sequence[Conversation]:
        """Read the children that have work, or ask something."""

    def recent_messages(
        self, user: UserId, conversation_id: ConversationId, *, limit: int
    ) -> Sequence[Message]: ...
    def take_back_last_message(self, user: UserId, conversation_id: ConversationId) -> None:
        """Take out the user's last message and whatever came after it."""

    def items(
        self, user: UserId, conversation_id: ConversationId, kind: RunKind
    ) -> Sequence[Item]: ...
    def items_served_by(
        self, user: UserId, conversation_id: ConversationId, run: RunId
    ) -> Sequence[Item]: ...

    @property
    def jobs(self) -> Jobs: ...

    # Questions

    def conversation_of(self, user: UserId, question: QuestionId) -> ConversationId: ...
    def allowances_asked_about(self, user: UserId) -> frozenset[str]:
        """Find what open questions about allowances are about."""

    def purposes(self, user: UserId, question_ids: Iterable[QuestionId]) -> frozenset[Purpose]: ...
    def was_asked(self, user: UserId, question: QuestionId) -> bool:
        """See whether a question was ever asked, whatever became of it."""

    def put_off(self, user: UserId, question: Question) -> None: ...
    def questions_due(self, *, limit: int) -> Sequence[tuple[UserId, QuestionId]]:
        """Find open questions that are to be brought up again, or that have expired."""

    # Turns

    def claim(self, reply: Claimer | None, work: Claimer | None) -> Claim | None:
        """Take the turn for a reply, else for work, each as far as somebody is there to do it."""

    def who_waits(self) -> str | None:
        """Find the engine that somebody who waits for a reply needs; None: nobody waits."""

    def renew(self, turn: Turn, *, lease: timedelta) -> TurnFlags: ...
    def hold(self, turn: Turn) -> Conversation: ...
    def is_cancelled(self, turn: Turn) -> bool: ...
    def note_outside(self, turn: Turn) -> None:
        """Note that words of others are read in the conversation from now on."""

    def commit(
        self, turn: Turn, step: Step, ending: RunEnding, *, served: Iterable[ItemId] = ()
    ) -> None: ...
    def hand_back(
        self, turn: Turn, step: Step, *, until: datetime | None, served: Iterable[ItemId] = ()
    ) -> None: ...
    def rescue(self, *, all_of_them: bool = False) -> "RescuedTurn | None": ...
    def agenda(self) -> Agenda: ...

    # Runs

    def run(self, user: UserId, run_id: RunId) -> Run: ...
    def history(
        self, user: UserId, conversation_id: ConversationId, *, limit: int
    ) -> Sequence[Run]: ...
    def draft(self, turn: Turn, text: str) -> None: ...
    def stop_reply(self, user: UserId, conversation_id: ConversationId) -> bool:
        """Ask a reply that is being given to stop; False: there is none."""

    def prune(self, *, before: datetime, limit: int) -> int: ...
    def session(self, turn: Turn, session_id: str) -> Sequence[str]: ...
    def has_remembered(self, turn: Turn) -> bool:
        """See whether the agent has written down anything in this run."""

    def forget(self, user: UserId, conversation_id: ConversationId, session_id: str) -> None:
        """Remove all of an agent's session that is not gone on with."""

    def remember(self, turn: Turn, session_id: str, entries: Iterable[str]) -> None: ...

    # The journal of tool calls, and what was allowed

    def begin_call(
        self,
        turn: Turn,
        call_id: CallId,
        call: ToolCall,
        *,
        read_only: bool,
        uses: GrantId | None = None,
    ) -> None:
        """Write down that a call is about to be made, and use up the grant it needs."""

    def has_begun(self, turn: Turn, call_id: CallId) -> bool: ...
    def end_call(self, turn: Turn, call: CallId, result: str, *, failed: bool) -> None: ...
    def give_up_calls(self, turn: Turn) -> None:
        """Note that nobody knows what became of the calls that are still under way."""

    def settle_call(self, user: UserId, call: CallId, result: str) -> None:
        """Write down what the owner says of a call that nobody knew about."""

    def calls_of(self, user: UserId, run: RunId) -> Sequence[JournalEntry]: ...
    def grants(self, user: UserId, conversation_id: ConversationId) -> Sequence[Grant]: ...

    def revoke(self, user: UserId, grant_id: GrantId) -> None: ...
    def hold_to(self, user: UserId, grant: Grant) -> None:
        """Hold a grant that was given to the words that it has here."""

    # What is spent

    def spend(
        self, turn: Turn, root: ConversationId, model: str, cost: Cost, *, counts_to: Iterable[str]
    ) -> None: ...
    def account(self, user: UserId, root: ConversationId, what: Iterable[str]) -> SpendingState: ...
    def has_spent(self, turn: Turn, at: datetime) -> bool:
        """See whether something was written down as spent at just that time."""

    def parked(self, user: UserId) -> Sequence[ConversationId]:
        """Find the conversations whose work stands still for an allowance."""

    def let_go_on(self, user: UserId, conversation_id: ConversationId, *, at: datetime) -> None:
        """Let runs go on from then that were handed back until something happens."""

    def set_allowance(self, user: UserId, allowance: Allowance, root: ConversationId) -> None: ...

    def disallow(self, user: UserId, scope: AllowanceScope) -> None:
        """Forget what a user said of an allowance: what goes for everybody counts again."""

    # People and the switch

    @property
    def answers(self) -> StoredResponses: ...
    @property
    def browse(self) -> Browse: ...
    @property
    def accounts(self) -> Accounts: ...
    @property
    def discovery(self) -> Discovery: ...
    @property
    def memories(self) -> Memories: ...
    @property
    def mine(self) -> PersonalData: ...

    @property
    def attempts(self) -> RateLimits: ...

    @property
    def clients(self) -> McpClients: ...

    @property
    def credentials(self) -> Credentials: ...

    def person(self, user: UserId) -> UserState: ...
    def lock_person(self, user: UserId) -> UserState: ...
    def pause_everything(self, user: UserId | None, *, paused: bool) -> None: ...

    def set_zone(self, user: UserId, zone: str) -> None: ...

    # Telling

    def see_notices(self, user: UserId, notice_ids: Iterable[NoticeId]) -> int: ...
    def see_notices_until(self, user: UserId, last: NoticeId) -> int: ...

    def take_delivery(self, *, lease: timedelta) -> Delivery | None: ...
    def delivered(self, delivery: Delivery, *, provider_id: str | None = None) -> bool: ...
    def not_delivered(self, delivery: Delivery, why: str, *, again_at: datetime | None) -> bool: ...


@dataclass(frozen=True, slots=True)
class RescuedTurn:
    """A turn that was freed, and what followed for its conversation."""

    turn: Turn
    step: Step


class Store(Protocol):
    async def transact(self, work: Callable[[Tx], T]) -> T: ...
    async def commit(self, turn: Turn, work: Callable[[Tx], None]) -> None:
        """Run a transaction that gives up a turn, once, also if an answer is lost."""
