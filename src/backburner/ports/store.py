"""The store: transactions, and what may be done in one."""

from dataclasses import dataclass

from backburner.core.conversation import Conversation
from backburner.core.run import Run, Turn


@dataclass(frozen=True, slots=True)
class Claim:
    """A turn that was taken, for a run of a conversation as it was then."""

    turn: Turn
    run: Run
    conversation: Conversation


@dataclass(frozen=True, slots=True)
class Flags:
    """What a holder hears when it renews its lease."""

    cancelled: bool
    person_waits: bool


@dataclass(frozen=True, slots=True)
class Delivery:
    """A part to be sent, and the lease under which it may be."""

    number: int
    key: str
    channel: str
    target: str
    text: str
    attempts: int
    lease: int
