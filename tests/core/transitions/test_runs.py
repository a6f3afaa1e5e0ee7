"""The effects of runs that start, ask, continue, complete or reply."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from support.cases.transition_cases import (
    ASKS,
    BROKEN,
    DAILY,
    DONE,
    HOUR,
    NINE,
    RUN,
    WORK,
    once,
    working,
)
from support.requirements import requirement
from support.stage import make
from support.stage.make import NOON

from backburner.core import transitions
from backburner.core.conversation import (
    Conversation,
    EndedAs,
    Kind,
    MessageRole,
    Notify,
    PauseReason,
    Source,
    State,
    Status,
)
from backburner.core.notice import NoticeKind, result_hash
from backburner.core.outcome import Complete, Continue
from backburner.core.question import Purpose
from backburner.core.run import Failure, FailureKind, ItemKind, RunKind, SkipReason, StartedBy
from backburner.core.schedule import CatchUp
from backburner.core.transitions import FollowerEvent, Stops


@pytest.mark.parametrize(
    ("status", "runs_without_items", "runs_with_items"),
    [
        (Status.ACTIVE, False, True),
        (Status.BACKGROUND, True, True),
        (Status.ARCHIVED, False, False),
        (Status.WAITING_INPUT, False, False),
    ],
)
def test_background_work_needs_a_due_slot_or_items(
    status: Status, *, runs_without_items: bool, runs_with_items: bool
) -> None:
    due = replace(working(settled_until=None), status=status)
    now = NINE + 72 * HOUR

    assert transitions.has_background_work(due, has_items=False, now=now) is runs_without_items
    assert transitions.has_background_work(due, has_items=True, now=now) is runs_with_items
    waiting = replace(due, next_run_at=now + HOUR)
    assert not transitions.has_background_work(waiting, has_items=False, now=now)


def test_a_run_that_begins_stands_for_the_newest_slot_and_reports_the_missed_ones() -> None:
    due = working(settled_until=None)
    beginning = transitions.begin(due, now=NINE + 75 * HOUR)

    (skipped,) = beginning.step.skipped
    assert beginning.slot_at == NINE + 72 * HOUR
    assert (skipped.reason, skipped.gap.count) == (SkipReason.MISSED, 3)
    assert beginning.step.conversation.settled_until == NINE + 72 * HOUR


@pytest.mark.parametrize(
    ("resumed_at", "reason"),
    [
        (None, SkipReason.MISSED),
        (NINE + 47 * HOUR, SkipReason.MISSED),
        (NINE + 48 * HOUR, SkipReason.PAUSED),
    ],
)
def test_slots_missed_before_work_was_resumed_were_paused(
    resumed_at: datetime | None, reason: SkipReason
) -> None:
    begun = transitions.begin(working(settled_until=None), now=NINE + 75 * HOUR).step

    step = transitions.blame_pause(begun, resumed_at=resumed_at)

    assert [(skipped.reason, skipped.gap.count) for skipped in step.skipped] == [(reason, 3)]


def test_work_that_skips_what_it_missed_waits_for_its_next_slot() -> None:
    skipping = working(schedule=replace(DAILY, catch_up=CatchUp.SKIP), settled_until=None)
    beginning = transitions.begin(skipping, now=NINE + HOUR)

    assert not beginning.runs
    assert beginning.step.conversation.next_run_at == NINE + 24 * HOUR
    assert [s.gap.count for s in beginning.step.skipped] == [1]


def test_a_run_that_something_else_started_takes_no_slot() -> None:
    beginning = transitions.begin(working(settled_until=None), now=NOON)

    assert (beginning.runs, beginning.slot_at, beginning.step.skipped) == (True, None, ())


@requirement("A-needs-input")
def test_a_run_that_needs_input_parks_the_conversation_and_leaves_its_time_alone() -> None:
    outcome = replace(ASKS, state_update={"found": 2}, next_step="choose")
    step = transitions.finish(working(), RUN, outcome, now=NINE + HOUR)

    after = step.conversation
    assert (after.status, after.next_run_at) == (Status.WAITING_INPUT, NINE)
    assert (after.state.step, after.state.data) == ("choose", {"found": 2})
    assert [(m.content, m.role, m.source) for m in step.messages] == [
        ("There are two.", MessageRole.ASSISTANT, Source.WORKER)
    ]
    assert [(one.kind, one.message) for one in step.notices] == [
        (NoticeKind.QUESTION, "There are two.")
    ]
    assert after.pending_question == step.asked[0]
    assert step.asked[0].run_id == RUN.id


@requirement("A-continue", "A-step", "A-data")
def test_a_run_that_continues_merges_its_state_update_and_notifies_nobody() -> None:
    learned = working(state=State(WORK.context, "first", {"a": 1, "b": 1}))
    outcome = Continue(message="Half way.", state_update={"b": 2}, next_step="second")
    step = transitions.finish(learned, RUN, outcome, now=NINE + HOUR)

    after = step.conversation
    assert (after.state.step, after.state.data) == ("second", {"a": 1, "b": 2})
    assert (after.next_run_at, step.notices) == (NINE + 24 * HOUR, ())
    assert [message.content for message in step.messages] == ["Half way."]


def test_one_time_work_runs_again_when_it_wants_to() -> None:
    step = transitions.finish(once(), RUN, Continue(again_in=HOUR), now=NINE)
    unsaid = transitions.finish(once(), RUN, Continue(), now=NINE)

    assert step.conversation.next_run_at == NINE + HOUR
    assert unsaid.conversation.next_run_at == NINE + timedelta(minutes=1)


@pytest.mark.parametrize(
    "tired",
    [
        once(again_count=20, again_since=NINE),
        once(again_count=2, again_since=NINE - timedelta(hours=25)),
    ],
    ids=["20 times", "24 hours"],
)
def test_one_time_work_that_never_ends_asks_and_then_starts_counting_anew(
    tired: Conversation,
) -> None:
    step = transitions.finish(tired, RUN, Continue(), now=NINE)
    (question,) = step.asked
    again = transitions.answer(step.conversation, question.id, "try again", now=NINE)

    assert question.purpose is Purpose.FAILURE
    assert (again.conversation.again_count, again.conversation.again_since) == (0, None)
    stopped = transitions.answer(step.conversation, question.id, "stop", now=NINE)
    assert stopped.conversation.ended_as is EndedAs.CANCELLED


@requirement("A-complete-once", "A-after-complete", "A-once")
def test_one_time_work_that_is_complete_goes_back_to_being_a_chat() -> None:
    step = transitions.finish(once(), RUN, DONE, now=NINE)

    after = step.conversation
    assert (after.status, after.schedule, after.next_run_at) == (Status.ACTIVE, None, None)
    assert (after.ended_as, after.ended_at) == (EndedAs.COMPLETED, NINE)
    assert [notice.text for notice in step.notices] == ["All green."]
    assert (step.stops, step.signal) == (Stops.WORK, FollowerEvent.COMPLETED)


@requirement("A-complete-cron")
def test_recurring_work_that_is_complete_goes_on_at_its_next_time() -> None:
    step = transitions.finish(working(), RUN, DONE, now=NINE + HOUR)

    after = step.conversation
    assert (after.status, after.next_run_at) == (Status.BACKGROUND, NINE + 24 * HOUR)
    assert [message.content for message in step.messages] == ["All green."]
    assert (step.report, step.signal) == (transitions.Report("All green."), FollowerEvent.COMPLETED)


def test_final_ends_recurring_work() -> None:
    step = transitions.finish(working(), RUN, replace(DONE, final=True), now=NINE)

    assert step.conversation.ended_as is EndedAs.COMPLETED


def test_recurring_work_with_nothing_to_report_leaves_no_message_and_no_notice() -> None:
    step = transitions.finish(working(), RUN, Complete(), now=NINE)

    assert (step.messages, step.notices, step.report) == ((), (), None)
    assert step.conversation.run_count == 1


def test_slots_that_pass_while_a_run_goes_on_are_one_skipped_row() -> None:
    step = transitions.finish(working(), RUN, DONE, now=NINE + 49 * HOUR)

    (skipped,) = step.skipped
    assert (skipped.reason, skipped.gap.count) == (SkipReason.STILL_RUNNING, 2)
    assert step.conversation.next_run_at == NINE + 72 * HOUR


@requirement("B-max-runs")
@pytest.mark.parametrize("outcome", [DONE, Continue()], ids=["complete", "continue"])
def test_work_stops_after_its_last_permitted_run(outcome: Complete | Continue) -> None:
    step = transitions.finish(working(max_runs=3, run_count=2), RUN, outcome, now=NINE)

    assert (step.conversation.run_count, step.conversation.ended_as) == (3, EndedAs.COMPLETED)


@requirement("B-max-runs")
@pytest.mark.parametrize("outcome", [Complete(), Continue()], ids=["complete", "continue"])
def test_a_watch_that_found_nothing_says_so_after_its_last_run(
    outcome: Complete | Continue,
) -> None:
    step = transitions.finish(working(max_runs=30, run_count=29), RUN, outcome, now=NINE)

    text = "It reached its limit of 30 runs without a result."
    assert step.conversation.ended_as is EndedAs.COMPLETED
    assert step.report == transitions.Report(text)
    assert [(one.kind, one.text) for one in step.notices] == [(NoticeKind.STOPPED, text)]
    assert [(one.role, one.content) for one in step.messages] == [(MessageRole.SYSTEM, text)]
    once_only = transitions.finish(working(max_runs=1), RUN, outcome, now=NINE)
    assert once_only.report == transitions.Report("It reached its limit of 1 run without a result.")


def test_work_that_ends_at_its_limit_says_that_its_last_run_found_nothing_new() -> None:
    known = working(max_runs=3, run_count=2, last_result_hash=result_hash(DONE))
    step = transitions.finish(known, RUN, DONE, now=NINE)

    text = "It reached its limit of 3 runs. The last one had nothing new to report."
    assert step.report == transitions.Report(text)
    assert [one.content for one in step.messages] == ["All green.", text]
    new = transitions.finish(replace(known, last_result_hash="other"), RUN, DONE, now=NINE)
    assert (new.report, len(new.notices)) == (transitions.Report("All green."), 1)
    assert new.conversation.ended_as is EndedAs.COMPLETED


@pytest.mark.parametrize("policy", [Notify.NEVER, Notify.ON_FAILURE])
def test_the_limit_of_runs_is_told_to_nobody_who_does_not_want_results(policy: Notify) -> None:
    watching = working(max_runs=3, run_count=2, notify=policy)
    step = transitions.finish(watching, RUN, Complete(), now=NINE)

    assert (step.report, step.notices, len(step.messages)) == (None, (), 1)


@requirement("B-notify")
@pytest.mark.parametrize(
    ("policy", "when_new", "when_same"),
    [
        (Notify.ALWAYS, True, True),
        (Notify.ON_CHANGE, True, False),
        (Notify.ON_FAILURE, False, False),
        (Notify.NEVER, False, False),
    ],
)
@pytest.mark.parametrize("work", [working(), once()], ids=["recurring", "one-time"])
def test_the_policy_holds_for_the_line_in_the_parent_as_for_the_notice(
    work: Conversation, policy: Notify, *, when_new: bool, when_same: bool
) -> None:
    before = replace(work, notify=policy)
    new = transitions.finish(before, RUN, DONE, now=NINE)
    known = replace(before, last_result_hash=result_hash(DONE))
    same = transitions.finish(known, RUN, DONE, now=NINE)

    told = transitions.Report("All green.")
    assert (new.report, len(new.notices)) == (told if when_new else None, int(when_new))
    assert (same.report, len(same.notices)) == (told if when_same else None, int(when_same))
    # The message stays in the conversation of the work itself.
    assert [one.content for one in same.messages] == ["All green."]


@pytest.mark.parametrize("policy", Notify)
def test_one_time_work_without_a_message_is_reported_as_done_to_those_who_want_results(
    policy: Notify,
) -> None:
    step = transitions.finish(once(notify=policy), RUN, Complete(), now=NINE)

    wanted = policy in (Notify.ALWAYS, Notify.ON_CHANGE)
    assert step.report == (transitions.Report("It is done.") if wanted else None)
    job = once(notify=policy, kind=Kind.JOB)
    assert transitions.finish(job, RUN, DONE, now=NINE).report is not None


def test_a_run_that_was_claimed_under_an_older_schedule_does_not_touch_the_new_one() -> None:
    changed = transitions.set_schedule(once(), DAILY, now=NOON).conversation
    step = transitions.finish(changed, RUN, DONE, now=NOON)

    after = step.conversation
    assert (after.schedule, after.next_run_at, after.ended_as) == (DAILY, NINE, None)
    assert [message.content for message in step.messages] == ["All green."]
    failed = transitions.fail(changed, RUN, BROKEN, now=NOON).conversation
    assert (failed.failures, failed.next_run_at) == (0, NINE)
    assert transitions.crash(changed, RUN, now=NOON).conversation == changed
    again = transitions.finish(changed, RUN, Continue(), now=NOON).conversation
    assert again.next_run_at == NINE


def test_a_run_that_ends_after_a_pause_keeps_its_message_and_nothing_more() -> None:
    paused = transitions.pause(working()).conversation
    step = transitions.finish(paused, RUN, DONE, now=NINE)

    assert (step.conversation.status, step.conversation.pause_reason) == (
        Status.ACTIVE,
        PauseReason.USER,
    )
    assert [message.content for message in step.messages] == ["All green."]
    completed = transitions.pause(once()).conversation
    ended = transitions.finish(completed, RUN, DONE, now=NINE).conversation
    assert (ended.schedule, ended.pause_reason, ended.ended_as) == (None, None, EndedAs.COMPLETED)


def test_a_run_that_ends_in_an_archived_conversation_leaves_only_its_message() -> None:
    archived = transitions.archive(working(), now=NINE).conversation

    for outcome in (ASKS, DONE, Continue(message="On it.")):
        step = transitions.finish(archived, RUN, outcome, now=NINE)
        assert (step.conversation, len(step.messages), step.notices) == (archived, 1, ())
    assert transitions.fail(archived, RUN, BROKEN, now=NINE).messages == ()
    assert transitions.crash(archived, RUN, now=NINE).conversation == archived
    asked = transitions.ask_owner(archived, make.question())
    assert ([message.content for message in asked.messages], asked.asked) == (
        ["Shall I go on?"],
        (),
    )


@requirement("A-source", "A-roles")
def test_replies_come_from_the_chat_and_background_words_from_the_worker() -> None:
    chat = make.conversation()
    reply = transitions.reply(chat, make.run(kind=RunKind.REPLY), "Hello.", now=NOON)
    worked = transitions.finish(working(), RUN, DONE, now=NINE)
    failed = transitions.fail_reply(chat, Failure(FailureKind.MODEL, "Overloaded."))
    said = transitions.receive_message(chat, "Hello?", message_id=make.MESSAGE, now=NOON)

    assert [(m.role, m.source) for m in said.messages] == [(MessageRole.USER, Source.CHAT)]
    assert [(m.role, m.source) for m in reply.messages] == [(MessageRole.ASSISTANT, Source.CHAT)]
    assert [(m.role, m.source) for m in worked.messages] == [(MessageRole.ASSISTANT, Source.WORKER)]
    assert [m.role for m in failed.messages] == [MessageRole.SYSTEM]


def test_after_twenty_unattended_replies_the_conversation_asks() -> None:
    run = make.run(kind=RunKind.REPLY)
    conversation = make.conversation()
    for _ in range(19):
        conversation = transitions.reply(
            conversation, run, "Noted.", now=NOON, unattended=True
        ).conversation
    assert conversation.questions == ()

    step = transitions.reply(conversation, run, "Noted.", now=NOON, unattended=True)

    assert step.conversation.status is Status.WAITING_INPUT
    assert step.asked[0].run_kind is RunKind.REPLY
    assert [message.source for message in step.messages] == [Source.WORKER]


@pytest.mark.parametrize(
    ("work", "slot_at", "item", "start"),
    [
        ({}, None, ItemKind.EVENT, StartedBy.EVENT),
        ({"failures": 1}, NOON, ItemKind.ANSWER, StartedBy.ANSWER),
        ({"failures": 1}, NOON, None, StartedBy.SCHEDULE),
        ({"failures": 1}, None, None, StartedBy.RETRY),
        ({"crashes": 1}, None, None, StartedBy.RETRY),
        ({}, None, None, StartedBy.START),
        ({"run_count": 1}, None, None, StartedBy.CONTINUATION),
    ],
)
def test_a_run_is_started_by_what_waits_for_it_or_by_its_time(
    work: dict[str, Any], slot_at: datetime | None, item: ItemKind | None, start: StartedBy
) -> None:
    found = transitions.find_start(make.conversation(**work), slot_at=slot_at, item=item)

    assert found is start


def test_recurring_work_goes_on_at_its_next_time_after_a_run_was_stopped() -> None:
    step = transitions.stop_run(working(), RUN, now=NINE + HOUR)

    assert step.conversation.status is Status.BACKGROUND
    assert step.conversation.schedule == DAILY
    assert step.conversation.next_run_at == NINE + 24 * HOUR


@pytest.mark.parametrize(
    "found",
    [
        once(),
        working(schedule=None, status=Status.ACTIVE),
        working(schedule_revision=2),
        working(pause_reason=PauseReason.USER, status=Status.ACTIVE),
    ],
)
def test_a_stopped_run_leaves_other_work_as_it_is(found: Conversation) -> None:
    assert transitions.stop_run(found, RUN, now=NINE + HOUR).conversation == found
