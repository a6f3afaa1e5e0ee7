"""Conversations in a database restored from a backup."""

from datetime import timedelta

import pytest
from support.cases.transition_cases import ASKS, DAILY, HOUR, NINE, RUN, once, proposed, working
from support.stage import make

from backburner.core import transitions
from backburner.core.conversation import Conversation, PauseReason, Status
from backburner.core.run import SkipReason
from backburner.core.schedule import Immediate, Scheduled
from backburner.core.transitions import Stops

LATER = NINE + timedelta(days=3, hours=1)


def test_restored_recurring_work_is_paused_and_missed_slots_are_skipped() -> None:
    step = transitions.restore(working(settled_until=None), now=LATER)
    resumed = transitions.resume(step.conversation, now=LATER).conversation

    assert (step.conversation.status, step.conversation.pause_reason) == (
        Status.ACTIVE,
        PauseReason.USER,
    )
    assert [(s.gap.count, s.reason) for s in step.skipped] == [(4, SkipReason.MISSED)]
    assert step.conversation.schedule == DAILY
    assert resumed.next_run_at == NINE + timedelta(days=4)
    assert "skipped" in step.messages[0].content
    assert step.stops is Stops.EVERYTHING


@pytest.mark.parametrize(
    ("conversation", "words"),
    [
        (once(), "It was due at 2026-11-17 09:00 UTC. Resume it to do it now"),
        (working(schedule=Immediate()), "It may have been done already. Resume it to do it now"),
        (once(schedule=Scheduled(LATER + HOUR)), "It is due at 2026-11-20"),
    ],
    ids=["past", "at once", "to come"],
)
def test_restored_one_time_work_is_not_repeated(conversation: Conversation, words: str) -> None:
    step = transitions.restore(conversation, now=LATER)

    assert (step.conversation.pause_reason, step.conversation.next_run_at) == (
        PauseReason.USER,
        None,
    )
    assert words in step.messages[0].content
    assert step.notices[0].text == step.messages[0].content


def test_a_question_stays_open_when_restored_work_is_paused() -> None:
    waiting = transitions.finish(working(), RUN, ASKS, now=NINE).conversation
    step = transitions.restore(waiting, now=LATER)

    assert step.conversation.status is Status.WAITING_INPUT
    assert step.conversation.questions == waiting.questions
    assert step.conversation.pause_reason is PauseReason.USER


@pytest.mark.parametrize(
    "conversation",
    [
        proposed(),
        working(pause_reason=PauseReason.FAILURES, status=Status.ACTIVE),
        make.conversation(),
    ],
    ids=["proposed", "paused", "chat"],
)
def test_a_restored_conversation_without_active_work_does_not_change(
    conversation: Conversation,
) -> None:
    step = transitions.restore(conversation, now=LATER)

    assert (step.conversation, step.messages) == (conversation, ())
    assert step.stops is Stops.EVERYTHING


def test_unserved_inbox_items_are_dropped_on_restore_with_a_message() -> None:
    step = transitions.restore(make.conversation(), now=LATER, unserved=True)

    assert "send them again" in step.messages[0].content


def test_a_restored_conversation_that_is_archived_stays_archived() -> None:
    archived = make.conversation(status=Status.ARCHIVED)
    step = transitions.restore(archived, now=LATER, unserved=True)

    assert (step.conversation, step.messages, step.stops) == (archived, (), Stops.NOTHING)
