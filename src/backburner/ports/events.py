"""The log of what changed for a user, for those who follow it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from backburner.core.ids import ConversationId, RunId, UserId


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


class Events(Protocol):
    def note(self, user: UserId, conversation: ConversationId | None, *kinds: EventKind) -> None:
        """Have it written down, with this transaction, that something changed."""

    def newest(self, user: UserId) -> int:
        """Give the number of the last change; 0: there was none."""

    def is_known(self, user: UserId, number: int) -> bool:
        """See whether all that came after a change is still there."""

    def after(self, user: UserId, number: int, *, limit: int) -> Sequence[Change]: ...
    def newest_since(self, at: datetime) -> Mapping[UserId, int]:
        """Give the last change of everybody for whom something changed since then."""

    def drafts(
        self, user: UserId, conversations: Collection[ConversationId] | None
    ) -> Sequence[ReplyDraft]:
        """Read what is being said, in these conversations or in all."""

    def prune(self, *, before: datetime, limit: int) -> int:
        """Delete what changed long ago; of each user the last change stays."""
