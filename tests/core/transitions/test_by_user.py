"""Transitions caused by the user, other than answers."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from support.cases.transition_cases import (
    ASKS,
    BRIEF,
    DAILY,
    DONE,
    HOUR,
    NINE,
    RUN,
    WORK,
    proposed,
    working,
)
from support.requirements import requirement
from support.stage import make
from support.stage.make import MESSAGE, NOON, USER

from backburner.core import transitions
from backburner.core.conversation import (
    Conversation,
    EndedAs,
    Kind,
    MessageRole,
    PauseReason,
    Session,
    Source,
    Status,
    mark_brief,
)
from backburner.core.errors import BadRequest, BadSchedule, Conflict, TooLarge
from backburner.core.question import NO, Purpose, QuestionType
from backburner.core.run import ItemKind, RunKind
from backburner.core.schedule import Immediate, Interval, Scheduled
from backburner.core.transitions import FollowerEvent, Step, Stops
from backburner.core.transitions.by_user import STARTED_AFRESH


def test_a_message_is_written_down_and_waits_for_its_reply() -> None:
    step = transitions.receive_message(
        make.conversation(), "Hello there.\nMore.", message_id=MESSAGE, now=NOON
    )

    (message,), (item,) = step.messages, step.inbox
    assert (message.role, message.source, message.id) == (MessageRole.USER, Source.CHAT, MESSAGE)
    assert (item.kind, item.run_kind, item.content) == (
        ItemKind.MESSAGE,
        RunKind.REPLY,
        {"message_id": MESSAGE, "text": "Hello there.\nMore."},
    )
    assert step.conversation.title == "Hello there."


def test_a_title_that_is_there_stays() -> None:
    chat = make.conversation(title="Build", unattended_replies=7)
    after = transitions.receive_message(chat, "Hello.", message_id=MESSAGE, now=NOON).conversation

    assert (after.title, after.unattended_replies) == ("Build", 0)


@pytest.mark.parametrize(("text", "error"), [(" \n", BadRequest), ("x" * 100_001, TooLarge)])
def test_a_message_that_says_nothing_or_too_much_is_refused(
    text: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        transitions.receive_message(make.conversation(), text, message_id=MESSAGE, now=NOON)


def test_a_message_that_fits_the_shown_question_answers_it() -> None:
    waiting = transitions.finish(working(), RUN, ASKS, now=NINE).conversation
    step = transitions.receive_message(
        waiting, "The blue one.", message_id=MESSAGE, now=NINE + HOUR
    )

    assert step.conversation.status is Status.BACKGROUND
    assert step.messages[1].content == "The blue one."
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
    done = make.conversation(run_count=9, last_result_hash="x", state=WORK, ended_as=EndedAs.ERROR)
    after = transitions.set_schedule(done, DAILY, now=NOON).conversation

    assert (after.run_count, after.last_result_hash, after.ended_as) == (0, None, None)


def test_titles_that_look_the_same_are_the_same() -> None:
    renamed = transitions.rename(make.conversation(), "Cafe\u0301  menu")
    brief = replace(BRIEF, title="Cafe\u0301  menu")
    task = transitions.start_task(make.conversation().id, USER, brief, now=NOON)
    said = transitions.receive_message(
        make.conversation(), "Cafe\u0301 menu", message_id=MESSAGE, now=NOON
    )

    assert {step.conversation.title for step in (renamed, task, said)} == {"Caf\u00e9 menu"}


def test_a_conversation_can_be_renamed() -> None:
    renamed = transitions.rename(make.conversation(), "  The  build ").conversation

    assert renamed.title == "The build"
    with pytest.raises(BadRequest):
        transitions.rename(renamed, "  ")


def test_paused_slots_are_never_due_and_resuming_counts_from_now() -> None:
    paused = transitions.pause(working()).conversation
    assert (paused.next_run_at, paused.schedule, paused.pause_reason) == (
        None,
        DAILY,
        PauseReason.USER,
    )

    resumed = transitions.resume(paused, now=NINE + 60 * HOUR).conversation

    assert resumed.next_run_at == NINE + 72 * HOUR
    assert transitions.begin(resumed, now=NINE + 72 * HOUR).step.skipped == ()


def test_pausing_withdraws_open_questions() -> None:
    waiting = transitions.finish(working(), RUN, ASKS, now=NINE).conversation
    step = transitions.pause(waiting)

    assert step.withdrawn == tuple(question.id for question in waiting.questions)
    assert step.conversation.questions == ()


@pytest.mark.parametrize(
    "withdraw",
    [
        transitions.pause,
        lambda waiting: transitions.cancel(waiting, now=NINE),
        lambda waiting: transitions.archive(waiting, now=NINE),
    ],
)
def test_the_next_run_learns_that_a_question_was_withdrawn(
    withdraw: Callable[[Conversation], Step],
) -> None:
    read = replace(working(), outside_read=True)
    waiting = transitions.finish(read, RUN, ASKS, now=NINE).conversation
    note = withdraw(waiting).messages[0]

    prompt = waiting.questions[0].prompt
    assert note.content == f"Question: {prompt}\nIt was withdrawn; nobody answered it."
    # The agent wrote the question after it had read outside text.
    assert (note.role, note.outside) == (MessageRole.SYSTEM, True)


@pytest.mark.parametrize(
    "conversation",
    [
        make.conversation(),
        working(status=Status.ACTIVE, pause_reason=PauseReason.USER, next_run_at=None),
        transitions.propose(make.CONVERSATION, USER, BRIEF, why="", now=NOON).conversation,
    ],
    ids=["no work", "already paused", "only proposed"],
)
def test_a_refused_pause_gives_the_reason(conversation: Conversation) -> None:
    with pytest.raises(Conflict) as refused:
        transitions.pause(conversation)

    assert refused.value.message


@pytest.mark.parametrize(
    "conversation",
    [make.conversation(), working(), transitions.archive(working(), now=NINE).conversation],
    ids=["no work", "not paused", "archived"],
)
def test_a_refused_resume_gives_the_reason(conversation: Conversation) -> None:
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
    assert (after.schedule, after.ended_as, after.questions) == (None, EndedAs.CANCELLED, ())
    assert (step.stops, step.signal) == (Stops.WORK, FollowerEvent.ENDED)
    assert step.report is not None
    assert step.report.cancelled
    assert transitions.cancel(waiting, now=NINE, by_parent=True).report is None
    by_itself = transitions.cancel(waiting, now=NINE, by_itself=True).report
    assert by_itself == transitions.Report("Its agent stopped it.", failed=True)


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
    assert (step.stops, step.signal) == (Stops.EVERYTHING, FollowerEvent.GONE)
    assert [message.role for message in step.messages] == [MessageRole.SYSTEM]
    assert transitions.archive(make.conversation(), now=NOON).messages == ()


def test_an_event_that_the_status_does_not_allow_is_refused_with_a_reason() -> None:
    archived = transitions.archive(working(), now=NINE).conversation
    waiting = transitions.finish(working(), RUN, ASKS, now=NINE).conversation
    refusals: list[Callable[[], Step]] = [
        lambda: transitions.archive(archived, now=NINE),
        lambda: transitions.reopen(working(), proposed=None, now=NINE),
        lambda: transitions.receive_message(archived, "Hello?", message_id=MESSAGE, now=NINE),
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


def test_a_reopened_conversation_does_not_take_its_work_up_again() -> None:
    archived = transitions.archive(working(), now=NINE).conversation
    reopened = transitions.reopen(archived, proposed=None, now=NINE).conversation

    assert (reopened.status, reopened.schedule) == (Status.ACTIVE, None)
    assert reopened.ended_as is EndedAs.CANCELLED


ENDINGS: dict[str, Callable[[Conversation], Step]] = {
    "rejected": lambda c: transitions.answer(c, c.questions[0].id, NO, now=NOON),
    "archived": lambda c: transitions.archive(c, now=NOON),
    "deleted": lambda c: transitions.hide(c, now=NOON),
    "cancelled": lambda c: transitions.cancel(c, now=NOON),
    "cancelled with a reason": lambda c: transitions.cancel_and_archive(c, "No.", now=NOON),
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_what_nobody_has_approved_is_archived_and_proposed_again(
    ending: Callable[[Conversation], Step],
) -> None:
    proposal = mark_brief(proposed(schedule=DAILY, connections=("mail",)), outside=True)
    (asked,) = proposal.questions

    ended = ending(proposal)
    again = transitions.reopen(ended.conversation, proposed=asked, now=NINE)

    assert (ended.conversation.status, ended.conversation.schedule) == (Status.ARCHIVED, None)
    assert (ended.stops, ended.conversation.questions) == (Stops.EVERYTHING, ())
    assert asked.id in ended.withdrawn or ended.answered == ((asked.id, NO),)
    (question,) = again.asked
    assert (question.prompt, question.outside) == (asked.prompt, True)
    assert question.binds_to == asked.binds_to
    assert question.id != asked.id
    assert again.notices
    back = again.conversation
    assert (back.status, back.questions) == (Status.WAITING_INPUT, (question,))
    assert (back.schedule, back.next_run_at, back.ended_as, back.ended_at) == (
        proposal.schedule,
        None,
        None,
        None,
    )


def test_a_proposal_that_had_no_time_is_proposed_again_without_one() -> None:
    without = transitions.apply_change(
        replace(proposed(), schedule=None), replace(proposed(), schedule=None, title="B"), now=NOON
    )
    archived = transitions.archive(without.conversation, now=NOON).conversation

    again = transitions.reopen(archived, proposed=without.asked[0], now=NINE)

    assert (again.conversation.schedule, again.conversation.title) == (None, "B")


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
    failed = replace(completed_job(), ended_as=EndedAs.ERROR)

    with pytest.raises(Conflict) as concurrent:
        transitions.follow_up(resumed, "?", message_id=MESSAGE, now=NOON)
    with pytest.raises(Conflict) as not_completed:
        transitions.follow_up(failed, "?", message_id=MESSAGE, now=NOON)
    with pytest.raises(Conflict):
        transitions.follow_up(make.conversation(), "?", message_id=MESSAGE, now=NOON)
    assert concurrent.value.message != not_completed.value.message


def test_a_follow_up_of_a_marked_session_is_marked() -> None:
    job = make.conversation(kind=Kind.JOB, ended_as=EndedAs.COMPLETED, state=WORK)
    step = transitions.follow_up(job, "More.", message_id=MESSAGE, now=NOON, outside=True)

    assert [message.outside for message in step.messages] == [True]
    assert [item.content["outside"] for item in step.inbox] == [True]


def test_starting_afresh_forgets_the_session_and_marked_state() -> None:
    state = replace(WORK, data={"mail": 1}, outside=frozenset({"data.mail"}))
    read = make.conversation(
        state=state, session=Session("claude", "s", tokens=1), outside_read=True
    )
    step = transitions.start_afresh(read, now=NOON)

    fresh = step.conversation
    assert (fresh.session, fresh.outside_read, fresh.fresh_at) == (None, False, NOON)
    assert fresh.state == WORK
    assert [message.content for message in step.messages] == [STARTED_AFRESH]


def test_a_message_for_another_model_names_it_in_its_item() -> None:
    step = transitions.receive_message(
        make.conversation(), "Hello.", message_id=MESSAGE, now=NOON, profile="local"
    )

    assert [item.content["profile"] for item in step.inbox] == ["local"]


@requirement("Z-model-change")
def test_an_answer_for_another_model_names_it_for_the_run_that_it_resumes() -> None:
    waiting = transitions.finish(working(), RUN, ASKS, now=NINE).conversation
    step = transitions.receive_message(
        waiting, "The blue one.", message_id=MESSAGE, now=NINE + HOUR, profile="local"
    )

    assert [(item.kind, item.content["profile"]) for item in step.inbox] == [
        (ItemKind.ANSWER, "local")
    ]
    assert (step.conversation.work_profile, step.conversation.reply_profile) == ("local", "")


def test_an_answer_that_resumes_nothing_asks_for_no_model() -> None:
    failed = make.question(
        purpose=Purpose.FAILURE,
        type=QuestionType.CHOICE,
        options=(transitions.TRY_AGAIN, transitions.STOP),
    )
    waiting = transitions.ask_owner(working(), failed).conversation
    step = transitions.receive_message(
        waiting, transitions.STOP, message_id=MESSAGE, now=NINE, profile="local"
    )

    assert step.answered == ((failed.id, transitions.STOP),)
    assert step.inbox == ()
    assert (step.conversation.work_profile, step.conversation.reply_profile) == ("", "")


def test_what_a_user_deletes_ends_and_may_come_back_without_its_work() -> None:
    works = make.conversation(
        status=Status.BACKGROUND, schedule=Immediate(), next_run_at=NOON, questions=()
    )

    hidden = transitions.hide(works, now=NOON)
    back = transitions.show_again(
        hidden.conversation, was_archived=False, proposed=None, now=NOON, lost_work=True
    )

    assert hidden.conversation.status is Status.ARCHIVED
    assert (hidden.conversation.schedule, hidden.conversation.next_run_at) == (None, None)
    assert (hidden.stops, hidden.ends_all_grants) == (Stops.EVERYTHING, True)
    assert back.conversation.status is Status.ACTIVE
    assert "stays stopped" in back.messages[0].content


def test_a_chat_that_a_user_deletes_comes_back_as_it_was() -> None:
    chat = make.conversation(status=Status.WAITING_INPUT, questions=(make.question(),))

    hidden = transitions.hide(chat, now=NOON)

    assert hidden.withdrawn == (make.QUESTION,)
    assert "withdrawn" in hidden.messages[0].content
    assert hidden.conversation.ended_as is None
    archived = transitions.show_again(
        hidden.conversation, was_archived=True, proposed=None, now=NOON
    )
    assert archived.conversation.status is Status.ARCHIVED
    assert archived.messages[0].content == "Restored."


def test_a_proposal_that_a_user_deletes_comes_back_as_a_proposal() -> None:
    asked = proposed().questions[0]
    hidden = transitions.hide(proposed(), now=NOON).conversation

    back = transitions.show_again(
        hidden, was_archived=False, proposed=asked, now=NOON, lost_work=True
    )

    assert back.messages[0].content == "Restored."
    assert back.asked == back.conversation.questions
    assert back.asked[0].purpose is Purpose.PROPOSAL
