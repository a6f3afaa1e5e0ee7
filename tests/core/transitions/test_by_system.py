"""Transitions caused by events, other conversations and allowances."""

from dataclasses import replace

import pytest
from support.cases.transition_cases import (
    ASKS,
    HOUR,
    NINE,
    RUN,
    proposed,
    with_tool_failure,
    working,
)
from support.stage import make

from backburner.core import transitions
from backburner.core.conversation import Author, Conversation, EndedAs, Kind, PauseReason, Status
from backburner.core.notice import NoticeKind
from backburner.core.run import ItemKind, RunKind
from backburner.core.schedule import After, AfterCondition, Event
from backburner.core.transitions import FollowerEvent, Stops


def test_an_event_waits_behind_an_open_question() -> None:
    waiting = transitions.finish(working(), RUN, ASKS, now=NINE).conversation
    step = transitions.receive_event(waiting, {"source": "file"})

    assert [(i.kind, i.at_once) for i in step.inbox] == [(ItemKind.EVENT, False)]


def test_the_result_of_a_job_is_answered_and_that_of_a_task_only_written_down() -> None:
    parent, report = make.conversation(), transitions.Report("Found it.")
    job = make.conversation(id=make.OTHER, kind=Kind.JOB, title="search", created_by=Author.AGENT)
    task = replace(job, kind=Kind.TASK)
    answered = transitions.receive_report(parent, job, report)
    noted = transitions.receive_report(parent, task, report)
    read = transitions.receive_report(parent, replace(task, outside_read=True), report)

    assert [(i.kind, i.run_kind) for i in answered.inbox] == [(ItemKind.JOB_RESULT, RunKind.REPLY)]
    assert answered.inbox[0].content["result"] == "Found it."
    assert noted.inbox == ()
    assert [(m.content, m.outside) for m in noted.messages] == [("search: Found it.", False)]
    assert [(m.content, m.outside) for m in read.messages] == [("search: Found it.", True)]


def test_a_job_of_the_user_and_one_they_cancelled_are_stored_without_a_reply() -> None:
    parent, found = make.conversation(), transitions.Report("Found it.")
    ended = transitions.Report("It was cancelled.", failed=True, cancelled=True)
    mine = make.conversation(id=make.OTHER, kind=Kind.JOB, title="search")
    agents = replace(mine, created_by=Author.AGENT)
    kept = transitions.receive_report(parent, mine, found)
    cancelled = transitions.receive_report(parent, agents, ended)
    awaited = transitions.receive_report(parent, agents, ended, awaited_by=RunKind.REPLY)

    assert kept.inbox == cancelled.inbox == ()
    assert kept.messages[0].content.startswith("The job 'search' has finished.")
    assert cancelled.messages[0].content.startswith("The job 'search' was cancelled by the user.")
    # An agent that waits for the job has to go on.
    assert [item.content["cancelled"] for item in awaited.inbox] == [True]


def test_the_result_of_a_test_run_is_stored_without_a_reply() -> None:
    job = make.conversation(id=make.OTHER, kind=Kind.JOB, batch=transitions.TEST_RUN_BATCH)
    step = transitions.receive_report(make.conversation(), job, transitions.Report("Found it."))

    assert (len(step.messages), step.inbox) == (1, ())


@pytest.mark.parametrize(
    "parent",
    [make.conversation(status=Status.ARCHIVED), make.conversation(keeps_only=True)],
    ids=["archived", "nobody there"],
)
def test_a_parent_that_cannot_reply_keeps_the_report(parent: Conversation) -> None:
    job = make.conversation(id=make.OTHER, kind=Kind.JOB)
    step = transitions.receive_report(parent, job, transitions.Report("Found it."))

    assert (len(step.messages), step.inbox) == (1, ())


@pytest.mark.parametrize(
    ("on", "signal", "fires"),
    [
        (AfterCondition.SUCCESS, FollowerEvent.COMPLETED, True),
        (AfterCondition.SUCCESS, FollowerEvent.ENDED, False),
        (AfterCondition.ANY, FollowerEvent.COMPLETED, True),
        (AfterCondition.ANY, FollowerEvent.ENDED, True),
    ],
)
def test_work_scheduled_after_another_conversation_starts_when_that_has_ended(
    on: AfterCondition, signal: FollowerEvent, *, fires: bool
) -> None:
    follower = working(schedule=After(make.OTHER, on), next_run_at=None)
    step = transitions.apply_follower_event(follower, signal)

    assert bool(step.inbox) is fires


def test_a_follower_whose_predecessor_is_gone_pauses_and_says_so() -> None:
    follower = working(schedule=After(make.OTHER), next_run_at=None)
    step = transitions.apply_follower_event(follower, FollowerEvent.GONE)

    assert step.conversation.pause_reason is PauseReason.USER
    assert [notice.kind for notice in step.notices] == [NoticeKind.STOPPED]
    assert transitions.apply_follower_event(working(), FollowerEvent.GONE).conversation == working()


def test_work_scheduled_after_cancelled_work_runs_a_last_time_or_pauses() -> None:
    follower = working(schedule=After(make.OTHER, AfterCondition.ANY), next_run_at=None)
    last = transitions.apply_follower_event(follower, FollowerEvent.STOPPED)
    assert last.conversation.schedule == After(make.OTHER, AfterCondition.ANY, once=True)
    # A run that is under way under the old revision does not end it.
    assert last.conversation.schedule_revision == follower.schedule_revision + 1
    assert [item.kind for item in last.inbox] == [ItemKind.EVENT]

    hopeful = replace(follower, schedule=After(make.OTHER))
    still = transitions.apply_follower_event(hopeful, FollowerEvent.STOPPED)
    assert (still.conversation.pause_reason, still.inbox) == (PauseReason.USER, ())


def test_work_paused_for_an_allowance_resumes_when_it_has_room() -> None:
    parked = transitions.pause_for_allowance(working()).conversation
    assert (parked.status, parked.pause_reason) == (Status.ACTIVE, PauseReason.ALLOWANCE)
    assert transitions.pause_for_allowance(parked).conversation == parked
    assert transitions.pause_for_allowance(proposed()).conversation == proposed()

    going = transitions.resume_after_allowance(parked, now=NINE + HOUR).conversation

    assert (going.status, going.next_run_at) == (Status.BACKGROUND, NINE + 24 * HOUR)
    assert transitions.resume_after_allowance(going, now=NINE).conversation == going
    waiting = transitions.pause_for_allowance(with_tool_failure(working())).conversation
    assert (
        transitions.resume_after_allowance(waiting, now=NINE).conversation.status
        is Status.WAITING_INPUT
    )


def test_one_time_work_that_waited_too_long_for_its_model_ends_in_error() -> None:
    step = transitions.end_in_outage(working(), "The model is overloaded.", now=NINE)

    ended = step.conversation
    assert (ended.status, ended.ended_as) == (Status.ACTIVE, EndedAs.ERROR)
    assert step.stops is Stops.WORK
    assert step.report is not None
    assert step.report.failed
    assert all("overloaded" in notice.text for notice in step.notices)
    assert len(step.notices) == 1


def test_only_our_own_events_are_no_outside_text() -> None:
    waiting = make.conversation(status=Status.BACKGROUND, schedule=Event("mail", {}))
    sent = transitions.receive_event(waiting, {"text": "Hi.", "outside": False})
    own = transitions.receive_event(waiting, {"signal": "completed"}, outside=False)

    assert [item.content for item in sent.inbox] == [{"text": "Hi."}]
    assert [item.content for item in own.inbox] == [{"signal": "completed", "outside": False}]
