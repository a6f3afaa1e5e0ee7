"""Valid outcomes, and the errors for invalid ones."""

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cases.examples import examples
from support.requirements import requirement

from backburner.core.errors import BadOutcome
from backburner.core.outcome import (
    OUTCOME_SCHEMA,
    Complete,
    Continue,
    NeedsInput,
    parse_outcome,
    summarize,
)
from backburner.core.prompt import for_repair
from backburner.core.question import NewQuestion, QuestionType

ASKED = {"type": "choice", "prompt": "Which one?", "options": ["this", "that"]}
NEEDS_INPUT = {"needs_input": True, "message": "I need to know.", "question": ASKED}

words = st.text('aé🚀"\\ \n', max_size=8)
facts = st.dictionaries(
    words,
    st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | words, st.lists),
    max_size=3,
)
shared = {"message": words, "state_update": facts, "next_step": words}
durations = st.sampled_from(["20m", "1h", "90s", "24h", "1.5 hours"])
questions: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries({"type": st.just("confirmation"), "prompt": st.just("Go on?")}),
    st.fixed_dictionaries(
        {"type": st.just("input"), "prompt": st.just("Where?")},
        optional={"options": st.just([])},
    ),
    st.just(ASKED),
    st.just({**ASKED, "default": "that", "expires_in": "12h"}),
)
valid = st.one_of(
    st.fixed_dictionaries(
        {
            "needs_input": st.just(value=True),
            "message": st.just("I need to know."),
            "question": questions,
        },
        optional={"state_update": facts, "next_step": words, "complete": st.just(value=False)},
    ),
    st.fixed_dictionaries(
        {"continue": st.just(value=True)}, optional={**shared, "again_in": durations}
    ),
    st.fixed_dictionaries(
        {"complete": st.just(value=True)},
        optional={**shared, "result": facts | words | st.booleans(), "final": st.booleans()},
    ),
)


@requirement("A-prompt-format")
def test_a_run_that_needs_input_says_what_it_wants_to_know() -> None:
    said = parse_outcome(
        {**NEEDS_INPUT, "state_update": {"seen": 3}, "next_step": "waiting for a choice"}
    )

    assert said == NeedsInput(
        message="I need to know.",
        question=NewQuestion(
            type=QuestionType.CHOICE, prompt="Which one?", options=("this", "that")
        ),
        state_update={"seen": 3},
        next_step="waiting for a choice",
    )


@requirement("A-prompt-format")
def test_a_run_that_goes_on_may_say_when_it_wants_to_run_again() -> None:
    said = parse_outcome({"continue": True, "message": "Not yet.", "again_in": "20m"})

    assert said == Continue(message="Not yet.", again_in=timedelta(minutes=20))
    assert parse_outcome({"continue": True}) == Continue()


@requirement("A-prompt-format")
def test_a_run_that_is_complete_may_give_its_finding_and_end_recurring_work() -> None:
    said = parse_outcome(
        {"complete": True, "message": "Red.", "result": {"ci": "red"}, "final": True}
    )

    assert said == Complete(message="Red.", result={"ci": "red"}, final=True)
    assert parse_outcome({"complete": True}) == Complete()


def test_a_question_may_expire_into_its_default() -> None:
    asked = {**ASKED, "default": "that", "expires_in": "12h"}

    said = parse_outcome({**NEEDS_INPUT, "question": asked})

    assert isinstance(said, NeedsInput)
    assert said.question.default == "that"
    assert said.question.expires_in == timedelta(hours=12)


def test_a_confirmation_needs_no_options() -> None:
    asked = {"type": "confirmation", "prompt": "Shall I?"}

    said = parse_outcome({**NEEDS_INPUT, "question": asked})

    assert isinstance(said, NeedsInput)
    assert said.question.options == ("yes", "no")


@pytest.mark.parametrize("blank", ["", " ", "\n\t "])
def test_a_blank_message_or_step_counts_as_none(blank: str) -> None:
    said = parse_outcome({"complete": True, "message": blank, "next_step": blank})

    assert said == Complete()


@pytest.mark.parametrize("result", [False, 0, "", [], {}])
def test_an_empty_result_is_a_result(result: object) -> None:
    said = parse_outcome({"complete": True, "result": result})

    assert isinstance(said, Complete)
    assert said.result == result
    assert said.result is not None


@examples(60)
@given(valid)
def test_an_outcome_reads_the_same_as_object_as_text_and_with_every_gap_a_null(
    said: dict[str, Any],
) -> None:
    filled = dict.fromkeys(OUTCOME_SCHEMA["properties"]) | said

    read = parse_outcome(said)

    assert parse_outcome(json.dumps(said)) == read
    assert parse_outcome(json.dumps(said, ensure_ascii=False, indent=2)) == read
    assert parse_outcome(filled) == read


MALFORMED: list[tuple[object, str]] = [
    # No JSON, or more than that.
    ("", "not JSON (Expecting value: character 0)"),
    ("I am done.", "one JSON object and nothing else"),
    ('{"complete": true', "not JSON"),
    ('```json\n{"complete": true}\n```', "one JSON object and nothing else"),
    ('{"complete": true} I hope this helps!', "Extra data: character 19"),
    ("{'complete': True}", "not JSON"),
    ('\ufeff{"complete": true}', "not JSON"),
    ('{"complete": true, "complete": true}', "duplicate key"),
    ('{"complete": true, "state_update": {"a": 1, "a": 2}}', "Give each key once"),
    ('{"complete": true, "result": NaN}', "has NaN"),
    ('{"complete": true, "result": -Infinity}', "has -Infinity"),
    ('{"complete": true, "result": 1e999}', "not finite"),
    ('{"complete": true, "result": ' + "9" * 5_000 + "}", "too many digits"),
    ("[" * 10_000, "brackets"),
    ('{"complete": true, "message": "' + "x" * 600_000 + '"}', "longer than 524,288"),
    # Not an object, or not a plain one.
    (None, "must be a JSON object"),
    ("null", "must be a JSON object"),
    ("[]", "must be a JSON object"),
    ([{"complete": True}], "must be a JSON object"),
    (b'{"complete": true}', "has a bytes"),
    ({"complete": True, "result": {1: 2}}, "key that is not text"),
    ({"complete": True, "result": {1, 2}}, "has a set"),
    ({"complete": True, "result": 2**63}, "number that is too large"),
    ({"complete": True, "result": float("inf")}, "not finite"),
    ({"complete": True, "result": "\ud800"}, "invalid characters"),
    ({"complete": True, "state_update": {"a\0": 1}}, "invalid characters"),
    ({"complete": True, "result": "x" * 600_000}, "the limit is 524,288"),
    # The verdict.
    ({}, "not none"),
    ({"message": "Done."}, "needs_input, continue, complete must be true"),
    ({"complete": False}, "not none"),
    ({"complete": True, "continue": True}, "not continue and complete"),
    ({"complete": "true"}, "complete must be true or false"),
    ({"complete": 1}, "complete must be true or false"),
    # The fields.
    ({"complete": True, "again_in": "20m"}, "An outcome with complete has no field 'again_in'"),
    ({"continue": True, "final": False}, "An outcome with continue has no field 'final'"),
    ({"continue": True, "question": ASKED}, "Its fields are: again_in, message, next_step"),
    ({"complete": True, "summary": "x"}, "An outcome has no field 'summary'"),
    ({"complete": True, "summary": None}, "An outcome has no field 'summary'"),
    ({"complete": True, "message": 3}, "message must be text, not int"),
    ({"complete": True, "message": ["Done."]}, "message must be text, not list"),
    ({"complete": True, "message": "x" * 100_001}, "message has 100,001 characters"),
    ({"complete": True, "next_step": "x" * 2_001}, "next_step has 2,001 characters"),
    ({"complete": True, "state_update": "x"}, "state_update must be a JSON object"),
    ({"complete": True, "state_update": {"a": "x" * 70_000}}, "state_update has 70,008 bytes"),
    ({"complete": True, "result": "x" * 70_000}, "result has 70,002 bytes"),
    ({"complete": True, "final": "yes"}, "final must be true or false"),
    ({"continue": True, "again_in": 20}, "again_in must be text, not int"),
    ({"continue": True, "again_in": "soon"}, "'soon' is not a duration"),
    ({"continue": True, "again_in": "0.5s"}, "between 1 second and 24 hours"),
    ({"continue": True, "again_in": "25h"}, "between 1 second and 24 hours"),
    # The question.
    ({"needs_input": True, "question": ASKED}, "must have a message"),
    ({"needs_input": True, "message": " ", "question": ASKED}, "must have a message"),
    ({"needs_input": True, "message": "Well?"}, "question must be a JSON object"),
    ({**NEEDS_INPUT, "question": "Which one?"}, "question must be a JSON object"),
    ({**NEEDS_INPUT, "question": {}}, "Use one of: confirmation, choice, input"),
    ({**NEEDS_INPUT, "question": {**ASKED, "type": ["choice"]}}, "no valid type"),
    ({**NEEDS_INPUT, "question": {**ASKED, "prompt": None}}, "prompt must be text"),
    ({**NEEDS_INPUT, "question": {**ASKED, "prompt": " "}}, "The question is empty"),
    ({**NEEDS_INPUT, "question": {**ASKED, "options": "this"}}, "must be a list of texts"),
    ({**NEEDS_INPUT, "question": {**ASKED, "options": ["this", 2]}}, "An option must be text"),
    ({**NEEDS_INPUT, "question": {**ASKED, "options": ["this"]}}, "needs 2 to 25 options"),
    ({**NEEDS_INPUT, "question": {**ASKED, "answers": []}}, "A question has no field 'answers'"),
    ({**NEEDS_INPUT, "question": {**ASKED, "answers": None}}, "A question has no field 'answers'"),
    (
        {**NEEDS_INPUT, "question": {**ASKED, "default": "that"}},
        "A default and an expiry go together",
    ),
    ({**NEEDS_INPUT, "question": {**ASKED, "default": 1}}, "default must be text"),
    ({**NEEDS_INPUT, "question": {**ASKED, "expires_in": "soon"}}, "not a duration"),
]


@requirement("A-prompt-format")
@pytest.mark.parametrize(("said", "fault"), MALFORMED, ids=lambda value: repr(value)[:60])
def test_a_malformed_outcome_is_refused_and_the_fault_is_named(said: object, fault: str) -> None:
    with pytest.raises(BadOutcome) as refused:
        parse_outcome(said)

    assert fault in for_repair(refused.value)


def test_a_refusal_stays_short_however_much_is_wrong() -> None:
    with pytest.raises(BadOutcome) as refused:
        parse_outcome({"x" * 5_000 + str(number): 1 for number in range(50)})

    assert len(str(refused.value)) < 500


def test_the_schema_names_every_field_that_is_taken_and_no_other() -> None:
    used = {
        **NEEDS_INPUT,
        "question": {**ASKED, "default": "that", "expires_in": "12h"},
        "continue": False,
        "complete": False,
        "state_update": {},
        "next_step": "x",
        "again_in": "20m",
        "result": 1,
        "final": True,
    }

    asked_schema = OUTCOME_SCHEMA["properties"]["question"]
    assert used.keys() == OUTCOME_SCHEMA["properties"].keys()
    assert used["question"].keys() == asked_schema["properties"].keys()  # type: ignore[attr-defined]
    assert asked_schema["properties"]["type"]["enum"] == ["confirmation", "choice", "input"]
    assert OUTCOME_SCHEMA["additionalProperties"] is False
    assert asked_schema["additionalProperties"] is False


@pytest.mark.parametrize("field", OUTCOME_SCHEMA["properties"])
def test_every_field_of_the_schema_may_be_null(field: str) -> None:
    assert parse_outcome({field: None, "complete": True}) == Complete()


@pytest.mark.parametrize(
    ("outcome", "summary"),
    [
        (Complete(message="All green.", result="green"), "green"),
        (Complete(message="All green.", result={"ci": 1}), '{"ci":1}'),
        (Complete(message="All green.", result=""), "All green."),
        (Complete(message="All green."), "All green."),
        (Complete(result=False), "false"),
        (Continue(message="Half way."), "Half way."),
        (Continue(), None),
    ],
)
def test_the_summary_of_an_outcome_is_its_result_as_text_or_else_its_message(
    outcome: Complete | Continue, summary: str | None
) -> None:
    assert summarize(outcome) == summary
