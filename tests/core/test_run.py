"""Inbox items: whether a user waits for the reply. Skipped slots: why, in words."""

import pytest
from support.stage.make import NOON

from backburner.core.run import (
    MAX_KEPT_PROMPT_CHARS,
    ItemKind,
    NewItem,
    RunKind,
    SkippedSlots,
    SkipReason,
    shorten_prompt,
)
from backburner.core.schedule import Gap


@pytest.mark.parametrize(
    ("kind", "run_kind", "is_from_user"),
    [
        (ItemKind.MESSAGE, RunKind.REPLY, True),
        (ItemKind.ANSWER, RunKind.REPLY, True),
        (ItemKind.JOB_RESULT, RunKind.REPLY, False),
        (ItemKind.MESSAGE, RunKind.BACKGROUND, False),
        (ItemKind.RUN_NOW, RunKind.BACKGROUND, False),
    ],
)
def test_an_item_is_from_the_user_if_they_wait_for_a_reply(
    kind: ItemKind, run_kind: RunKind, *, is_from_user: bool
) -> None:
    assert NewItem(kind=kind, run_kind=run_kind).is_from_user is is_from_user


@pytest.mark.parametrize(
    ("gap", "reason", "words"),
    [
        (Gap(1, NOON, NOON), SkipReason.WAITING, "it waited for your answer"),
        (
            Gap(2, NOON, NOON),
            SkipReason.STILL_RUNNING,
            "an earlier run was still going (2 times)",
        ),
        (Gap(3, NOON, NOON), SkipReason.PAUSED, "background work was paused (3 times)"),
        (
            Gap(1000, NOON, NOON, or_more=True),
            SkipReason.MISSED,
            "machine off or busy, or model unavailable (at least 1000 times)",
        ),
    ],
)
def test_skipped_slots_say_why_in_words(gap: Gap, reason: SkipReason, words: str) -> None:
    assert SkippedSlots(gap, reason).in_words == words


def test_of_a_long_prompt_the_beginning_and_the_end_are_kept() -> None:
    kept = shorten_prompt("a" * 10_000 + "b" * 2_000)

    assert shorten_prompt("short") == "short"
    assert kept.startswith("aaa")
    assert kept.endswith("b" * 2_000)
    assert "[… 4,000 characters left out …]" in kept
    assert len(kept) < MAX_KEPT_PROMPT_CHARS + 100
