"""The words of a search, and where texts have them: without regard to case and accents.

The store folds texts in the same way, on both databases.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from backburner.core.content.excerpt import plain_text

MAX_WORDS = 8
#: Of a message, from its beginning.
MAX_SEARCHED_CHARS = 10_000
#: Of an excerpt, and of what stands before its first hit.
MAX_HIT_CHARS, _CHARS_BEFORE = 160, 40
#: Of a message, on both sides of a hit: marks are left out there, which takes longer than a look.
#: The next hits are looked at if one is in what is not shown.
_MARKED_CHARS, _MAX_LOOKS = 1_000, 3
_ELLIPSIS = "…"
#: A phrase in quotes, or a word.
_WORD = re.compile(r'"([^"]+)"|(\S+)')
#: Combining marks; PostgreSQL removes the same.
_MARKS = re.compile("[\u0300-\u036f]+")


@dataclass(frozen=True, slots=True)
class ExcerptPart:
    """A piece of an excerpt."""

    text: str
    #: It is one of the words.
    is_hit: bool = False


def fold(text: str) -> str:
    """Leave out case and accents."""
    if text.isascii():
        return text.lower()
    plain = _MARKS.sub("", unicodedata.normalize("NFKD", text))
    return plain.lower().replace("ß", "ss")


def split_words(search: str) -> tuple[str, ...]:
    """Split a search into folded words; a phrase in quotes is one of them."""
    found = ("".join(groups) for groups in _WORD.findall(search))
    words = (" ".join(fold(one).split()) for one in found)
    return tuple(dict.fromkeys(word for word in words if word))[:MAX_WORDS]


def has_any(text: str, words: Sequence[str]) -> bool:
    folded = fold(text)
    return any(word in folded for word in words)


def cut_out(markdown: str, words: Sequence[str]) -> tuple[ExcerptPart, ...]:
    """Cut out the beginning of what was found, as plain text in parts."""
    surroundings = list(islice(_surround(markdown, words), _MAX_LOOKS))
    for first, last in surroundings:
        text = plain_text(markdown[first:last])
        if has_any(text, words):
            break
    else:
        # In what is not shown, such as the address of a link.
        first, last = surroundings[0]
        text = " ".join(markdown[first:last].split())
    hits = list(_find(text, words))
    begin = max(0, hits[0][0] - _CHARS_BEFORE) if hits else 0
    if begin:
        begin = min(text.find(" ", begin, hits[0][0]) + 1 or begin, hits[0][0])
    end = begin + MAX_HIT_CHARS
    if end < len(text):
        space = text.rfind(" ", begin + MAX_HIT_CHARS // 2, end)
        end = end if space < 0 else space
    before = _ELLIPSIS if begin or first else ""
    after = _ELLIPSIS if end < len(text) or last < len(markdown) else ""
    return tuple(_split(text, hits, (begin, min(end, len(text))), (before, after)))


def _surround(markdown: str, words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield begin and end of pieces around the hits; of a text without any, of its beginning."""
    last = 0
    for start, stop in _find(markdown, words):
        if stop > last:
            last = min(stop + _MARKED_CHARS, len(markdown))
            yield max(0, start - _MARKED_CHARS), last
    if not last:
        yield 0, min(2 * _MARKED_CHARS, len(markdown))


def _split(
    text: str, hits: Sequence[tuple[int, int]], shown: tuple[int, int], around: tuple[str, str]
) -> Iterator[ExcerptPart]:
    (begin, end), (before, after) = shown, around
    place = begin
    for start, stop in hits:
        if start >= end:
            break
        if before or start > place:
            yield ExcerptPart(before + text[place:start])
        before = ""
        yield ExcerptPart(text[start : min(stop, end)], is_hit=True)
        place = min(stop, end)
    rest = before + text[place:end] + after
    if rest:
        yield ExcerptPart(rest)


def _find(text: str, words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield begin and end of everything that was found, in order and apart from each other."""
    folded, places = _fold_with_places(text)
    # One pattern for all words would try each of them at each place.
    found = {match.span() for word in words for match in re.finditer(re.escape(word), folded)}
    last = folded_last = 0
    for folded_start, folded_stop in sorted(found, key=lambda span: (span[0], -span[1])):
        if folded_start < folded_last:
            continue
        folded_last = folded_stop
        start, stop = places[folded_start], places[folded_stop - 1] + 1
        # Accents that stand for themselves belong to their letter.
        while stop < len(text) and not fold(text[stop]):
            stop += 1
        if start >= last:
            yield start, stop
            last = stop


def _fold_with_places(text: str) -> tuple[str, Sequence[int]]:
    """Fold a text, and return for each character of the result where it comes from."""
    if text.isascii():
        return text.lower(), range(len(text))
    pieces, places = list[str](), list[int]()
    for place, char in enumerate(text):
        piece = _fold_character(char)
        pieces.append(piece)
        places += [place] * len(piece)
    return "".join(pieces), places


@lru_cache(maxsize=4096)
def _fold_character(char: str) -> str:
    return fold(char)
