"""What is remembered for a user across conversations."""

from dataclasses import dataclass
from datetime import datetime

from backburner.core.ids import ConversationId


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    key: str
    text: str
    #: Where an agent wrote it; None: its user did.
    conversation_id: ConversationId | None
    #: Words of others may be in it.
    outside: bool
    created_at: datetime
    updated_at: datetime
