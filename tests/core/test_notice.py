"""When the user is notified of the end of a run, and which results count as changed."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.requirements import requirement
from support.stage import make

from backburner.core.conversation import Kind, Notify
from backburner.core.ids import QuestionId
from backburner.core.notice import (
    Notice,
    NoticeKind,
    find_address,
    of_outage,
    of_outage_end,
    of_passing_failure,
    of_question,
    of_requested_run,
    of_result,
    of_stop,
    point_to,
    result_hash,
)
from backburner.core.outcome import Complete

GREEN = Complete(message="All green.", result={"ci": "green"})
RED = Complete(message="It broke.", result={"ci": "red"})


@requirement("B-notify")
@pytest.mark.parametrize(
    ("notify", "when_new", "when_same", "when_failed"),
    [
        (Notify.ALWAYS, True, True, True),
        (Notify.ON_CHANGE, True, False, False),
        (Notify.ON_FAILURE, False, False, True),
        (Notify.NEVER, False, False, False),
    ],
)
def test_the_user_is_notified_by_their_policy(
    notify: Notify, *, when_new: bool, when_same: bool, when_failed: bool
) -> None:
    known = make.conversation(notify=notify, last_result_hash=result_hash(GREEN))
    said = Notice(NoticeKind.RESULT, "It broke.")

    assert of_result(known, RED) == (said if when_new else None)
    assert (of_result(known, GREEN) is not None) == when_same
    assert (of_passing_failure(known, make.failure()) is not None) == when_failed


@requirement("B-notify")
def test_the_user_is_notified_of_questions_and_stops_under_every_policy() -> None:
    asked = make.question(prompt="Which one?", options=("left", "right"))

    assert of_question(asked, "There are two.") == Notice(
        NoticeKind.QUESTION,
        "Which one?",
        asked.id,
        message="There are two.",
        options=("left", "right"),
    )
    assert of_stop("It is paused.") == Notice(NoticeKind.STOPPED, "It is paused.")


def test_a_notice_is_composed_with_its_message_and_its_options() -> None:
    plain = Notice(NoticeKind.RESULT, "All green.")
    asked = of_question(make.question(prompt="Which?", options=("a", "b")), "There are two.")

    assert plain.compose() == "All green."
    assert asked.compose() == "There are two.\n\nWhich?\n\nOptions: a / b"


def test_a_notice_opens_its_question_or_else_its_conversation() -> None:
    assert find_address(make.CONVERSATION, None) == f"/c/{make.CONVERSATION}"
    assert find_address(make.CONVERSATION, QuestionId("q_1")) == "/q/q_1"


def test_a_notice_names_a_command_where_the_server_has_no_known_address() -> None:
    conversation, question = "/c/c_1", find_address(make.CONVERSATION, QuestionId("q_1"))

    assert point_to(question, "https://bb.example") == "https://bb.example/q/q_1"
    assert point_to(conversation, "") == "To read on: `backburner conversations c_1`."
    assert point_to(question, "") == "To see and answer it: `backburner questions q_1`."


def test_the_first_result_is_a_change() -> None:
    assert of_result(make.conversation(notify=Notify.ON_CHANGE), GREEN) is not None


@pytest.mark.parametrize("notify", Notify)
def test_a_run_with_nothing_to_report_gives_no_notice(notify: Notify) -> None:
    quiet = Complete(result={"ci": "red"})

    assert of_result(make.conversation(notify=notify), quiet) is None


def test_a_passing_failure_says_what_happened() -> None:
    output = of_passing_failure(make.conversation(notify=Notify.ALWAYS), make.failure())

    assert output == Notice(
        NoticeKind.FAILURE, "A run failed and will be retried: The model was overloaded."
    )


def test_only_the_result_is_compared_where_there_is_one() -> None:
    reworded = Complete(message="Everything passes.", result={"ci": "green"})

    assert result_hash(reworded) == result_hash(GREEN)
    assert result_hash(RED) != result_hash(Complete(message="It broke.", result={"ci": "grey"}))


def test_without_a_result_messages_are_compared_ignoring_case_and_spacing() -> None:
    assert result_hash(Complete(message="All  green.\n")) == result_hash(
        Complete(message="all GREEN.")
    )
    assert result_hash(Complete(message="All green.")) != result_hash(Complete(message="All red."))


def test_a_run_without_result_and_message_has_no_hash() -> None:
    assert result_hash(Complete()) is None


@pytest.mark.parametrize("result", [False, 0, "", [], {}])
def test_a_result_of_nothing_is_compared_like_any_other(result: object) -> None:
    assert result_hash(Complete(result=result)) is not None
    assert result_hash(Complete(result=result)) != result_hash(Complete(result=[result]))


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.text(max_size=3), json_values, min_size=1, max_size=4))
def test_the_order_in_which_a_result_is_written_is_no_change(result: dict[str, Any]) -> None:
    turned = dict(reversed(result.items()))

    assert result_hash(Complete(result=turned)) == result_hash(Complete(result=result))


def test_an_outage_is_reported_with_what_is_wrong_and_what_happens() -> None:
    began, ended = of_outage("The model is overloaded."), of_outage_end()

    assert (began.kind, ended.kind) == (NoticeKind.FAILURE, NoticeKind.RESULT)
    assert began.text.startswith("The model is overloaded. Background work that is due waits")
    assert "available again" in ended.text


def test_a_run_that_somebody_asked_for_is_told_when_it_is_given_up() -> None:
    told = of_requested_run(make.failure(message="It is overloaded."))

    assert told == Notice(NoticeKind.FAILURE, "A background run failed: It is overloaded.")


def test_a_job_that_ends_without_a_message_is_told_with_its_result() -> None:
    job = make.conversation(kind=Kind.JOB)
    told = of_result(job, Complete(result={"files": 7}))
    done = of_result(job, Complete())

    assert told is not None
    assert told.text == '{"files":7}'
    assert done is not None
    assert done.text == "It is done."
    assert of_result(replace(job, notify=Notify.NEVER), Complete()) is None
    assert of_result(make.conversation(), Complete(result=7)) is None
