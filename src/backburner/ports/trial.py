"""A try whether a model answers, and what it was if it did not."""

from dataclasses import dataclass
from enum import StrEnum


class Trouble(StrEnum):
    REFUSED = "refused"  #: It does not take the key or token.
    UNREACHABLE = "unreachable"  #: Nothing answers, or nothing that speaks the protocol.
    MODEL = "model"  #: It does not have that model.
    LIMIT = "limit"  #: It would, but not now, or not without being paid.
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Trial:
    """How a try went, in a sentence without any secret in it."""

    words: str
    #: None: it works.
    trouble: Trouble | None = None
    #: What to do about it, in a sentence.
    hint: str = ""

    @property
    def works(self) -> bool:
        return self.trouble is None
