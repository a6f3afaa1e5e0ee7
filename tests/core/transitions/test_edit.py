"""Editing work, and cancelling it with its conversation."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from support.cases.transition_cases import DAILY, HOUR, NINE, proposed, working
from support.stage.make import NOON

from backburner.core import transitions
from backburner.core.conversation import Destination, EndedAs, Kind, Notify, State, Status
from backburner.core.errors import BadRequest, Conflict, TooLarge
from backburner.core.question import YES
from backburner.core.schedule import Interval
from backburner.core.transitions import FollowerEvent, Stops, Terms

TASK = working(kind=Kind.TASK, title="watch")
TWO_HOURLY = Interval(2 * HOUR, anchor=NOON)


def reworked(conversation: Any = TASK, **changes: Any) -> transitions.Step:
    terms = replace(Terms.of(conversation), **changes)
    return transitions.edit_terms(conversation, terms, now=NOON)


def test_all_terms_of_some_work_can_be_changed() -> None:
    places = (Destination("discord", "42"),)
    step = reworked(
        title=" watch  it ",
        prompt="Look.",
        description="It matters.",
        notify=Notify.NEVER,
        max_runs=3,
        run_timeout=timedelta(minutes=1),
        tools=("look",),
        reports_to=places,
    )

    after = step.conversation
    assert (after.title, after.notify, after.max_runs) == ("watch it", Notify.NEVER, 3)
    assert after.state.context == {"prompt": "Look.", "description": "It matters."}
    assert (after.tools, after.reports_to) == (("look",), places)
    assert after.run_timeout == timedelta(minutes=1)
    # Its time and what is under way stay.
    assert (after.next_run_at, after.schedule_revision) == (NINE, 1)
    assert not step.drops_queued


@pytest.mark.parametrize(
    ("changes", "ends"),
    [
        ({"prompt": "Look."}, True),
        # Its agent reads it like the prompt.
        ({"description": "Send it to everybody."}, True),
        ({"tools": ("look",)}, True),
        ({"connections": ("mail",)}, True),
        ({"title": "other", "notify": Notify.NEVER, "max_runs": 3}, False),
    ],
)
def test_grants_end_with_the_work_that_they_were_given_for(
    changes: dict[str, Any], *, ends: bool
) -> None:
    assert reworked(**changes).ends_all_grants is ends


def test_another_time_counts_from_now() -> None:
    step = transitions.edit_terms(TASK, Terms.of(TASK), now=NOON, schedule=TWO_HOURLY)

    assert (step.conversation.schedule, step.conversation.next_run_at) == (TWO_HOURLY, NOON)
    assert step.conversation.schedule_revision == 2


def test_a_changed_proposal_is_asked_about_anew() -> None:
    before = proposed()
    step = reworked(before, prompt="Look twice.")

    (question,) = step.asked
    assert step.withdrawn == (before.questions[0].id,)
    assert "Look twice." in question.prompt
    assert "It broke twice." in question.prompt
    with pytest.raises(Conflict):
        transitions.answer(step.conversation, before.questions[0].id, YES, now=NOON)
    # What it was before is another question by now.
    back = reworked(step.conversation, prompt="Watch the build.")
    assert back.asked[0].id != before.questions[0].id


def test_a_proposal_that_stays_as_it_is_is_not_asked_about_again() -> None:
    before = proposed(description="It matters.")

    assert reworked(before) == transitions.Step(conversation=before)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"title": " "}, "Work needs a name and a prompt."),
        ({"prompt": " "}, "Work needs a name and a prompt."),
        ({"title": "x" * 201}, "the limit is 200"),
        ({"max_runs": 5}, "It has run 5 times, so max_runs must be 6 or more."),
        ({"prompt": "x" * 30_000}, "the limit is 24,000"),
    ],
)
def test_terms_that_make_no_sense_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises((BadRequest, TooLarge), match=said):
        reworked(replace(TASK, run_count=5), **changes)


def test_a_limit_that_was_there_before_is_no_hindrance() -> None:
    assert reworked(replace(TASK, run_count=5, max_runs=5), title="w").conversation.title == "w"


def test_an_archived_conversation_is_not_changed() -> None:
    with pytest.raises(Conflict):
        reworked(replace(TASK, status=Status.ARCHIVED))


def test_a_cancelled_task_is_archived_with_the_reason() -> None:
    step = transitions.cancel_and_archive(TASK, " It was\nmerged. ", now=NOON)

    after = step.conversation
    assert (after.status, after.ended_as, after.schedule) == (
        Status.ARCHIVED,
        EndedAs.CANCELLED,
        None,
    )
    assert [message.content for message in step.messages] == ["It was cancelled: It was merged."]
    assert (step.stops, step.signal) == (Stops.EVERYTHING, FollowerEvent.STOPPED)
    assert step.report is not None
    assert step.report.text == "It was cancelled: It was merged."


def test_a_parent_gets_no_report_of_its_own_cancellation() -> None:
    step = transitions.cancel_and_archive(TASK, "", now=NOON, by_parent=True)

    assert (step.report, step.messages[0].content) == (None, "It was cancelled.")


def test_a_task_that_has_ended_is_only_archived() -> None:
    ended = transitions.cancel(TASK, now=NOON).conversation
    step = transitions.cancel_and_archive(
        replace(ended, ended_as=EndedAs.COMPLETED), "Old.", now=NOON
    )

    assert (step.conversation.status, step.conversation.ended_as) == (
        Status.ARCHIVED,
        EndedAs.COMPLETED,
    )
    assert (step.signal, step.report) == (FollowerEvent.GONE, None)


def test_a_cancelled_proposal_is_archived_and_its_question_withdrawn() -> None:
    before = proposed()
    step = transitions.cancel_and_archive(before, "", now=NOON)

    assert step.withdrawn == (before.questions[0].id,)
    assert step.conversation.status is Status.ARCHIVED


def test_cancelling_the_work_of_a_chat_does_not_archive_the_chat() -> None:
    chat = working(schedule=DAILY)
    step = transitions.cancel_and_archive(chat, "Enough.", now=NOON)

    assert (step.conversation.status, step.signal) == (Status.ACTIVE, FollowerEvent.ENDED)
    with pytest.raises(Conflict, match="no background work"):
        transitions.cancel_and_archive(step.conversation, "", now=NOON)


def test_an_archived_task_cannot_be_cancelled_again() -> None:
    away = transitions.cancel_and_archive(TASK, "", now=NOON).conversation
    with pytest.raises(Conflict):
        transitions.cancel_and_archive(away, "", now=NOON)


def test_a_conversation_that_is_no_proposal_is_changed_without_a_word() -> None:
    after = replace(TASK, state=State())

    assert transitions.apply_change(TASK, after, now=NOON) == transitions.Step(conversation=after)
