"""The state of a conversation as a person thinks of it in a list. Several may hold at once."""

from enum import StrEnum

from backburner.core.conversation import Conversation, EndedAs, PauseReason, Status


class ListState(StrEnum):
    NEEDS_YOU = "needs_you"  #: A question is open, or its work waits for a sign-in.
    WORKING = "working"  #: A run is in progress.
    SCHEDULED = "scheduled"  #: Its work has a next time, or waits for an event.
    PAUSED = "paused"
    FAILED = "failed"  #: Its work ended in an error, was paused for one, or failed last.
    ARCHIVED = "archived"


#: Work that is paused for one of these has failed.
FAILURE_PAUSES = frozenset({PauseReason.FAILURES, PauseReason.CRASHES})


def list_states(conversation: Conversation, *, is_running: bool) -> frozenset[ListState]:
    """Derive the states; an archived conversation has no other."""
    if conversation.status is Status.ARCHIVED:
        return frozenset({ListState.ARCHIVED})
    paused_for = conversation.pause_reason if conversation.status is Status.ACTIVE else None
    has_failed = (
        conversation.ended_as is EndedAs.ERROR
        or paused_for in FAILURE_PAUSES
        or (conversation.ended_as is None and conversation.failures > 0)
    )
    waits = conversation.status is Status.WAITING_INPUT
    holds = {
        ListState.NEEDS_YOU: waits or paused_for is PauseReason.SIGNED_OUT,
        ListState.WORKING: is_running,
        ListState.SCHEDULED: conversation.status is Status.BACKGROUND,
        ListState.PAUSED: paused_for is not None,
        ListState.FAILED: has_failed,
    }
    return frozenset(state for state, does_hold in holds.items() if does_hold)
