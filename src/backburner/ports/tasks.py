"""A user's tasks: which count as active, how they are found by name, and what their runs cost."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from backburner.core.allowance import Cost
from backburner.core.conversation import Conversation
from backburner.core.ids import ConversationId, UserId
from backburner.core.work.proposal import RejectedProposal


class Tasks(Protocol):
    def active(self, user: UserId) -> Sequence[tuple[ConversationId, str]]:
        """Name the tasks that run or will go on by themselves, chats with work among them."""

    def open(self, user: UserId, *, limit: int) -> Sequence[Conversation]:
        """Read the tasks that have a schedule: active, paused and proposed, newest first."""

    def called(self, user: UserId, name: str, *, limit: int) -> Sequence[Conversation]:
        """Find tasks, ended ones too, that have just this title, or an id that begins so."""

    def count_proposed(self, user: UserId, parent: ConversationId, *, since: datetime) -> int:
        """Count what was proposed under a conversation, whatever became of it."""

    def dismissed(self, user: UserId, *, since: datetime) -> Sequence[RejectedProposal]: ...

    def costs(self, user: UserId, conversation_id: ConversationId, *, limit: int) -> Sequence[Cost]:
        """Read what the last background runs of a conversation cost, each."""

    def costs_under(
        self, user: UserId, profile: str, *, since: datetime, limit: int
    ) -> Sequence[Cost]:
        """Read what the last background runs of a user under a profile cost, each."""
