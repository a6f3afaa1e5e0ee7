"""Valid questions, the answers they accept, and reminders."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.requirements import requirement
from support.stage import make
from support.stage.make import NOON

from backburner.core.errors import BadAnswer, BadRequest, TooLarge
from backburner.core.question import (
    CONSENT,
    FIRST_REMINDER,
    MAX_ANSWER_CHARS,
    NewQuestion,
    Purpose,
    Question,
    QuestionType,
    accept_answer,
    is_exact_answer,
    match_chat_message,
    new_question,
    postponed_until,
    remind,
    snooze,
)

CONFIRMATION, CHOICE, INPUT = QuestionType
DAY = timedelta(days=1)
WHICH = make.question(type=CHOICE, prompt="Which one?", options=("The first", "The second"))
WHERE = make.question(type=INPUT, prompt="Where?", options=())


@pytest.mark.parametrize(
    ("options", "text", "meant"),
    [
        (("red", "blue"), "2", "blue"),
        (("red", "blue"), " 1. ", "red"),
        (("red", "blue"), "3", None),
        (("red", "blue"), "0", None),
        (("red", "blue"), "1" * 30, None),
        (("red", "blue"), "two", None),
        # Which is meant cannot be known.
        (("10", "1"), "2", None),
        (("10", "1"), "1", "1"),
    ],
)
def test_a_choice_is_answered_by_number(
    options: tuple[str, ...], text: str, meant: str | None
) -> None:
    question = make.question(type=CHOICE, options=options)

    assert match_chat_message(question, text) == meant
    assert match_chat_message(make.question(options=("yes", "no")), "1") is None


@requirement("A-question")
def test_a_question_has_a_type_a_prompt_and_options_and_names_them_when_it_refuses() -> None:
    asked = new_question(CHOICE, "Which one?", ("this", "that"))
    question = make.question(type=asked.type, prompt=asked.prompt, options=asked.options)

    assert asked == NewQuestion(type=CHOICE, prompt="Which one?", options=("this", "that"))
    assert new_question(CONFIRMATION, "Go on?") == NewQuestion(
        type=CONFIRMATION, prompt="Go on?", options=("yes", "no")
    )
    assert new_question(INPUT, "Where?") == NewQuestion(type=INPUT, prompt="Where?")
    assert accept_answer(question, "that") == "that"
    with pytest.raises(
        BadAnswer, match=r"'neither' is not a valid answer.* one of: this, that."
    ) as no:
        accept_answer(question, "neither")
    assert no.value.options == ("this", "that")


UNASKABLE = [
    (INPUT, "  ", (), "The question is empty"),
    (INPUT, "x" * 8_001, (), "The question has 8,001 characters"),
    (INPUT, "Where?", ("here",), "type input takes no options"),
    (CHOICE, "Which?", (), "type choice needs 2 to 25 options"),
    (CHOICE, "Which?", ("one",), "type choice needs 2 to 25 options"),
    (CHOICE, "Which?", tuple("abcdefghijklmnopqrstuvwxyz"), "type choice needs 2 to 25 options"),
    (CHOICE, "Which?", ("one", ""), "different from each other and not empty"),
    (CHOICE, "Which?", ("one", " \n"), "different from each other and not empty"),
    (CHOICE, "Which?", ("one", "One."), "different from each other and not empty"),
    (CHOICE, "Which?", ("one", "x" * 201), "An option has 201 characters"),
    (CHOICE, "Which?", ("one", "\0"), "An option has invalid characters"),
    (CONFIRMATION, "Go on?", ("ok", "no"), "only the options yes and no"),
    (CONFIRMATION, "Go on?", ("yes",), "only the options yes and no"),
]


@pytest.mark.parametrize(("kind", "prompt", "options", "fault"), UNASKABLE)
def test_a_question_that_cannot_be_answered_is_refused(
    kind: QuestionType, prompt: str, options: tuple[str, ...], fault: str
) -> None:
    with pytest.raises(BadRequest, match=fault):
        new_question(kind, prompt, options)


@pytest.mark.parametrize("options", [("yes", "no"), ("No", "Yes")])
def test_a_confirmation_may_name_its_options(options: tuple[str, ...]) -> None:
    assert new_question(CONFIRMATION, "Go on?", options).options == options


@pytest.mark.parametrize("default", ["no", "N", "No!"])
def test_a_question_expires_into_an_answer_it_would_take(default: str) -> None:
    asked = new_question(CONFIRMATION, "Go on?", default=default, expires_in=DAY)

    assert (asked.default, asked.expires_in) == (default, DAY)


@pytest.mark.parametrize(
    ("default", "expires_in", "fault"),
    [
        ("no", None, "default and an expiry go together"),
        (None, DAY, "default and an expiry go together"),
        ("no", timedelta(minutes=9), "10 minutes to 366 days"),
        ("no", timedelta(days=367), "10 minutes to 366 days"),
        ("maybe", DAY, "The default is not a valid answer"),
    ],
)
def test_an_expiry_without_a_fitting_default_is_refused(
    default: str | None, expires_in: timedelta | None, fault: str
) -> None:
    with pytest.raises(BadRequest, match=fault):
        new_question(CONFIRMATION, "Go on?", default=default, expires_in=expires_in)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("yes", "yes"),
        (" YES! ", "yes"),
        ("y", "yes"),
        ("Y.", "yes"),
        ("no.", "no"),
        ("N", "no"),
    ],
)
def test_a_confirmation_is_answered_in_many_ways(said: str, meant: str) -> None:
    assert accept_answer(make.question(), said) == meant


@pytest.mark.parametrize("said", ["yes please", "maybe", "yesno", "ye s", "1", "true", "ok"])
def test_an_answer_that_is_not_clearly_yes_or_no_is_refused(said: str) -> None:
    with pytest.raises(BadAnswer, match=r"Answer with one of: yes, no\."):
        accept_answer(make.question(), said)


@pytest.mark.parametrize("said", ["The second", "the  second", "THE SECOND!", "\tthe second. "])
def test_an_option_is_meant_whatever_its_case_and_spacing(said: str) -> None:
    assert accept_answer(WHICH, said) == "The second"


def test_an_option_keeps_its_own_meaning_of_y() -> None:
    axes = make.question(type=CHOICE, options=("x", "y"))

    assert accept_answer(axes, "Y") == "y"


@pytest.mark.parametrize("said", [".", "..", "!", "a.", " indented\n"])
def test_an_open_question_takes_any_words_as_they_are(said: str) -> None:
    assert accept_answer(WHERE, said) == said


def test_options_may_be_punctuation() -> None:
    folder = make.question(type=CHOICE, options=new_question(CHOICE, "Which?", (".", "..")).options)

    assert accept_answer(folder, "..") == ".."


@pytest.mark.parametrize("blank", ["", "  ", "\n"])
def test_an_empty_answer_is_refused_as_such(blank: str) -> None:
    with pytest.raises(BadAnswer, match=r"The answer is empty\. Answer with one of: yes, no\."):
        accept_answer(make.question(), blank)
    with pytest.raises(BadAnswer, match=r"The answer is empty\. Answer with any text\."):
        accept_answer(WHERE, blank)


def test_an_answer_has_a_limit() -> None:
    with pytest.raises(TooLarge, match="The answer has 32,001 characters"):
        accept_answer(WHERE, "x" * (MAX_ANSWER_CHARS + 1))


@requirement("A-question")
def test_chat_text_answers_a_question_that_it_fits_and_is_talk_otherwise() -> None:
    assert match_chat_message(WHERE, "In Rome.") == "In Rome."
    assert match_chat_message(WHICH, "the first") == "The first"
    assert match_chat_message(WHICH, "What is the difference?") is None
    assert match_chat_message(make.question(), "y") == "yes"
    assert match_chat_message(WHERE, " ") is None


def test_a_message_too_long_for_an_answer_is_talk() -> None:
    assert match_chat_message(WHERE, "x" * MAX_ANSWER_CHARS) is not None
    assert match_chat_message(WHERE, "x" * (MAX_ANSWER_CHARS + 1)) is None


@pytest.mark.parametrize("purpose", Purpose)
def test_a_chat_message_does_not_answer_what_needs_an_explicit_answer(
    purpose: Purpose,
) -> None:
    asked = make.question(purpose=purpose)

    assert (match_chat_message(asked, "yes") is None) == (purpose in CONSENT)
    assert accept_answer(asked, "yes") == "yes"


def test_proposals_approvals_and_allowances_need_an_explicit_answer() -> None:
    given = {
        Purpose.PROPOSAL,
        Purpose.CHANGE,
        Purpose.APPROVAL,
        Purpose.ALLOWANCE,
        Purpose.IN_DOUBT,
        Purpose.INPUT,
    }
    assert given == CONSENT


@given(st.sampled_from([make.question(), WHICH, WHERE]), st.text())
def test_a_chat_message_answers_nothing_that_an_explicit_answer_would_not(
    question: Question, text: str
) -> None:
    meant = match_chat_message(question, text)

    assert meant is None or "\0" in text or accept_answer(question, text) == meant


def test_each_reminder_comes_twice_as_late_as_the_one_before() -> None:
    asked = make.question(remind_at=NOON)
    pauses = []
    for _ in range(7):
        asked = remind(asked, now=NOON)
        assert asked.remind_at is not None
        pauses.append((asked.remind_at - NOON).days)

    assert pauses == [2, 4, 8, 16, 32, 32, 32]
    assert asked.reminders == 7


def test_reminders_are_counted_anew_after_a_question_was_snoozed() -> None:
    later = snooze(make.question(reminders=2), until=NOON + DAY, now=NOON)

    assert (later.remind_at, later.reminders) == (NOON + DAY, 0)


def test_a_question_is_postponed_from_when_it_is_snoozed_until_it_asks_again() -> None:
    asked = make.question(asked_at=NOON, remind_at=NOON + FIRST_REMINDER)
    then = NOON + 3 * DAY
    snoozed = snooze(remind(asked, now=NOON + DAY), until=then, now=NOON + DAY)

    assert postponed_until(replace(asked, remind_at=None), now=NOON) is None
    assert postponed_until(asked, now=NOON) is None
    assert postponed_until(snoozed, now=NOON + DAY) == then
    assert postponed_until(snoozed, now=then) is None
    assert postponed_until(remind(snoozed, now=then), now=then) is None


@pytest.mark.parametrize("until", [NOON, NOON - DAY])
def test_a_question_can_only_be_snoozed_until_a_later_time(until: datetime) -> None:
    with pytest.raises(BadRequest, match="later time"):
        snooze(make.question(), until=until, now=NOON)


def test_only_yes_and_no_alone_decide_in_a_chat() -> None:
    assert all(map(is_exact_answer, ("yes", " No\n", "YES")))
    assert not any(map(is_exact_answer, ("y", "yes!", "yes please", "", "yes no")))
