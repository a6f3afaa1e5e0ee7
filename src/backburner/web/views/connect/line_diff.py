"""The difference between two texts of others, line by line, in a bounded time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from backburner.web.views.exact_text import ExactText, show_exact

#: The lines of both texts, multiplied, without those that both begin and end with. With more, all
#: of the one is shown before all of the other.
MAX_COMPARED = 160_000


@dataclass(frozen=True, slots=True)
class DiffLine:
    text: ExactText
    #: added, removed, or the same in both.
    tone: str


def compare_lines(before: Sequence[str], after: Sequence[str]) -> Iterator[DiffLine]:
    """Compare two texts; all lines of both are shown."""
    first = _count_same(before, after)
    last = _count_same(before[first:][::-1], after[first:][::-1])
    removed, added = before[first : len(before) - last], after[first : len(after) - last]
    yield from _show(before[:first], "same")
    if len(removed) * len(added) > MAX_COMPARED:
        yield from _show(removed, "removed")
        yield from _show(added, "added")
    else:
        matcher = SequenceMatcher(None, removed, added)
        for kind, start, stop, new_start, new_stop in matcher.get_opcodes():
            if kind == "equal":
                yield from _show(removed[start:stop], "same")
            else:
                yield from _show(removed[start:stop], "removed")
                yield from _show(added[new_start:new_stop], "added")
    yield from _show(before[len(before) - last :], "same")


def _count_same(one: Sequence[str], other: Sequence[str]) -> int:
    """Count the lines that both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _show(lines: Sequence[str], tone: str) -> Iterator[DiffLine]:
    return (DiffLine(show_exact(line), tone) for line in lines)
