"""The states of conversations in a list."""

from typing import Any

import pytest
from support.stage import make

from backburner.core.conversation import EndedAs, PauseReason, Status
from backburner.core.work.list_states import ListState, list_states


@pytest.mark.parametrize(
    ("facts", "states"),
    [
        ({}, set()),
        ({"status": Status.BACKGROUND}, {ListState.SCHEDULED}),
        ({"status": Status.BACKGROUND, "failures": 1}, {ListState.SCHEDULED, ListState.FAILED}),
        ({"status": Status.WAITING_INPUT}, {ListState.NEEDS_YOU}),
        ({"pause_reason": PauseReason.USER}, {ListState.PAUSED}),
        ({"pause_reason": PauseReason.FAILURES}, {ListState.PAUSED, ListState.FAILED}),
        ({"pause_reason": PauseReason.SIGNED_OUT}, {ListState.PAUSED, ListState.NEEDS_YOU}),
        ({"ended_as": EndedAs.ERROR}, {ListState.FAILED}),
        ({"ended_as": EndedAs.COMPLETED, "failures": 1}, set()),
        ({"status": Status.ARCHIVED, "ended_as": EndedAs.ERROR}, {ListState.ARCHIVED}),
    ],
)
def test_a_conversation_has_the_states_that_a_person_thinks_of(
    facts: dict[str, Any], states: set[ListState]
) -> None:
    assert list_states(make.conversation(**facts), is_running=False) == states


def test_a_run_in_progress_is_a_state_of_its_own() -> None:
    paused = make.conversation(pause_reason=PauseReason.USER)

    assert list_states(paused, is_running=True) == {ListState.PAUSED, ListState.WORKING}
