"""The state, title and limits of a conversation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.stage import make

from backburner.core.conversation import (
    MAX_TITLE_CHARS,
    State,
    Status,
    Use,
    Uses,
    advance_state,
    check_state,
    common_uses,
    drop_outside,
    make_title,
    mark_brief,
    may_contain_outside_text,
)
from backburner.core.errors import BadRequest, TooLarge
from backburner.core.schedule import Cron, Immediate
from backburner.core.validation import MAX_MESSAGE_CHARS, check_message

LARGE = {"page": "x" * 20_000}


def test_a_new_conversation_is_an_idle_chat() -> None:
    chat = make.conversation()

    assert chat.status is Status.ACTIVE
    assert chat.pending_question is None
    assert not chat.is_recurring
    assert not chat.has_work


@pytest.mark.parametrize(
    ("uses", "may"), [(None, True), (frozenset(Use), True), (frozenset[Use](), False)]
)
def test_a_conversation_uses_everything_unless_it_is_restricted(uses: Uses, *, may: bool) -> None:
    assert make.conversation(uses=uses).may_use(Use.MEMORIES) is may


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (None, None, None),
        (None, frozenset(Use), frozenset(Use)),
        (frozenset(Use), None, frozenset(Use)),
        (frozenset(Use), frozenset[Use](), frozenset[Use]()),
        (frozenset[Use](), None, frozenset[Use]()),
    ],
)
def test_what_two_restrictions_leave(one: Uses, other: Uses, both: Uses) -> None:
    assert common_uses(one, other) == both


def test_the_oldest_open_question_is_the_one_shown() -> None:
    first, second = make.question(prompt="One?"), make.question(prompt="Two?")

    assert make.conversation(questions=(first, second)).pending_question == first


def test_work_recurs_if_its_schedule_does() -> None:
    assert make.conversation(schedule=Cron("0 9 * * *", "UTC")).is_recurring
    assert not make.conversation(schedule=Immediate()).is_recurring


def test_a_conversation_with_a_schedule_or_a_brief_has_work() -> None:
    assert make.conversation(schedule=Immediate()).has_work
    assert make.conversation(state=State(context={"prompt": "Watch CI."})).has_work


def test_a_state_update_is_merged_by_key_and_changes_nothing_else() -> None:
    state = State({"prompt": "Read."}, step="begun", data={"page": 1, "seen": {"a": 1}})

    moved = advance_state(state, {"page": 2, "seen": {"b": 2}, "gone": None}, "reading")

    assert moved.data == {"page": 2, "seen": {"b": 2}, "gone": None}
    assert moved.step == "reading"
    assert moved.context == {"prompt": "Read."}
    assert state.data == {"page": 1, "seen": {"a": 1}}


@pytest.mark.parametrize("step", [None, ""])
def test_the_step_stays_when_a_run_does_not_change_it(step: str | None) -> None:
    assert advance_state(State(step="begun"), {}, step).step == "begun"


def test_a_state_that_would_grow_beyond_its_limit_is_refused() -> None:
    grown = advance_state(State(), LARGE, None)

    with pytest.raises(TooLarge, match="The state of the work has 40,0"):
        advance_state(grown, {"other": "x" * 20_000}, None)
    assert advance_state(grown, {"page": "y" * 20_000}, None).data == {"page": "y" * 20_000}


def test_a_step_beyond_its_limit_is_refused() -> None:
    with pytest.raises(TooLarge, match="The step has 2,001 characters"):
        advance_state(State(), {}, "x" * 2_001)


def test_a_brief_has_to_be_plain_json_of_limited_size() -> None:
    check_state(State({"prompt": "Watch CI."}))

    with pytest.raises(TooLarge, match="The description of the work has"):
        check_state(State({**LARGE, "more": LARGE}))
    with pytest.raises(BadRequest, match="The description of the work has a set"):
        check_state(State({"tools": {1}}))


def test_a_state_that_is_given_as_a_whole_is_held_to_the_same_limits() -> None:
    with pytest.raises(TooLarge, match="The step has"):
        check_state(State(step="x" * 2_001))
    with pytest.raises(TooLarge, match="The state of the work has"):
        check_state(State(data={**LARGE, "more": LARGE}))


def test_what_a_marked_session_writes_into_the_state_is_marked_until_another_rewrites_it() -> None:
    state = advance_state(State(data={"own": 1}), {"mail": 2, "list": 3}, "Read.", outside=True)
    assert state.outside == {"data.mail", "data.list", "step"}
    assert state.is_outside("mail")
    assert not state.is_outside("own")

    state = advance_state(state, {"mail": 4}, None)

    assert state.outside == {"data.list", "step"}


def test_marked_data_and_progress_are_dropped_and_the_description_stays() -> None:
    context = {"prompt": "Do it."}
    state = State(context, "Read.", {"own": 1, "mail": 2}, frozenset({"context", "data.mail"}))

    assert drop_outside(state) == State(context, "Read.", {"own": 1}, frozenset({"context"}))
    marked = State(context, "Read.", {}, frozenset({"step"}))
    assert drop_outside(marked) == State(context)


def test_a_brief_of_a_marked_session_is_marked() -> None:
    job = make.conversation()

    assert mark_brief(job, outside=False) == job
    assert not may_contain_outside_text(job)
    marked = mark_brief(job, outside=True)
    assert (set(marked.state.outside), marked.outside_read) == ({"context"}, True)
    assert may_contain_outside_text(marked)


def test_a_message_has_a_limit() -> None:
    assert check_message("x" * MAX_MESSAGE_CHARS) == "x" * MAX_MESSAGE_CHARS
    with pytest.raises(TooLarge, match="The message has 100,001 characters"):
        check_message("x" * (MAX_MESSAGE_CHARS + 1))


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("Watch CI on main.", "Watch CI on main."),
        ("\n  Watch CI\n\nand tell me if it breaks", "Watch CI"),
        ("", ""),
        (" \n ", ""),
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 60 + "…"),
        ("word " * 20, "word word word word word word word word word word word word…"),
        ("a, " * 30, "a, " * 19 + "a…"),
    ],
)
def test_a_title_is_the_first_line_cut_at_a_word(said: str, title: str) -> None:
    assert make_title(said) == title


@given(st.text())
def test_a_title_always_fits(said: str) -> None:
    assert len(make_title(said)) <= 61 <= MAX_TITLE_CHARS
    assert make_title(said) == make_title(said).strip()
