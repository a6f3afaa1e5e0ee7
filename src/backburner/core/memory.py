"""Memories kept for a user across conversations, and the words a search finds them by.

Text in scripts without spaces between words is indexed by characters and pairs of characters, and
so are symbols such as emoji.
"""

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from itertools import groupby, islice, pairwise

from backburner.core.ids import ConversationId

#: Longer words are cut to this length.
MAX_WORD_CHARS = 64
MAX_QUERY_WORDS = 40
#: Shorter words say little about a topic, unless they are numbers or names in capitals.
MIN_TOPIC_WORD_CHARS = 4

_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x3400, 0x9FFF),  # Han
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    key: str
    text: str
    #: The conversation in which an agent wrote it; None if the user wrote it.
    conversation_id: ConversationId | None
    #: It may contain outside text.
    outside: bool
    created_at: datetime
    updated_at: datetime


class _Kind(Enum):
    NONE = auto()
    WORD = auto()
    UNSPACED = auto()


def index_words(text: str) -> list[str]:
    """List the words that a text is indexed by, without duplicates."""
    words = (word for segment, kind in _segments(text) for word in _as_indexed(segment, kind))
    return list(dict.fromkeys(words))


def query_words(text: str) -> list[str]:
    """List the words of a search query; a search treats the last one as a prefix."""
    return _limit(word for segment, kind in _segments(text) for word in _as_queried(segment, kind))


def topic_words(text: str) -> list[str]:
    """List the words that indicate what a text is about."""
    return _limit(
        word
        for segment, kind in _segments(text)
        if _indicates_topic(segment, kind)
        for word in _as_queried(segment, kind)
    )


def _segments(text: str) -> Iterator[tuple[str, _Kind]]:
    for kind, characters in groupby(unicodedata.normalize("NFKC", text), key=_kind):
        segment = "".join(characters)
        # Combining marks alone are not a word.
        if kind is _Kind.UNSPACED or (kind is _Kind.WORD and any(c.isalnum() for c in segment)):
            yield segment, kind


def _kind(character: str) -> _Kind:
    code, category = ord(character), unicodedata.category(character)
    if category[0] not in "LMN" and category != "So":
        return _Kind.NONE
    if category == "So" or any(first <= code <= last for first, last in _UNSPACED):
        return _Kind.UNSPACED
    return _Kind.WORD


def _as_indexed(segment: str, kind: _Kind) -> Iterable[str]:
    return (*segment, *_pairs(segment)) if kind is _Kind.UNSPACED else (_fold(segment),)


def _as_queried(segment: str, kind: _Kind) -> Iterable[str]:
    if kind is _Kind.WORD:
        return (_fold(segment),)
    return _pairs(segment) or (segment,)


def _pairs(segment: str) -> list[str]:
    return [first + second for first, second in pairwise(segment)]


def _fold(segment: str) -> str:
    return segment.casefold()[:MAX_WORD_CHARS]


def _indicates_topic(segment: str, kind: _Kind) -> bool:
    is_short = kind is _Kind.WORD and len(segment) < MIN_TOPIC_WORD_CHARS
    is_name = len(segment) > 1 and segment.isupper()
    return not is_short or is_name or any(c.isnumeric() for c in segment)


def _limit(words: Iterable[str]) -> list[str]:
    return list(islice(dict.fromkeys(words), MAX_QUERY_WORDS))
