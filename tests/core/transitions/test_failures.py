"""The effects of failed and crashed runs."""

from datetime import timedelta

import pytest
from support.cases.transition_cases import BROKEN, DAILY, DONE, HOUR, NINE, RUN, WORK, once, working
from support.requirements import requirement
from support.stage import make
from support.stage.make import NOON

from backburner.core import transitions
from backburner.core.conversation import (
    MAX_STATE_BYTES,
    EndedAs,
    Kind,
    MessageRole,
    Notify,
    OnRepeatedFailure,
    PauseReason,
    Status,
)
from backburner.core.notice import NoticeKind
from backburner.core.outcome import Complete
from backburner.core.question import Purpose
from backburner.core.run import Failure, FailureKind
from backburner.core.schedule import Event, Interval
from backburner.core.transitions import FollowerEvent, Stops


def test_failing_in_its_last_permitted_run_ends_work_in_error() -> None:
    step = transitions.fail(working(max_runs=3, run_count=2), RUN, BROKEN, now=NINE)

    assert step.conversation.ended_as is EndedAs.ERROR


def test_an_update_that_would_outgrow_the_state_is_a_failed_run() -> None:
    step = transitions.finish(
        working(), RUN, Complete(state_update={"all": "x" * 70_000}), now=NINE
    )

    assert step.conversation.failures == 1
    assert step.conversation.state == WORK


def test_a_chat_notifies_once_after_three_failures_and_continues() -> None:
    conversation, result = working(), []
    for attempt in range(5):
        now = NINE + timedelta(minutes=10 * attempt)
        step = transitions.fail(conversation, RUN, BROKEN, now=now)
        conversation = step.conversation
        result.append(len(step.notices))

    assert result == [0, 0, 1, 0, 0]
    assert (conversation.status, conversation.schedule) == (Status.BACKGROUND, DAILY)


@requirement("B-retry")
def test_a_task_is_retried_once_with_backoff_then_paused_and_its_user_told() -> None:
    task = working(kind=Kind.TASK, on_repeated_failure=OnRepeatedFailure.PAUSE)
    first = transitions.fail(task, RUN, BROKEN, now=NINE)
    second = transitions.fail(first.conversation, RUN, BROKEN, now=NINE + HOUR)

    assert first.conversation.next_run_at == NINE + timedelta(seconds=30)
    assert (first.notices, first.conversation.status) == ((), Status.BACKGROUND)
    paused = second.conversation
    assert (paused.status, paused.pause_reason) == (Status.ACTIVE, PauseReason.FAILURES)
    assert (paused.schedule, paused.next_run_at) == (DAILY, None)
    assert [notice.kind for notice in second.notices] == [NoticeKind.STOPPED]
    assert second.signal is FollowerEvent.ENDED


def test_one_time_work_ends_in_error_at_its_limit() -> None:
    step = transitions.fail(once(failures=2), RUN, BROKEN, now=NINE)

    assert (step.conversation.ended_as, step.conversation.schedule) == (EndedAs.ERROR, None)
    assert step.report is not None
    assert step.report.failed


def test_one_time_work_is_tried_again_later() -> None:
    step = transitions.fail(once(), RUN, BROKEN, now=NINE)

    assert step.conversation.next_run_at == NINE + timedelta(seconds=30)


def test_the_next_try_is_the_next_slot_if_that_comes_sooner() -> None:
    often = working(schedule=Interval(timedelta(seconds=10), anchor=NINE))
    step = transitions.fail(often, RUN, BROKEN, now=NINE + timedelta(seconds=4))

    assert step.conversation.next_run_at == NINE + timedelta(seconds=10)


def test_work_that_an_event_starts_is_tried_again_by_the_clock() -> None:
    watching = working(schedule=Event("file", {}), next_run_at=None, settled_until=None)
    step = transitions.fail(watching, RUN, BROKEN, now=NINE)

    assert step.conversation.next_run_at == NINE + timedelta(seconds=30)


@pytest.mark.parametrize("policy", [Notify.ALWAYS, Notify.ON_FAILURE])
def test_a_user_who_wants_failures_is_notified_of_each(policy: Notify) -> None:
    step = transitions.fail(working(notify=policy), RUN, BROKEN, now=NINE)

    assert [notice.kind for notice in step.notices] == [NoticeKind.FAILURE]
    one_time = transitions.fail(once(notify=policy), RUN, BROKEN, now=NINE)
    assert [notice.kind for notice in one_time.notices] == [NoticeKind.FAILURE]


def test_a_permanent_failure_is_not_retried() -> None:
    wrong_key = Failure(FailureKind.MODEL, "The key is wrong.", permanent=True)
    step = transitions.fail(once(), RUN, wrong_key, now=NINE)

    assert step.conversation.ended_as is EndedAs.ERROR


def test_a_failure_that_only_the_user_can_resolve_is_asked() -> None:
    failure = Failure(FailureKind.TOOL, "No calendar.")
    step = transitions.fail(working(), RUN, failure, now=NINE)

    assert [q.purpose for q in step.asked] == [Purpose.FAILURE]
    assert step.asked[0].options == ("try again", "skip", "stop")
    assert [notice.kind for notice in step.notices] == [NoticeKind.QUESTION]
    of_once = transitions.fail(once(), RUN, failure, now=NINE)
    assert of_once.asked[0].options == ("try again", "stop")


def test_one_time_work_can_go_on_without_a_connection_that_failed() -> None:
    failure = Failure(FailureKind.TOOL, "No calendar.", connections=("calendar",))
    failed = transitions.fail(once(), RUN, failure, now=NINE)
    (asked,) = failed.asked
    assert asked.options == ("try again", "skip", "stop")

    skipped = transitions.answer(failed.conversation, asked.id, "skip", now=NINE)

    assert skipped.conversation.status is Status.BACKGROUND
    assert skipped.inbox[0].content["binds_to"] == {"connections": ["calendar"]}


def test_what_a_run_found_without_a_connection_is_kept_but_its_work_is_not_done() -> None:
    failure = Failure(FailureKind.TOOL, "No calendar.", connections=("calendar",))
    found = Complete(message="Two mails.", state_update={"mails": 2})
    step = transitions.fail_after(once(), RUN, found, failure, now=NINE)

    assert [message.content for message in step.messages] == [
        "Two mails.",
        "The work cannot continue: No calendar.",
    ]
    assert step.conversation.state.data["mails"] == 2
    assert (step.conversation.status, step.conversation.ended_as) == (Status.WAITING_INPUT, None)
    large = Complete(message="All mails.", state_update={"mails": "x" * MAX_STATE_BYTES})
    step = transitions.fail_after(once(), RUN, large, failure, now=NINE)
    assert step.asked[0].prompt == "No calendar."
    assert "mails" not in step.conversation.state.data


def test_failing_outside_of_work_leaves_a_message() -> None:
    step = transitions.fail(make.conversation(), make.run(), BROKEN, now=NOON)

    assert [message.role for message in step.messages] == [MessageRole.SYSTEM]
    assert step.conversation.failures == 0


def test_a_crashed_run_is_given_again_twice_and_then_the_work_stops() -> None:
    recurring, one_time = working(), once()
    for _ in range(2):
        recurring = transitions.crash(recurring, RUN, now=NINE).conversation
        one_time = transitions.crash(one_time, RUN, now=NINE).conversation
    assert (recurring.next_run_at, recurring.status) == (NINE, Status.BACKGROUND)

    third = transitions.crash(recurring, RUN, now=NINE)
    ended = transitions.crash(one_time, RUN, now=NINE)

    assert third.conversation.pause_reason is PauseReason.CRASHES
    assert [notice.kind for notice in third.notices] == [NoticeKind.STOPPED]
    assert ended.conversation.ended_as is EndedAs.ERROR


def test_a_run_asked_for_by_hand_that_keeps_crashing_is_given_up() -> None:
    idle = make.conversation(state=WORK, crashes=2)
    step = transitions.crash(idle, make.run(), now=NOON)

    assert (step.stops, step.conversation.crashes) == (Stops.WORK, 0)


def test_a_success_forgets_earlier_troubles() -> None:
    step = transitions.finish(working(failures=2, crashes=2), RUN, DONE, now=NINE)

    assert (step.conversation.failures, step.conversation.crashes) == (0, 0)


@pytest.mark.parametrize("reason", ["It said: boom", "It said: boom."])
def test_a_reason_without_a_full_stop_gets_one(reason: str) -> None:
    failure = Failure(FailureKind.MODEL, reason, permanent=True)
    replied = transitions.fail_reply(make.conversation(), failure)
    worked = transitions.fail(working(), RUN, failure, now=NINE)

    assert replied.messages[0].content == "I could not answer: It said: boom. You can try again."
    assert "It said: boom. It" in worked.messages[0].content
