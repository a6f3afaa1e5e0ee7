"""Inbox items: whether a user waits for the reply."""

import pytest

from backburner.core.run import ItemKind, NewItem, RunKind


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
