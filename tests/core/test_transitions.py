"""What each thing that can happen to a conversation does, besides the status that follows."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from requirements import requirement

from backburner.core import transitions
from backburner.core.conversation import (
    Conversation,
    Ended,
    Kind,
    Notify,
    OnRepeatedFailure,
    Pause,
    Role,
    Source,
    State,
    Status,
)
from backburner.core.errors import BadRequest, BadSchedule, Conflict, TooLarge
from backburner.core.ids import QuestionId
from backburner.core.notice import NoticeKind
from backburner.core.outcome import Complete, Continue, NeedsInput
from backburner.core.policy import ALWAYS, Call, Narrowing, Tool, approval_binding
from backburner.core.question import Draft, Purpose, QuestionType
from backburner.core.run import Failure, FailureKind, ItemKind, RunKind, SkipReason
from backburner.core.schedule import (
    After,
    CatchUp,
    Cron,
    Event,
    Immediate,
    Interval,
    On,
    Scheduled,
)
from backburner.core.transitions import Brief, Signal, Step, Stops
from backburner.testing import make
from backburner.testing.make import MESSAGE, NOON, USER

HOUR = timedelta(hours=1)
DAILY = Cron("0 9 * * *", "UTC")
#: The slot of `DAILY` after NOON.
NINE = NOON + 21 * HOUR
WORK = State(context={"prompt": "Watch the build."})
BRIEF = Brief(title="watch", prompt="Watch the build.", schedule=DAILY)


def working(**changes: object) -> Conversation:
    """Make a chat whose daily work was claimed at nine and is under way."""
    settled = make.conversation(
        status=Status.BACKGROUND,
        schedule=DAILY,
        schedule_revision=1,
        next_run_at=NINE,
        settled_until=NINE,
        state=WORK,
    )
    return replace(settled, **changes)  # type: ignore[arg-type]


def once(**changes: object) -> Conversation:
    return working(**{"schedule": Scheduled(NINE), **changes})


RUN = make.run(schedule_revision=1, slot_at=NINE)
DONE = Complete(message="All green.", result="green")
BROKEN = Failure(FailureKind.TIMEOUT, "It took too long.")
ASKS = NeedsInput(
    message="There are two.", question=Draft(type=QuestionType.INPUT, prompt="Which one?")
)


def test_a_chat_is_born_active_and_nothing_is_due() -> None:
    chat = transitions.start_chat(make.CONVERSATION, USER, now=NOON).conversation

    assert (chat.status, chat.schedule, chat.next_run_at) == (Status.ACTIVE, None, None)


def test_a_task_is_born_at_work_with_what_its_brief_says() -> None:
    brief = replace(BRIEF, description="CI", params={"branch": "main"}, max_runs=3)
    task = transitions.start_task(make.CONVERSATION, USER, brief, now=NOON).conversation

    assert (task.kind, task.status, task.next_run_at) == (Kind.TASK, Status.BACKGROUND, NINE)
    assert task.state.context == {
        "prompt": "Watch the build.",
        "description": "CI",
        "branch": "main",
    }
    assert task.on_repeated_failure is OnRepeatedFailure.PAUSE


def test_a_job_is_born_to_run_at_once_whatever_its_brief_says() -> None:
    job = transitions.start_job(make.CONVERSATION, USER, BRIEF, now=NOON).conversation

    assert (job.kind, job.schedule, job.next_run_at) == (Kind.JOB, Immediate(), NOON)


def test_discovery_looks_first_after_one_interval() -> None:
    born = transitions.start_discovery(make.CONVERSATION, USER, every=HOUR, now=NOON).conversation

    assert (born.kind, born.next_run_at, born.notify) == (
        Kind.DISCOVERY,
        NOON + HOUR,
        Notify.NEVER,
    )


@pytest.mark.parametrize(
    "changes",
    [{"title": " "}, {"prompt": ""}, {"max_runs": 0}, {"title": "x" * 201}],
    ids=["no name", "no prompt", "no runs", "too long a name"],
)
def test_work_that_makes_no_sense_is_not_begun(changes: dict[str, object]) -> None:
    with pytest.raises(BadRequest):
        transitions.start_task(make.CONVERSATION, USER, replace(BRIEF, **changes), now=NOON)  # type: ignore[arg-type]


def test_a_message_is_written_down_and_waits_for_its_reply() -> None:
    step = transitions.say(make.conversation(), "Hello there.\nMore.", message_id=MESSAGE, now=NOON)

    (message,), (item,) = step.messages, step.inbox
    assert (message.role, message.source, message.id) == (Role.USER, Source.CHAT, MESSAGE)
    assert (item.kind, item.run_kind, item.content) == (
        ItemKind.MESSAGE,
        RunKind.REPLY,
        {"message_id": MESSAGE, "text": "Hello there.\nMore."},
    )
    assert step.conversation.title == "Hello there."


def test_a_title_that_is_there_stays() -> None:
    chat = make.conversation(title="Build", unattended_replies=7)
    after = transitions.say(chat, "Hello.", message_id=MESSAGE, now=NOON).conversation

    assert (after.title, after.unattended_replies) == ("Build", 0)


@pytest.mark.parametrize(("text", "error"), [(" \n", BadRequest), ("x" * 100_001, TooLarge)])
def test_a_message_that_says_nothing_or_too_much_is_refused(
    text: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        transitions.say(make.conversation(), text, message_id=MESSAGE, now=NOON)


def test_a_message_that_fits_the_shown_question_answers_it() -> None:
    waiting = transitions.finish(working(), RUN, ASKS, now=NINE).conversation
    step = transitions.say(waiting, "The blue one.", message_id=MESSAGE, now=NINE + HOUR)

    assert step.conversation.status is Status.BACKGROUND
    assert step.messages[0].content == "The blue one."
    assert [(item.kind, item.content["answer"]) for item in step.inbox] == [
        (ItemKind.ANSWER, "The blue one.")
    ]


@requirement("A-context")
def test_work_needs_a_description_and_starts_when_its_schedule_says() -> None:
    chat = make.conversation()
    step = transitions.set_schedule(chat, Immediate(), now=NOON, state=WORK)

    assert step.conversation.next_run_at == NOON
    assert step.conversation.state.context == {"prompt": "Watch the build."}
    with pytest.raises(BadRequest):
        transitions.set_schedule(chat, Immediate(), now=NOON)


def test_a_new_schedule_makes_a_fresh_start_and_drops_a_run_that_was_handed_back() -> None:
    troubled = working(failures=2, crashes=1, ended_as=None, run_count=4)
    step = transitions.set_schedule(troubled, Interval(HOUR, anchor=NOON), now=NOON)

    after = step.conversation
    assert (after.failures, after.crashes, after.run_count) == (0, 0, 4)
    assert (after.next_run_at, after.schedule_revision) == (NOON, 2)
    assert step.drops_queued


def test_a_schedule_that_cannot_be_is_refused() -> None:
    with pytest.raises(BadSchedule):
        transitions.set_schedule(working(), Scheduled(NOON - HOUR), now=NOON)


def test_new_work_in_an_old_conversation_counts_from_zero() -> None:
    done = make.conversation(run_count=9, last_result_hash="x", state=WORK, ended_as=Ended.ERROR)
    after = transitions.set_schedule(done, DAILY, now=NOON).conversation

    assert (after.run_count, after.last_result_hash, after.ended_as) == (0, None, None)


def test_a_conversation_can_be_renamed() -> None:
    renamed = transitions.rename(make.conversation(), "  The  build ").conversation

    assert renamed.title == "The build"
    with pytest.raises(BadRequest):
        transitions.rename(renamed, "  ")


def test_paused_slots_are_never_due_and_resuming_counts_from_now() -> None:
    paused = transitions.pause(working()).conversation
    assert (paused.next_run_at, paused.schedule, paused.pause_reason) == (None, DAILY, Pause.USER)

    resumed = transitions.resume(paused, now=NINE + 60 * HOUR).conversation

    assert resumed.next_run_at == NINE + 72 * HOUR
    assert transitions.begin(resumed, now=NINE + 72 * HOUR).step.skipped == ()


def test_pausing_withdraws_what_was_asked() -> None:
    waiting = transitions.finish(working(), RUN, ASKS, now=NINE).conversation
    step = transitions.pause(waiting)

    assert step.withdrawn == tuple(question.id for question in waiting.questions)
    assert step.conversation.questions == ()


@pytest.mark.parametrize(
    "conversation",
    [
        make.conversation(),
        working(status=Status.ACTIVE, pause_reason=Pause.USER, next_run_at=None),
        transitions.propose(make.CONVERSATION, USER, BRIEF, why="", now=NOON).conversation,
    ],
    ids=["no work", "already paused", "only proposed"],
)
def test_what_cannot_be_paused_says_why(conversation: Conversation) -> None:
    with pytest.raises(Conflict) as refused:
        transitions.pause(conversation)

    assert refused.value.message


@pytest.mark.parametrize(
    "conversation",
    [make.conversation(), working(), transitions.archive(working(), now=NINE).conversation],
    ids=["no work", "not paused", "archived"],
)
def test_what_cannot_be_resumed_says_why(conversation: Conversation) -> None:
    with pytest.raises(Conflict) as refused:
        transitions.resume(conversation, now=NINE)

    assert refused.value.message


def test_run_now_starts_one_run_even_of_paused_work() -> None:
    paused = transitions.pause(working()).conversation
    step = transitions.run_now(paused)

    assert [(i.kind, i.run_kind, i.at_once) for i in step.inbox] == [
        (ItemKind.RUN_NOW, RunKind.BACKGROUND, True)
    ]


def test_cancelling_ends_the_work_and_tells_who_waits_for_it() -> None:
    waiting = transitions.finish(working(), RUN, ASKS, now=NINE).conversation
    step = transitions.cancel(waiting, now=NINE)

    after = step.conversation
    assert (after.schedule, after.ended_as, after.questions) == (None, Ended.CANCELLED, ())
    assert (step.stops, step.signal) == (Stops.WORK, Signal.ENDED)
    assert step.report is not None
    assert transitions.cancel(waiting, now=NINE, by_parent=True).report is None


def test_a_run_by_hand_can_be_cancelled_where_there_is_no_other_work() -> None:
    step = transitions.cancel(make.conversation(), now=NOON, running=True)

    assert (step.stops, step.conversation) == (Stops.WORK, make.conversation())


def test_cancelling_a_mere_question_withdraws_it() -> None:
    asked = transitions.ask_owner(make.conversation(), make.question()).conversation
    step = transitions.cancel(asked, now=NOON)

    assert (step.conversation.ended_as, step.signal) == (None, None)
    assert step.withdrawn == (make.QUESTION,)


def test_archiving_stops_the_work_and_says_so() -> None:
    step = transitions.archive(working(), now=NINE)

    assert (step.conversation.schedule, step.conversation.next_run_at) == (None, None)
    assert (step.stops, step.signal) == (Stops.EVERYTHING, Signal.GONE)
    assert [message.role for message in step.messages] == [Role.SYSTEM]
    assert transitions.archive(make.conversation(), now=NOON).messages == ()


def test_what_does_not_fit_the_status_is_refused_in_words() -> None:
    archived = transitions.archive(working(), now=NINE).conversation
    waiting = transitions.finish(working(), RUN, ASKS, now=NINE).conversation
    refusals: list[Callable[[], Step]] = [
        lambda: transitions.archive(archived, now=NINE),
        lambda: transitions.reopen(working()),
        lambda: transitions.say(archived, "Hello?", message_id=MESSAGE, now=NINE),
        lambda: transitions.resume(waiting, now=NINE),
        lambda: transitions.run_now(waiting),
        lambda: transitions.run_now(make.conversation()),
        lambda: transitions.cancel(make.conversation(), now=NINE),
        lambda: transitions.receive_event(make.conversation(), {}),
        lambda: transitions.answer(working(), make.QUESTION, "yes", now=NINE),
    ]
    for refused in refusals:
        with pytest.raises(Conflict) as conflict:
            refused()
        assert conflict.value.message


def test_any_open_question_can_be_answered_not_only_the_shown_one() -> None:
    first, second = make.question(), make.question(id=QuestionId("q_second"))
    one = transitions.ask_owner(working(), first).conversation
    both = transitions.ask_owner(one, second).conversation
    step = transitions.answer(both, second.id, "no", now=NINE)

    assert step.conversation.questions == (first,)


def test_a_reopened_conversation_does_not_take_its_work_up_again() -> None:
    archived = transitions.archive(working(), now=NINE).conversation
    reopened = transitions.reopen(archived).conversation

    assert (reopened.status, reopened.schedule) == (Status.ACTIVE, None)
    assert reopened.ended_as is Ended.CANCELLED


def test_a_dismissed_proposal_that_is_reopened_is_an_ordinary_conversation() -> None:
    dismissed = make.conversation(status=Status.ARCHIVED, ended_as=Ended.DISMISSED)

    assert transitions.reopen(dismissed).conversation.ended_as is None


def completed_job() -> Conversation:
    job = transitions.start_job(make.CONVERSATION, USER, BRIEF, now=NOON).conversation
    return transitions.finish(job, make.run(schedule_revision=1), DONE, now=NOON).conversation


def test_a_follow_up_puts_a_completed_job_to_work_again() -> None:
    step = transitions.follow_up(completed_job(), "And then?", message_id=MESSAGE, now=NINE)

    after = step.conversation
    assert (after.status, after.resuming, after.resume_count) == (Status.BACKGROUND, True, 1)
    assert (after.ended_as, after.next_run_at) == (None, NINE)
    assert [message.content for message in step.messages] == ["And then?"]
    assert [(item.run_kind, item.content["text"]) for item in step.inbox] == [
        (RunKind.BACKGROUND, "And then?")
    ]


def test_a_job_being_resumed_says_so_and_one_that_failed_says_something_else() -> None:
    resumed = transitions.follow_up(completed_job(), "?", message_id=MESSAGE, now=NOON).conversation
    failed = replace(completed_job(), ended_as=Ended.ERROR)

    with pytest.raises(Conflict) as concurrent:
        transitions.follow_up(resumed, "?", message_id=MESSAGE, now=NOON)
    with pytest.raises(Conflict) as not_completed:
        transitions.follow_up(failed, "?", message_id=MESSAGE, now=NOON)
    with pytest.raises(Conflict):
        transitions.follow_up(make.conversation(), "?", message_id=MESSAGE, now=NOON)
    assert concurrent.value.message != not_completed.value.message


def test_a_run_that_begins_stands_for_the_newest_slot_and_reports_the_missed_ones() -> None:
    due = working(settled_until=None)
    beginning = transitions.begin(due, now=NINE + 75 * HOUR)

    (skipped,) = beginning.step.skipped
    assert beginning.slot_at == NINE + 72 * HOUR
    assert (skipped.reason, skipped.gap.count) == (SkipReason.MISSED, 3)
    assert beginning.step.conversation.settled_until == NINE + 72 * HOUR


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
        ("There are two.", Role.ASSISTANT, Source.WORKER)
    ]
    assert [notice.kind for notice in step.notices] == [NoticeKind.QUESTION]
    assert after.pending_question == step.asked[0]
    assert step.asked[0].run_id == RUN.id


@requirement("A-continue", "A-step", "A-data")
def test_a_run_that_goes_on_merges_what_it_learned_and_tells_nobody() -> None:
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
    assert stopped.conversation.ended_as is Ended.CANCELLED


@requirement("A-complete-once", "A-after-complete", "A-once")
def test_one_time_work_that_is_complete_goes_back_to_being_a_chat() -> None:
    step = transitions.finish(once(), RUN, DONE, now=NINE)

    after = step.conversation
    assert (after.status, after.schedule, after.next_run_at) == (Status.ACTIVE, None, None)
    assert (after.ended_as, after.ended_at) == (Ended.COMPLETED, NINE)
    assert [notice.text for notice in step.notices] == ["All green."]
    assert (step.stops, step.signal) == (Stops.WORK, Signal.COMPLETED)


@requirement("A-complete-cron")
def test_recurring_work_that_is_complete_goes_on_at_its_next_time() -> None:
    step = transitions.finish(working(), RUN, DONE, now=NINE + HOUR)

    after = step.conversation
    assert (after.status, after.next_run_at) == (Status.BACKGROUND, NINE + 24 * HOUR)
    assert [message.content for message in step.messages] == ["All green."]
    assert (step.report, step.signal) == (transitions.Report("All green."), Signal.COMPLETED)


def test_final_ends_recurring_work() -> None:
    step = transitions.finish(working(), RUN, replace(DONE, final=True), now=NINE)

    assert step.conversation.ended_as is Ended.COMPLETED


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

    assert (step.conversation.run_count, step.conversation.ended_as) == (3, Ended.COMPLETED)


def test_failing_in_its_last_permitted_run_ends_work_in_error() -> None:
    step = transitions.fail(working(max_runs=3, run_count=2), RUN, BROKEN, now=NINE)

    assert step.conversation.ended_as is Ended.ERROR


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


def test_a_run_that_ends_after_a_pause_keeps_its_words_and_nothing_more() -> None:
    paused = transitions.pause(working()).conversation
    step = transitions.finish(paused, RUN, DONE, now=NINE)

    assert (step.conversation.status, step.conversation.pause_reason) == (
        Status.ACTIVE,
        Pause.USER,
    )
    assert [message.content for message in step.messages] == ["All green."]
    completed = transitions.pause(once()).conversation
    ended = transitions.finish(completed, RUN, DONE, now=NINE).conversation
    assert (ended.schedule, ended.pause_reason, ended.ended_as) == (None, None, Ended.COMPLETED)


def test_a_run_that_ends_in_an_archived_conversation_leaves_only_its_words() -> None:
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


def test_an_update_that_would_outgrow_the_state_is_a_failed_run() -> None:
    step = transitions.finish(
        working(), RUN, Complete(state_update={"all": "x" * 70_000}), now=NINE
    )

    assert step.conversation.failures == 1
    assert step.conversation.state == WORK


def test_a_chat_tells_once_after_three_failures_and_goes_on() -> None:
    conversation, told = working(), []
    for attempt in range(5):
        now = NINE + timedelta(minutes=10 * attempt)
        step = transitions.fail(conversation, RUN, BROKEN, now=now)
        conversation = step.conversation
        told.append(len(step.notices))

    assert told == [0, 0, 1, 0, 0]
    assert (conversation.status, conversation.schedule) == (Status.BACKGROUND, DAILY)


@requirement("B-retry")
def test_a_task_is_retried_once_with_backoff_then_paused_and_its_user_told() -> None:
    task = working(kind=Kind.TASK, on_repeated_failure=OnRepeatedFailure.PAUSE)
    first = transitions.fail(task, RUN, BROKEN, now=NINE)
    second = transitions.fail(first.conversation, RUN, BROKEN, now=NINE + HOUR)

    assert first.conversation.next_run_at == NINE + timedelta(seconds=30)
    assert (first.notices, first.conversation.status) == ((), Status.BACKGROUND)
    paused = second.conversation
    assert (paused.status, paused.pause_reason) == (Status.ACTIVE, Pause.FAILURES)
    assert (paused.schedule, paused.next_run_at) == (DAILY, None)
    assert [notice.kind for notice in second.notices] == [NoticeKind.STOPPED]
    assert second.signal is Signal.ENDED


def test_one_time_work_ends_in_error_at_its_limit() -> None:
    step = transitions.fail(once(failures=2), RUN, BROKEN, now=NINE)

    assert (step.conversation.ended_as, step.conversation.schedule) == (Ended.ERROR, None)
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
def test_who_wants_to_hear_of_failures_hears_of_each(policy: Notify) -> None:
    step = transitions.fail(working(notify=policy), RUN, BROKEN, now=NINE)

    assert [notice.kind for notice in step.notices] == [NoticeKind.FAILURE]
    one_time = transitions.fail(once(notify=policy), RUN, BROKEN, now=NINE)
    assert [notice.kind for notice in one_time.notices] == [NoticeKind.FAILURE]


def test_what_no_repetition_can_mend_is_not_repeated() -> None:
    wrong_key = Failure(FailureKind.MODEL, "The key is wrong.", permanent=True)
    step = transitions.fail(once(), RUN, wrong_key, now=NINE)

    assert step.conversation.ended_as is Ended.ERROR


@pytest.mark.parametrize(
    ("kind", "purpose"),
    [(FailureKind.TOOL, Purpose.FAILURE), (FailureKind.SIGNED_OUT, Purpose.RECONNECT)],
)
def test_what_only_the_user_can_settle_is_asked(kind: FailureKind, purpose: Purpose) -> None:
    step = transitions.fail(working(), RUN, Failure(kind, "No calendar."), now=NINE)

    assert [q.purpose for q in step.asked] == [purpose]
    assert step.asked[0].options == ("try again", "skip", "stop")
    assert [notice.kind for notice in step.notices] == [NoticeKind.QUESTION]
    of_once = transitions.fail(once(), RUN, Failure(kind, "No calendar."), now=NINE)
    assert of_once.asked[0].options == ("try again", "stop")


def test_failing_outside_of_work_leaves_a_message() -> None:
    step = transitions.fail(make.conversation(), make.run(), BROKEN, now=NOON)

    assert [message.role for message in step.messages] == [Role.SYSTEM]
    assert step.conversation.failures == 0


def test_a_crashed_run_is_given_again_twice_and_then_the_work_stops() -> None:
    recurring, one_time = working(), once()
    for _ in range(2):
        recurring = transitions.crash(recurring, RUN, now=NINE).conversation
        one_time = transitions.crash(one_time, RUN, now=NINE).conversation
    assert (recurring.next_run_at, recurring.status) == (NINE, Status.BACKGROUND)

    third = transitions.crash(recurring, RUN, now=NINE)
    ended = transitions.crash(one_time, RUN, now=NINE)

    assert third.conversation.pause_reason is Pause.CRASHES
    assert [notice.kind for notice in third.notices] == [NoticeKind.STOPPED]
    assert ended.conversation.ended_as is Ended.ERROR


def test_a_run_asked_for_by_hand_that_keeps_crashing_is_given_up() -> None:
    idle = make.conversation(state=WORK, crashes=2)
    step = transitions.crash(idle, make.run(), now=NOON)

    assert (step.stops, step.conversation.crashes) == (Stops.WORK, 0)


def test_a_success_forgets_earlier_troubles() -> None:
    step = transitions.finish(working(failures=2, crashes=2), RUN, DONE, now=NINE)

    assert (step.conversation.failures, step.conversation.crashes) == (0, 0)


@requirement("A-source", "A-roles")
def test_replies_come_from_the_chat_and_background_words_from_the_worker() -> None:
    chat = make.conversation()
    reply = transitions.reply(chat, make.run(kind=RunKind.REPLY), "Hello.", now=NOON)
    worked = transitions.finish(working(), RUN, DONE, now=NINE)
    failed = transitions.fail_reply(chat, Failure(FailureKind.MODEL, "Overloaded."))

    assert [(m.role, m.source) for m in reply.messages] == [(Role.ASSISTANT, Source.CHAT)]
    assert [(m.role, m.source) for m in worked.messages] == [(Role.ASSISTANT, Source.WORKER)]
    assert [m.role for m in failed.messages] == [Role.SYSTEM]


def test_after_twenty_replies_that_nobody_read_it_asks() -> None:
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


def test_the_answer_to_a_background_question_starts_the_work_at_once() -> None:
    waiting = transitions.finish(working(), RUN, ASKS, now=NINE).conversation
    late = NINE + 50 * HOUR
    step = transitions.answer(waiting, waiting.questions[0].id, "The blue one.", now=late)

    (item,), (skipped,) = step.inbox, step.skipped
    assert (step.conversation.status, step.conversation.next_run_at) == (Status.BACKGROUND, late)
    assert (item.kind, item.run_kind, item.at_once) == (
        ItemKind.ANSWER,
        RunKind.BACKGROUND,
        False,
    )
    assert (skipped.reason, skipped.gap.count) == (SkipReason.WAITING, 2)


def test_the_answer_to_a_reply_starts_a_reply_and_the_work_keeps_its_time() -> None:
    question = make.question(run_kind=RunKind.REPLY)
    waiting = transitions.ask_owner(working(settled_until=None), question).conversation
    early = transitions.answer(waiting, question.id, "yes", now=NOON)
    late = transitions.answer(waiting, question.id, "yes", now=NINE + HOUR)

    assert early.conversation.next_run_at == NINE
    assert late.conversation.next_run_at == NINE + 24 * HOUR
    assert [s.reason for s in late.skipped] == [SkipReason.WAITING]
    assert [item.run_kind for item in late.inbox] == [RunKind.REPLY]


def test_one_time_work_whose_time_passed_while_it_waited_is_not_skipped() -> None:
    question = make.question(run_kind=RunKind.REPLY)
    waiting = transitions.ask_owner(once(settled_until=None), question).conversation
    step = transitions.answer(waiting, question.id, "yes", now=NINE + HOUR)

    assert (step.conversation.next_run_at, step.skipped) == (NINE + HOUR, ())


def test_while_another_question_is_open_the_conversation_goes_on_waiting() -> None:
    first, second = make.question(), make.question(id=QuestionId("q_second"))
    one = transitions.ask_owner(working(), first).conversation
    both = transitions.ask_owner(one, second).conversation
    step = transitions.answer(both, first.id, "yes", now=NINE)

    assert step.conversation.status is Status.WAITING_INPUT
    assert step.conversation.pending_question == second


def test_an_answer_in_a_conversation_without_work_starts_its_run_at_once() -> None:
    asked = transitions.ask_owner(make.conversation(), make.question()).conversation
    step = transitions.answer(asked, make.QUESTION, "yes", now=NOON)

    assert [item.at_once for item in step.inbox] == [True]
    assert step.conversation.status is Status.ACTIVE


def test_the_first_answer_wins() -> None:
    waiting = transitions.finish(working(), RUN, ASKS, now=NINE).conversation
    question = waiting.questions[0]
    answered = transitions.answer(waiting, question.id, "Blue.", now=NINE).conversation

    with pytest.raises(Conflict):
        transitions.answer(answered, question.id, "Red.", now=NINE)


def test_a_question_that_nobody_answered_in_time_counts_as_its_default() -> None:
    drafted = Draft(
        type=QuestionType.CONFIRMATION,
        prompt="Go on?",
        options=("yes", "no"),
        default="no",
        expires_in=HOUR,
    )
    waiting = transitions.finish(working(), RUN, replace(ASKS, question=drafted), now=NINE)
    question = waiting.asked[0]

    with pytest.raises(Conflict):
        transitions.expire(waiting.conversation, question.id, now=NINE)
    step = transitions.expire(waiting.conversation, question.id, now=NINE + HOUR)

    assert step.answered == ((question.id, "no"),)
    assert [message.role for message in step.messages] == [Role.SYSTEM]


COMMAND = Tool(server="backburner", name="run", definition="d", narrowing=Narrowing.COMMAND)
BINDING = approval_binding([Call(COMMAND, {"command": "git push"})])


def test_a_yes_to_an_approval_grants_the_call_and_tells_the_agent() -> None:
    question = make.question(
        purpose=Purpose.APPROVAL,
        type=QuestionType.CHOICE,
        options=("yes", ALWAYS, "no"),
        binds_to=BINDING,
    )
    waiting = transitions.ask_owner(working(), question).conversation
    yes = transitions.answer(waiting, question.id, "yes", now=NINE)
    always = transitions.answer(waiting, question.id, ALWAYS, now=NINE)
    no = transitions.answer(waiting, question.id, "no", now=NINE)

    assert [grant.call is None for grant in yes.grants] == [False]
    assert [(grant.call, grant.words) for grant in always.grants] == [(None, ("git", "push"))]
    assert (no.grants, [item.content["answer"] for item in no.inbox]) == ((), ["no"])


def cannot_go_on(conversation: Conversation) -> Conversation:
    failure = Failure(FailureKind.TOOL, "No calendar.")
    return transitions.fail(conversation, RUN, failure, now=NINE).conversation


def test_work_that_cannot_go_on_is_tried_again_skipped_or_stopped_as_its_user_says() -> None:
    waiting = cannot_go_on(working())
    question = waiting.questions[0].id
    again = transitions.answer(waiting, question, "try again", now=NINE + HOUR)
    skipped = transitions.answer(waiting, question, "skip", now=NINE + 30 * HOUR)
    stopped = transitions.answer(waiting, question, "stop", now=NINE + HOUR)

    assert (again.conversation.next_run_at, len(again.inbox)) == (NINE + HOUR, 1)
    assert skipped.conversation.next_run_at == NINE + 48 * HOUR
    assert ([s.gap.count for s in skipped.skipped], skipped.inbox) == ([1], ())
    assert stopped.conversation.ended_as is Ended.CANCELLED


def test_skipping_does_not_wake_work_that_something_paused() -> None:
    waiting = transitions.park(cannot_go_on(working())).conversation
    question = waiting.questions[0].id
    step = transitions.answer(waiting, question, "skip", now=NINE + HOUR)

    assert (step.conversation.status, step.conversation.next_run_at) == (Status.ACTIVE, None)


def test_stopping_what_has_no_work_just_closes_the_question() -> None:
    question = make.question(
        purpose=Purpose.ALLOWANCE, type=QuestionType.CHOICE, options=("raise", "stop")
    )
    asked = transitions.ask_owner(make.conversation(), question).conversation
    step = transitions.answer(asked, question.id, "stop", now=NOON)

    assert (step.conversation.status, step.conversation.ended_as) == (Status.ACTIVE, None)


def test_raising_an_allowance_lets_the_work_go_on() -> None:
    question = make.question(
        purpose=Purpose.ALLOWANCE, type=QuestionType.CHOICE, options=("raise", "stop")
    )
    waiting = transitions.ask_owner(working(), question).conversation
    step = transitions.answer(waiting, question.id, "raise", now=NINE + HOUR)

    assert (step.conversation.status, step.inbox) == (Status.BACKGROUND, ())


def proposed(**changes: object) -> Conversation:
    brief = replace(BRIEF, **changes)  # type: ignore[arg-type]
    return transitions.propose(
        make.CONVERSATION, USER, brief, why="It broke twice.", now=NOON
    ).conversation


def test_a_proposal_waits_and_says_what_and_why() -> None:
    waiting = proposed()

    question = waiting.pending_question
    assert question is not None
    assert (waiting.status, waiting.next_run_at) == (Status.WAITING_INPUT, None)
    assert question.prompt.startswith("Proposed task: watch\nIt broke twice.")
    assert question.options == ("yes", "no")


def test_an_approved_proposal_starts_counting_from_the_yes() -> None:
    for schedule, first in ((DAILY, NINE + 24 * HOUR), (Interval(HOUR, NOON), NINE + HOUR)):
        waiting = proposed(schedule=schedule)
        step = transitions.answer(waiting, waiting.questions[0].id, "yes", now=NINE + HOUR)
        assert (step.conversation.status, step.conversation.next_run_at) == (
            Status.BACKGROUND,
            first,
        )


def test_a_dismissed_proposal_is_archived_as_such() -> None:
    other = make.question(id=QuestionId("q_other"))
    waiting = transitions.ask_owner(proposed(), other).conversation
    step = transitions.answer(waiting, waiting.questions[0].id, "no", now=NOON)

    assert step.withdrawn == (other.id,)
    assert (step.conversation.status, step.conversation.ended_as) == (
        Status.ARCHIVED,
        Ended.DISMISSED,
    )


def test_a_proposal_whose_work_is_gone_can_still_be_approved() -> None:
    waiting = replace(proposed(), schedule=None)
    step = transitions.answer(waiting, waiting.questions[0].id, "yes", now=NOON)

    assert step.conversation.status is Status.ACTIVE


def test_changing_a_proposal_asks_anew_so_that_a_yes_is_for_what_was_shown() -> None:
    waiting = proposed()
    other = make.question(id=QuestionId("q_other"))
    both = transitions.ask_owner(waiting, other).conversation
    step = transitions.set_schedule(both, Interval(HOUR, NOON), now=NOON)

    assert step.withdrawn == (waiting.questions[0].id, other.id)
    assert step.conversation.questions == step.asked
    assert "It broke twice." in step.asked[0].prompt
    assert step.conversation.next_run_at is None


def test_an_event_waits_behind_an_open_question() -> None:
    waiting = transitions.finish(working(), RUN, ASKS, now=NINE).conversation
    step = transitions.receive_event(waiting, {"source": "file"})

    assert [(i.kind, i.at_once) for i in step.inbox] == [(ItemKind.EVENT, False)]


def test_the_result_of_a_job_is_answered_and_that_of_a_task_only_written_down() -> None:
    parent, report = make.conversation(), transitions.Report("Found it.")
    job = make.conversation(id=make.OTHER, kind=Kind.JOB, title="search")
    task = replace(job, kind=Kind.TASK)
    answered = transitions.receive_report(parent, job, report)
    noted = transitions.receive_report(parent, task, report)

    assert [(i.kind, i.run_kind) for i in answered.inbox] == [(ItemKind.JOB_RESULT, RunKind.REPLY)]
    assert answered.inbox[0].content["result"] == "Found it."
    assert noted.inbox == ()
    assert [(m.content, m.outside) for m in noted.messages] == [("search: Found it.", True)]


@pytest.mark.parametrize(
    ("parent", "replies"),
    [(make.conversation(status=Status.ARCHIVED), True), (make.conversation(), False)],
    ids=["archived", "nobody there"],
)
def test_a_parent_that_cannot_answer_keeps_the_words(
    parent: Conversation, *, replies: bool
) -> None:
    job = make.conversation(id=make.OTHER, kind=Kind.JOB)
    step = transitions.receive_report(parent, job, transitions.Report("Found it."), replies=replies)

    assert (len(step.messages), step.inbox) == (1, ())


@pytest.mark.parametrize(
    ("on", "signal", "fires"),
    [
        (On.SUCCESS, Signal.COMPLETED, True),
        (On.SUCCESS, Signal.ENDED, False),
        (On.ANY, Signal.COMPLETED, True),
        (On.ANY, Signal.ENDED, True),
    ],
)
def test_what_comes_after_another_conversation_starts_when_that_has_ended(
    on: On, signal: Signal, *, fires: bool
) -> None:
    follower = working(schedule=After(make.OTHER, on), next_run_at=None)
    step = transitions.hear_predecessor(follower, signal)

    assert bool(step.inbox) is fires


def test_a_follower_whose_predecessor_is_gone_pauses_and_says_so() -> None:
    follower = working(schedule=After(make.OTHER), next_run_at=None)
    step = transitions.hear_predecessor(follower, Signal.GONE)

    assert step.conversation.pause_reason is Pause.USER
    assert [notice.kind for notice in step.notices] == [NoticeKind.STOPPED]
    assert transitions.hear_predecessor(working(), Signal.GONE).conversation == working()


def test_work_parked_for_an_allowance_goes_on_when_there_is_more() -> None:
    parked = transitions.park(working()).conversation
    assert (parked.status, parked.pause_reason) == (Status.ACTIVE, Pause.ALLOWANCE)
    assert transitions.park(parked).conversation == parked
    assert transitions.park(proposed()).conversation == proposed()

    going = transitions.unpark(parked, now=NINE + HOUR).conversation

    assert (going.status, going.next_run_at) == (Status.BACKGROUND, NINE + 24 * HOUR)
    assert transitions.unpark(going, now=NINE).conversation == going
    waiting = transitions.park(cannot_go_on(working())).conversation
    assert transitions.unpark(waiting, now=NINE).conversation.status is Status.WAITING_INPUT
