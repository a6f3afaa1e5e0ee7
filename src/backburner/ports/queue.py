"""The queue: claims, turns, leases, and when something is due next."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from backburner.core.conversation import Conversation
from backburner.core.ids import (
    ConversationId,
    ItemId,
)
from backburner.core.run import Run, RunEnding, Turn
from backburner.core.transitions import Step


@dataclass(frozen=True, slots=True)
class Claim:
    """A turn that was taken, for a run of a conversation as it was then."""

    turn: Turn
    run: Run
    conversation: Conversation
    #: The run was handed back before.
    resumed: bool = False
    #: The jobs that it waited for meanwhile.
    awaited_jobs: tuple[ConversationId, ...] = ()
    #: Something lies in the inbox for it.
    has_items: bool = True
    #: The time zone of its owner, where that is known.
    zone: str | None = None
    #: Something is remembered for its owner, or nobody has looked.
    has_memories: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimer:
    """Who takes turns, for how long, and which not."""

    worker: str
    lease: timedelta
    #: The most runs of background work that one user may have at the same time.
    per_user_limit: int
    #: Engines that have no free seat.
    full_profiles: tuple[str, ...] = ()
    #: How long a user has to be silent before discovery looks for work; None: it does not.
    discovery_quiet_period: timedelta | None = None


@dataclass(frozen=True, slots=True)
class TurnFlags:
    """What a holder hears when it renews its lease."""

    cancelled: bool
    user_waiting: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Agenda:
    """How long until there is something to do, as far as time brings it; None: nothing is known.

    What can be done already is due in no time.
    """

    work: timedelta | None
    rescue: timedelta | None
    delivery: timedelta | None
    question: timedelta | None


@dataclass(frozen=True, slots=True)
class RescuedTurn:
    """A turn that was freed, and what followed for its conversation."""

    turn: Turn
    step: Step


class Queue(Protocol):
    def claim(self, reply: Claimer | None, work: Claimer | None) -> Claim | None:
        """Take the turn for a reply, else for work, each as far as somebody is there to do it."""

    def waiting_profile(self) -> str | None:
        """Find the engine that somebody who waits for a reply needs; None: nobody waits."""

    def rescue(self, *, all_of_them: bool = False) -> "RescuedTurn | None": ...
    def agenda(self) -> Agenda: ...


class Turns(Protocol):
    def renew(self, turn: Turn, *, lease: timedelta) -> TurnFlags: ...
    def hold(self, turn: Turn) -> Conversation: ...
    def is_cancelled(self, turn: Turn) -> bool: ...
    def mark_outside_text(self, turn: Turn) -> None:
        """Note that words of others are read in the conversation from now on."""

    def commit(
        self, turn: Turn, step: Step, ending: RunEnding, *, served: Iterable[ItemId] = ()
    ) -> None: ...
    def hand_back(
        self, turn: Turn, step: Step, *, until: datetime | None, served: Iterable[ItemId] = ()
    ) -> None: ...
