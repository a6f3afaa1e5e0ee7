"""What is remembered for a user across conversations, each under a key; found by its words."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from backburner.core.ids import ConversationId, UserId
from backburner.core.memory import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    key: str
    text: str
    conversation_id: ConversationId | None = None
    outside: bool = False


class MemoryWrite(StrEnum):
    NEW = "new"
    OVER = "over"  #: In place of what was there.
    REFUSED = "refused"  #: What is there was not to be touched.


class Memories(Protocol):
    def put(self, user: UserId, memory: NewMemory, *, spare_own: bool = False) -> MemoryWrite:
        """Write a memory over the one that has its key; `spare_own`: unless that is a trusted one.

        Trusted are those that hold no words of others.
        """

    def remove(self, user: UserId, key: str, *, spare_own: bool = False) -> bool:
        """Delete a memory; False: it is one that was to be spared."""

    def count(self, user: UserId) -> int: ...
    def search(self, user: UserId, words: Sequence[str], *, limit: int) -> Sequence[Memory]:
        """Find those that have any of the words, best first; the last may be a beginning.

        A word that few memories have counts for more.
        """

    def recall(self, user: UserId, words: Sequence[str], *, limit: int) -> Sequence[Memory]:
        """Find those that have any of the words, best first, and then the newest trusted ones.

        Here the words are whole.
        """
