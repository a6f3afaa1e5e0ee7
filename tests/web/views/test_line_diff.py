"""Differences between texts: all lines are shown, and hostile ones take no time."""

import time

import pytest

from backburner.web.views.connect.line_diff import MAX_COMPARED, compare_lines

SIGNS = {"same": " ", "removed": "-", "added": "+"}


def compare(before: list[str], after: list[str]) -> list[str]:
    lines = compare_lines(before, after)
    return [f"{SIGNS[line.tone]}{line.text.html.striptags()}" for line in lines]


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("", "", ""),
        ("a b", "a b", " a, b"),
        ("", "a b", "+a,+b"),
        ("a b", "", "-a,-b"),
        ("a b c", "a x c", " a,-b,+x, c"),
        ("a b c d e", "a c x e", " a,-b, c,-d,+x, e"),
        ("a a", "a a a", " a, a,+a"),
        ("a b a", "a", " a,-b,-a"),
    ],
)
def test_lines_are_the_same_or_removed_or_added(before: str, after: str, shown: str) -> None:
    assert ",".join(compare(before.split(), after.split())) == shown


def test_one_of_two_long_texts_is_shown_before_the_other() -> None:
    before, after = ([f"{name}{number % 500}" for number in range(1_000)] for name in "ab")
    after[500] = before[500]

    shown = compare(["first", *before, "last"], ["first", *after, "last"])

    assert len(before) * len(after) > MAX_COMPARED
    assert shown == [
        " first",
        *(f"-{line}" for line in before),
        *(f"+{line}" for line in after),
        " last",
    ]


@pytest.mark.parametrize("size", [398, 4_000])
def test_similar_lines_take_no_time(size: int) -> None:
    before, after = (
        [f"aaaaaaaaaaaa{number * 7 + rest:06}" for number in range(size)] for rest in (0, 1)
    )
    spread = [line for number in range(size // 2) for line in (f"x{number}", "same")]
    began = time.thread_time()

    compare(before, after)
    compare(spread, [f"{line}y" if line != "same" else line for line in spread])

    # It takes a tenth of that.
    assert time.thread_time() - began < 3
