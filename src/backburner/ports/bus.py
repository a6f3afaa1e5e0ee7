"""Hints between processes, the log of changes, and drafts of replies."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from backburner.core.errors import BadRequest, TooLarge
from backburner.core.ids import ConversationId, RunId, UserId

MAX_ID_CHARS = 64
_ID = re.compile(r"[A-Za-z0-9_-]+")


class HintKind(StrEnum):
    WORK = "work"  #: There may be a run to claim; with a conversation: its run has ended.
    USER_WAITING = "person"  #: Background runs in this conversation have to yield.
    CANCEL = "cancel"  #: Runs are to stop.
    CHANGED = "changed"  #: There are new changes in the log.
    MODELS = "models"  #: Profiles are to be read again.
    EVERYTHING = "everything"  #: Hints may have been lost: act on every kind.


@dataclass(frozen=True, slots=True)
class Hint:
    """Says where something changed, not what. An id that is left out stands for all."""

    kind: HintKind
    user: UserId | None = None
    conversation: ConversationId | None = None

    def __post_init__(self) -> None:
        # The value is not quoted: text that is no id may be private.
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


#: Sent to listeners when hints may have been lost.
EVERYTHING = Hint(HintKind.EVERYTHING)


class Listener(Protocol):
    async def take(self) -> tuple[Hint, ...]:
        """Wait for hints and take all of them, each once. Cancelling the wait loses none."""


class Bus(Protocol):
    """Hints between processes. Hints may be lost, so listeners also poll.

    Only `listen` has to be called on the event loop. Nothing here blocks or fails.
    """

    def hint(self, *hints: Hint) -> None:
        """Notify this process at once, and the others soon; of changes once they are committed."""

    def listen(
        self,
        *kinds: HintKind,
        user: UserId | None = None,
        conversation: ConversationId | None = None,
    ) -> AbstractContextManager[Listener]:
        """Collect hints of these kinds, or of all, from now on. Read the state before `take`."""


class EventKind(StrEnum):
    """The kind of thing that changed."""

    CONVERSATION = "conversation"  #: Status, schedule or title.
    MESSAGE = "message"
    QUESTION = "question"  #: Asked, answered, withdrawn or snoozed.
    RUN = "run"  #: Started, ended, handed back or skipped; or it reported progress.
    NOTICE = "notice"  #: Created, delivered or seen.
    #: Outside conversations: settings, allowances, the pause switch, connections, memories, grants,
    #: tokens, sessions, and browsers that take push messages.
    USER = "user"


@dataclass(frozen=True, slots=True)
class Change:
    """Says where something changed, not what. Numbers increase within one user's changes."""

    number: int
    kind: str
    conversation: ConversationId | None


@dataclass(frozen=True, slots=True)
class ReplyDraft:
    """The text so far of a reply that is still running."""

    conversation: ConversationId
    run: RunId
    text: str
    #: Where the text begins in the whole reply, in characters.
    at: int = 0


class Events(Protocol):
    def note(self, user: UserId, conversation: ConversationId | None, *kinds: EventKind) -> None:
        """Record a change when this transaction commits."""

    def latest(self, user: UserId) -> int:
        """Return the number of the latest change; 0: there is none."""

    def has_all_since(self, user: UserId, number: int) -> bool:
        """Check that no change after this number was pruned."""

    def after(self, user: UserId, number: int, *, limit: int) -> Sequence[Change]: ...
    def latest_by_user(self, at: datetime) -> Mapping[UserId, int]:
        """Return the latest change number of every user with a change since then."""

    def drafts(
        self, user: UserId, conversations: Collection[ConversationId] | None
    ) -> Sequence[ReplyDraft]:
        """Read the drafts in these conversations, or in all."""

    def prune(self, *, before: datetime, limit: int) -> int:
        """Delete old changes; the latest change of each user stays."""


@dataclass(frozen=True, slots=True)
class DraftOpened:
    """A run of this process is about to reply."""

    run_id: RunId


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


DraftEvent = DraftOpened | DraftPiece | DraftClosed
#: Must not block or wait.
DraftListener = Callable[[UserId, ConversationId, DraftEvent], None]


class DraftBroadcast(Protocol):
    """Passes the text of runs in this process to listeners in this process, as it is produced."""

    def publish(self, user: UserId, conversation_id: ConversationId, event: DraftEvent) -> None: ...
    def listen(self, listener: DraftListener) -> AbstractContextManager[None]: ...
    def replies(self, user: UserId) -> Sequence[ReplyDraft]:
        """List the replies in progress in this process, each with its whole text so far."""

    def is_writing(self, user: UserId, conversation_id: ConversationId) -> bool:
        """Check whether a run of this process gives a reply there."""
