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

#: Of a longer word the beginning counts.
MAX_WORD_CHARS = 64
#: Of what is looked for.
MAX_QUERY_WORDS = 40
#: Shorter ones say little of what a text is about, unless they are numbers or names in capitals.
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
    """List the words by which a text is found, each once."""
    return _each_once(word for run, kind in _runs(text) for word in _as_kept(run, kind))


def query_words(text: str) -> list[str]:
    """List the words that somebody looks for; the last may be the beginning of one."""
    return _few(word for run, kind in _runs(text) for word in _as_sought(run, kind))


def topic_words(text: str) -> list[str]:
    """List the words that say what a text is about."""
    return _few(
        word for run, kind in _runs(text) if _tells(run, kind) for word in _as_sought(run, kind)
    )


def _runs(text: str) -> Iterator[tuple[str, _Kind]]:
    for kind, characters in groupby(unicodedata.normalize("NFKC", text), key=_kind):
        run = "".join(characters)
        # Marks alone belong to something that is no word.
        if kind is _Kind.UNSPACED or (kind is _Kind.WORD and any(c.isalnum() for c in run)):
            yield run, kind


def _kind(character: str) -> _Kind:
    code, category = ord(character), unicodedata.category(character)
    if category[0] not in "LMN" and category != "So":
        return _Kind.NONE
    if category == "So" or any(first <= code <= last for first, last in _UNSPACED):
        return _Kind.UNSPACED
    return _Kind.WORD


def _as_kept(run: str, kind: _Kind) -> Iterable[str]:
    return (*run, *_pairs(run)) if kind is _Kind.UNSPACED else (_fold(run),)


def _as_sought(run: str, kind: _Kind) -> Iterable[str]:
    if kind is _Kind.WORD:
        return (_fold(run),)
    return _pairs(run) or (run,)


def _pairs(run: str) -> list[str]:
    return [first + second for first, second in pairwise(run)]


def _fold(run: str) -> str:
    return run.casefold()[:MAX_WORD_CHARS]


def _tells(run: str, kind: _Kind) -> bool:
    is_short = kind is _Kind.WORD and len(run) < MIN_TOPIC_WORD_CHARS
    is_name = len(run) > 1 and run.isupper()
    return not is_short or is_name or any(c.isnumeric() for c in run)


def _few(words: Iterable[str]) -> list[str]:
    return list(islice(dict.fromkeys(words), MAX_QUERY_WORDS))


def _each_once(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))
