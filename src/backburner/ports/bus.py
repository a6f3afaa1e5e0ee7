"""Hints between processes, the log of changes, and drafts: what tells others where to look."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from backburner.core.errors import BadRequest, TooLarge
from backburner.core.ids import ConversationId, RunId, UserId

MAX_ID_CHARS = 64


_ID = re.compile(r"[A-Za-z0-9_-]+")


class HintKind(StrEnum):
    WORK = "work"  #: There may be something to claim.
    USER_WAITING = "person"  #: Somebody waits for a reply; background work in the way hands back.
    CANCEL = "cancel"  #: Something under way is to stop.
    CHANGED = "changed"  #: There is something new to see.
    EVERYTHING = "everything"  #: Hints may have been lost: look as if each kind had come.


@dataclass(frozen=True, slots=True)
class Hint:
    """Where to look, never what is there. An id that is left out stands for all of them."""

    kind: HintKind
    user: UserId | None = None
    conversation: ConversationId | None = None

    def __post_init__(self) -> None:
        # Nothing is quoted: what is no id may be what nobody else is to read.
        for name, value in (("user", self.user), ("conversation", self.conversation)):
            if value is not None and len(value) > MAX_ID_CHARS:
                raise TooLarge(
                    f"The {name} id of a hint",
                    size=len(value),
                    limit=MAX_ID_CHARS,
                    unit="characters",
                )
            if value is not None and not _ID.fullmatch(value):
                raise BadRequest(f"The {name} id of a hint is not an id.")


#: What listeners get when hints may have been lost.
EVERYTHING = Hint(HintKind.EVERYTHING)


class NotifyStatement(NamedTuple):
    """SQL in the words of the driver, to be run as it is."""

    sql: str
    parameters: tuple[object, ...]


class Listener(Protocol):
    async def take(self) -> tuple[Hint, ...]:
        """Wait for hints and take all there are, each once; giving up the wait loses none."""


class Bus(Protocol):
    """Hints between processes. They may be lost: whoever listens also looks from time to time.

    Only `listen` has to be called on the event loop. Nothing here blocks or fails.
    """

    def hint(self, *hints: Hint) -> None:
        """Tell all processes; for what no transaction announces."""

    def statement(self, hints: Iterable[Hint]) -> NotifyStatement | None:
        """Give what tells the other processes when the transaction that runs it commits.

        This process is told by `committed`.
        """

    def committed(self, *hints: Hint) -> None:
        """Tell this process what a transaction has told the others."""

    def listen(
        self,
        *kinds: HintKind,
        user: UserId | None = None,
        conversation: ConversationId | None = None,
    ) -> AbstractContextManager[Listener]:
        """Collect hints of these kinds, or of all, from now on. Look first, then `take`."""


class EventKind(StrEnum):
    """What is to be looked at again."""

    CONVERSATION = "conversation"  #: Its status, its schedule, its title.
    MESSAGE = "message"
    QUESTION = "question"  #: Asked, answered, withdrawn or put off.
    RUN = "run"  #: Begun, ended, handed back or skipped.
    NOTICE = "notice"  #: Told, delivered or seen.
    USER = "user"  #: Whatever belongs to no conversation: settings, allowances, the switch.


@dataclass(frozen=True, slots=True)
class Change:
    """Where to look, not what is there. Of one user's, a later one has a greater number."""

    number: int
    kind: str
    conversation: ConversationId | None


@dataclass(frozen=True, slots=True)
class ReplyDraft:
    """What has been said so far in a reply that is being given."""

    conversation: ConversationId
    run: RunId
    text: str
    #: Where the text begins in the whole reply, in characters.
    at: int = 0


class Events(Protocol):
    def note(self, user: UserId, conversation: ConversationId | None, *kinds: EventKind) -> None:
        """Have it written down, with this transaction, that something changed."""

    def latest(self, user: UserId) -> int:
        """Give the number of the last change; 0: there was none."""

    def has_all_since(self, user: UserId, number: int) -> bool:
        """See whether all that came after a change is still there."""

    def after(self, user: UserId, number: int, *, limit: int) -> Sequence[Change]: ...
    def latest_by_user(self, at: datetime) -> Mapping[UserId, int]:
        """Give the last change of everybody for whom something changed since then."""

    def drafts(
        self, user: UserId, conversations: Collection[ConversationId] | None
    ) -> Sequence[ReplyDraft]:
        """Read what is being said, in these conversations or in all."""

    def prune(self, *, before: datetime, limit: int) -> int:
        """Delete what changed long ago; of each user the last change stays."""


@dataclass(frozen=True, slots=True)
class DraftPiece:
    """A further piece of the text of a run in this process."""

    run_id: RunId
    #: Its offset in the whole text, in characters.
    at: int
    text: str
    is_reply: bool


@dataclass(frozen=True, slots=True)
class DraftClosed:
    """The run has ended, or continues in another process; its text is in the messages, if any."""

    run_id: RunId


DraftEvent = DraftPiece | DraftClosed
#: Must not block or wait.
DraftListener = Callable[[UserId, ConversationId, DraftEvent], None]


class DraftBroadcast(Protocol):
    """Passes the text of runs in this process to listeners in this process, as it is produced."""

    def publish(self, user: UserId, conversation_id: ConversationId, event: DraftEvent) -> None: ...

    def listen(self, listener: DraftListener) -> AbstractContextManager[None]: ...

    def replies(self, user: UserId) -> Sequence[ReplyDraft]:
        """List the replies in progress in this process, each with its whole text so far."""
