"""What discovery goes by: whether it is on, whether somebody is there, and what was said lately."""

from collections.abc import Sequence
from typing import Protocol

from backburner.core.ids import ConversationId, UserId
from backburner.core.work.discovery import Snippet


class Discovery(Protocol):
    def find(self, user: UserId) -> Sequence[ConversationId]:
        """Find the conversation that looks for work for a user; none: it is switched off."""

    def talk(self, user: UserId, *, limit: int) -> Sequence[Snippet]:
        """Read what was said last in a user's chats, oldest first."""
