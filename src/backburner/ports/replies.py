"""What became of something that a person said."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from backburner.core.conversation import Message
from backburner.core.ids import ConversationId, ItemId, MessageId, UserId
from backburner.core.run import Run


@dataclass(frozen=True, slots=True)
class Reply:
    """What was said in return, and the last run that did; None: nobody will answer."""

    run: Run | None
    messages: Sequence[Message]


class Replies(Protocol):
    def find(
        self,
        user: UserId,
        conversation_id: ConversationId,
        said: MessageId,
        items: Collection[ItemId],
    ) -> Reply | None:
        """Find what came of a message that put these items into the inbox; None: not yet."""

    def message(
        self, user: UserId, conversation_id: ConversationId, said: MessageId
    ) -> Message: ...
