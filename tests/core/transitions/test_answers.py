"""The effects of answers and of expired questions."""

from dataclasses import replace

import pytest
from support.cases.transition_cases import (
    ASKS,
    BRIEF,
    DAILY,
    HOUR,
    NINE,
    RUN,
    once,
    proposed,
    with_tool_failure,
    working,
)
from support.stage import make
from support.stage.make import NOON

from backburner.core import transitions
from backburner.core.conversation import EndedAs, MessageRole, Session, Status, mark_brief
from backburner.core.errors import Conflict
from backburner.core.ids import QuestionId
from backburner.core.question import NewQuestion, Purpose, QuestionType
from backburner.core.run import ItemKind, RunKind, SkipReason
from backburner.core.schedule import Interval
from backburner.core.tool_policy import ALWAYS_HERE, GrantMatch, Tool, ToolCall, approval_binding


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


def test_any_open_question_can_be_answered_not_only_the_shown_one() -> None:
    first, second = make.question(), make.question(id=QuestionId("q_second"))
    one = transitions.ask_owner(working(), first).conversation
    both = transitions.ask_owner(one, second).conversation
    step = transitions.answer(both, second.id, "no", now=NINE)

    assert step.conversation.questions == (first,)


def test_an_answer_in_a_conversation_without_work_starts_its_run_at_once() -> None:
    asked = transitions.ask_owner(make.conversation(), make.question()).conversation
    step = transitions.answer(asked, make.QUESTION, "yes", now=NOON)

    assert [item.at_once for item in step.inbox] == [True]
    assert step.conversation.status is Status.ACTIVE


def test_a_question_stays_in_the_transcript_with_its_answer() -> None:
    waiting = transitions.finish(working(), RUN, ASKS, now=NINE).conversation
    question = waiting.questions[0]
    explicit = transitions.answer(waiting, question.id, "Blue.", now=NINE)
    step = transitions.finish(replace(working(), outside_read=True), RUN, ASKS, now=NINE)
    # The question keeps its mark, also in a session that has none.
    read = replace(step.conversation, outside_read=False)
    said = transitions.receive_message(read, "Blue.", message_id=make.MESSAGE, now=NINE)

    note = f"Question: {question.prompt}\nAnswer: Blue."
    assert [(one.role, one.content) for one in explicit.messages] == [(MessageRole.SYSTEM, note)]
    assert [(one.content, one.outside) for one in said.messages] == [
        (note, True),
        ("Blue.", False),
    ]


def test_the_first_answer_wins() -> None:
    waiting = transitions.finish(working(), RUN, ASKS, now=NINE).conversation
    question = waiting.questions[0]
    answered = transitions.answer(waiting, question.id, "Blue.", now=NINE).conversation

    with pytest.raises(Conflict):
        transitions.answer(answered, question.id, "Red.", now=NINE)


def test_a_question_that_nobody_answered_in_time_counts_as_its_default() -> None:
    drafted = NewQuestion(
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
    (note,) = step.messages
    assert note.role is MessageRole.SYSTEM
    assert note.content == (
        f"Question: {question.prompt}\nNobody answered in time; the default applies: no"
    )
    (item,) = step.inbox
    assert (item.content["answer"], item.content["expired"]) == ("no", True)
    answered = transitions.answer(waiting.conversation, question.id, "no", now=NINE + HOUR)
    assert "expired" not in answered.inbox[0].content


COMMAND = Tool(server="backburner", name="run", definition="d", grant_match=GrantMatch.COMMAND)
BINDING = approval_binding([ToolCall(COMMAND, {"command": "git push"})])


def test_a_yes_to_an_approval_grants_the_call_and_tells_the_agent() -> None:
    question = make.question(
        purpose=Purpose.APPROVAL,
        type=QuestionType.CHOICE,
        options=("yes", ALWAYS_HERE, "no"),
        binds_to=BINDING,
    )
    waiting = transitions.ask_owner(working(), question).conversation
    yes = transitions.answer(waiting, question.id, "yes", now=NINE)
    always = transitions.answer(waiting, question.id, ALWAYS_HERE, now=NINE)
    no = transitions.answer(waiting, question.id, "no", now=NINE)

    assert [grant.call is None for grant in yes.grants] == [False]
    assert [(grant.call, grant.words) for grant in always.grants] == [(None, ("git push",))]
    assert (no.grants, [item.content["answer"] for item in no.inbox]) == ((), ["no"])


def test_work_that_cannot_go_on_is_tried_again_skipped_or_stopped_as_its_user_says() -> None:
    waiting = with_tool_failure(working())
    question = waiting.questions[0].id
    again = transitions.answer(waiting, question, "try again", now=NINE + HOUR)
    skipped = transitions.answer(waiting, question, "skip", now=NINE + 30 * HOUR)
    stopped = transitions.answer(waiting, question, "stop", now=NINE + HOUR)

    assert (again.conversation.next_run_at, len(again.inbox)) == (NINE + HOUR, 1)
    assert skipped.conversation.next_run_at == NINE + 48 * HOUR
    assert ([s.gap.count for s in skipped.skipped], skipped.inbox) == ([1], ())
    assert stopped.conversation.ended_as is EndedAs.CANCELLED


def test_skipping_does_not_wake_work_that_something_paused() -> None:
    waiting = transitions.pause_for_allowance(with_tool_failure(working())).conversation
    question = waiting.questions[0].id
    step = transitions.answer(waiting, question, "skip", now=NINE + HOUR)

    assert (step.conversation.status, step.conversation.next_run_at) == (Status.ACTIVE, None)


def test_the_answer_stop_without_work_just_closes_the_question() -> None:
    question = make.question(
        purpose=Purpose.ALLOWANCE, type=QuestionType.CHOICE, options=("raise", "stop")
    )
    asked = transitions.ask_owner(make.conversation(), question).conversation
    step = transitions.answer(asked, question.id, "stop", now=NOON)

    assert (step.conversation.status, step.conversation.ended_as) == (Status.ACTIVE, None)


def test_raising_an_allowance_resumes_the_work() -> None:
    question = make.question(
        purpose=Purpose.ALLOWANCE, type=QuestionType.CHOICE, options=("raise", "stop")
    )
    waiting = transitions.ask_owner(working(), question).conversation
    step = transitions.answer(waiting, question.id, "raise", now=NINE + HOUR)

    assert (step.conversation.status, step.inbox) == (Status.BACKGROUND, ())


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
        EndedAs.DISMISSED,
    )


def test_a_proposal_whose_work_is_gone_can_still_be_approved() -> None:
    waiting = replace(proposed(), schedule=None)
    step = transitions.answer(waiting, waiting.questions[0].id, "yes", now=NOON)

    assert step.conversation.status is Status.ACTIVE


def test_a_yes_makes_a_marked_brief_the_owners_and_leaves_a_session_marked() -> None:
    task = transitions.propose(make.OTHER, make.USER, BRIEF, why="", now=NINE).conversation
    marked = mark_brief(task, outside=True)
    question = marked.questions[0]
    talked = replace(marked, session=Session("claude", "s"))

    approved = transitions.answer(marked, question.id, "yes", now=NINE).conversation
    with_session = transitions.answer(talked, question.id, "yes", now=NINE).conversation

    assert (approved.state.outside, approved.outside_read) == (frozenset(), False)
    assert (with_session.state.outside, with_session.outside_read) == (frozenset(), True)
