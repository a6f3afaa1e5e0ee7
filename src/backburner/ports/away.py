"""What happened while a user was away, in a few rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from backburner.core.allowance import Amount
from backburner.core.ids import ConversationId, NoticeId, QuestionId, UserId


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

    def end(self, user: UserId, until: datetime) -> None:
        """Note that a user has been told all that happened until then."""

    def totals(self, user: UserId, since: datetime) -> RunCounts: ...
    def ran(self, user: UserId, since: datetime, *, limit: int) -> Sequence[ConversationRuns]:
        """Count runs by conversation: those with failures first, then the latest."""

    def needs(self, user: UserId, *, limit: int) -> Sequence[PendingQuestion]: ...
    def spent(self, user: UserId, since: datetime) -> SpendTotal: ...
    def told(self, user: UserId, since: datetime, *, limit: int) -> Sequence[RecentNotice]:
        """Read notices, the newest first."""
