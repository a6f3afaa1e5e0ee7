"""The queue: claims, turns, leases and the agenda."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from backburner.core.conversation import Conversation, Kind
from backburner.core.ids import ConversationId, ItemId, RunId, UserId
from backburner.core.retry import Outage
from backburner.core.routing import NO_EXIT, NO_PROFILES, AfterDemo, ProfileFilter
from backburner.core.run import NO_WAIT, Failure, FailureKind, ModelWait, Run, RunEnding, Turn
from backburner.core.transitions import Step


@dataclass(frozen=True, slots=True)
class Claim:
    """A claimed turn, with its run and the conversation at that time."""

    turn: Turn
    run: Run
    conversation: Conversation
    #: The profile that the run uses, whose seat it takes; empty: the default.
    profile: str = ""
    #: The run continues after it was handed back.
    resumed: bool = False
    #: Jobs that the run waited for while it was handed back.
    awaited_jobs: tuple[ConversationId, ...] = ()
    #: The inbox has items for this run.
    has_items: bool = True
    #: The owner's time zone, if known.
    zone: str | None = None
    #: False: the owner is known to have no memories.
    has_memories: bool = True
    #: False: the owner is known to have no connections.
    has_connections: bool = True
    #: False: the conversation is known to have no children.
    has_children: bool = True
    #: There is an outage of its profile; if the run succeeds, the outage is over.
    in_outage: bool = False
    #: Background work: it is the one that tries whether the model is back.
    is_probe: bool = False


@dataclass(frozen=True, slots=True)
class SeatRequest:
    """The seat that a run needs."""

    profile: str
    #: Its timeout is a long one.
    is_long: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimer:
    """The worker that claims, its lease, and its limits."""

    worker: str
    lease: timedelta
    #: Max concurrent background runs of one user.
    per_user_limit: int
    #: Profiles without a free seat.
    full_profiles: tuple[str, ...] = ()
    #: Profiles whose free seats are for short runs only; `short_only`: those of all profiles.
    short_profiles: tuple[str, ...] = ()
    short_only: bool = False
    #: The profile of conversations without one.
    default_profile: str = ""
    after_demo: AfterDemo = NO_EXIT
    #: Users whose rows were found locked a moment ago.
    passed_over: tuple[UserId, ...] = ()
    #: The id of its machine: work in folders of other machines is left to them.
    machine: str = ""
    #: All machines have the same folders: each is one folder, whatever machine is noted with it.
    shares_folders: bool = False
    #: How long a user must be inactive before discovery runs; None: discovery is off.
    discovery_quiet_period: timedelta | None = None

    def has_seat(self, seat: SeatRequest) -> bool:
        if seat.profile in self.full_profiles:
            return False
        return not seat.is_long or not (self.short_only or seat.profile in self.short_profiles)


@dataclass(frozen=True, slots=True)
class TurnFlags:
    """Stop requests that a lease renewal returns."""

    cancelled: bool
    user_waiting: bool
    #: False: the lease was not extended, because another transaction has locked the conversation.
    renewed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Agenda:
    """Time until each kind of work is due; zero or less: due now; None: none is scheduled."""

    #: By the clock of the database.
    now: datetime
    work: timedelta | None
    rescue: timedelta | None
    delivery: timedelta | None
    question: timedelta | None
    #: Something waits in an inbox, perhaps for a reply.
    has_items: bool = False
    #: One user has an account here, or none.
    one_account: bool = False


@dataclass(frozen=True, slots=True)
class RescuedTurn:
    """A turn whose lease had expired, and the resulting step of its conversation."""

    turn: Turn
    step: Step


@dataclass(frozen=True, slots=True)
class LateWork:
    """Work that is due and has not been claimed."""

    user_id: UserId
    conversation_id: ConversationId
    due_at: datetime
    kind: Kind
    run_timeout: timedelta | None
    is_recurring: bool
    #: When its user last resumed their work.
    resumed_at: datetime | None = None
    #: A run of it was handed back: since when that one waits for its model.
    waits_since: datetime | None = None
    #: When its last run ended, if one has.
    last_ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class OutageReport:
    """A user who was told about an outage, in one of their conversations."""

    user_id: UserId
    conversation_id: ConversationId
    profile: str
    #: What they were told.
    kind: FailureKind = FailureKind.UNAVAILABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class OutageUser:
    """A user, and what an outage means to them."""

    user_id: UserId
    was_told: bool
    was_told_of_denial: bool
    #: They were not told, and background work of theirs waits for the model.
    work_waits: bool
    is_operator: bool


class Outages(Protocol):
    """Outages of the models that profiles use."""

    def all(self) -> Sequence[Outage]: ...
    def find(self, profile: str) -> Outage | None: ...
    def note(self, profile: str, failure: Failure, *, probed: bool) -> Outage: ...
    def keep_trying(self, profiles: Iterable[str]) -> None: ...
    def end(self, profile: str) -> bool: ...
    def note_answer(self, profile: str) -> None: ...
    def end_probe(self, profile: str) -> None: ...
    def probe_soon(self, profiles: Sequence[str]) -> None: ...
    def late_work(
        self, profiles: ProfileFilter, after: LateWork | None, *, before: datetime, limit: int
    ) -> Sequence[LateWork]: ...
    def find_late_work(self, work: LateWork, profiles: ProfileFilter) -> LateWork | None:
        """Find late work again, as it is now; None: it is not late any more."""

    def users(
        self, outage: Outage, profiles: ProfileFilter, after: str, *, before: datetime, limit: int
    ) -> Sequence[OutageUser]: ...
    def longest_waiting(
        self, user: UserId, profiles: ProfileFilter, *, before: datetime
    ) -> ConversationId | None: ...
    def report(
        self, report: OutageReport, *, since: datetime, again_if_denied: bool = False
    ) -> bool: ...
    def take_ended(self, *, limit: int) -> Sequence[OutageReport]: ...


class Queue(Protocol):
    def claim(
        self,
        reply: Claimer | None,
        work: Claimer | None,
        *,
        limit: int = 1,
        has_seat: Callable[[Sequence[SeatRequest], SeatRequest], bool] = ...,
    ) -> Sequence[Claim]:
        """Claim a reply, else background work of several users; None skips that kind.

        Runs of one user may share an allowance, and are claimed one after the other. So is all work
        while there is any but schedules that are due: answers, results, runs that were handed back.
        `has_seat` says whether there is one for a run, besides others that are claimed with it.
        """

    @property
    def probe_delays(self) -> Mapping[str, timedelta]:
        """The profiles in an outage at the last claim, each with the time until its next probe."""

    @property
    def has_waiting_users(self) -> bool:
        """Whether a user waited for a reply at the last claim, or is being replied to."""

    @property
    def unclaimed(self) -> int:
        """How much else the last claim has seen; not all of it may be claimed."""

    def waiting_profiles(self, after_demo: AfterDemo = NO_EXIT) -> Sequence[str]:
        """Return the profiles of replies that users wait for, the longest waiting first."""

    def overdue(
        self, reply: Claimer | None, work: Claimer | None, *, by: timedelta
    ) -> ConversationId | None:
        """Find what these should have claimed so long ago; None: nothing."""

    def rescue(self, *, all_of_them: bool = False) -> RescuedTurn | None: ...
    def agenda(self, *, without: ProfileFilter = NO_PROFILES) -> Agenda:
        """Read when each kind of work is due, without background work of these profiles."""

    def correct_times(self, *, lease: timedelta, delivery_lease: timedelta, jumped: bool) -> int:
        """Correct the times that a clock wrote which ran ahead; return how much work has new ones.

        Leases end after `lease` or `delivery_lease` at the latest. Unless the clock has just
        `jumped` back, it is checked first whether it ran ahead.
        """


class Turns(Protocol):
    def renew(self, turns: Iterable[Turn], *, lease: timedelta) -> Mapping[RunId, TurnFlags]:
        """Extend leases; turns that are not held any more are left out of the result."""

    def hold(self, turn: Turn) -> Conversation: ...
    def version(self, turn: Turn) -> str | None:
        """Return the version of the conversation as it is held; None: rows have none."""

    def is_cancelled(self, turn: Turn) -> bool: ...
    def mark_outside_text(self, turn: Turn, *, marked: bool = True) -> None:
        """Record whether the agent's session has read outside text."""

    def commit(
        self,
        turn: Turn,
        step: Step,
        ending: RunEnding,
        *,
        served: Iterable[ItemId] = (),
        prompt: str | None = None,
    ) -> None:
        """Store the outcome of a run and give up its turn; `prompt` is what it was told."""

    def hand_back(
        self,
        turn: Turn,
        step: Step,
        *,
        until: datetime | None,
        served: Iterable[ItemId] = (),
        wait: ModelWait = NO_WAIT,
        prompt: str | None = None,
    ) -> None: ...
