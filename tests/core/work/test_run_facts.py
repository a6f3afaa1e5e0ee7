"""A run says what it came from and how it ended, in words for its user."""

from datetime import timedelta
from typing import Any

import pytest
from support.stage import make
from support.stage.make import NOON, OTHER

from backburner.core.ids import CallId, QuestionId, RunId
from backburner.core.question import Purpose
from backburner.core.run import FailureKind, ItemKind, RunKind, RunStatus, SkippedSlots, SkipReason
from backburner.core.schedule import Gap
from backburner.core.work import run_facts
from backburner.core.work.activity import CallSummary, RunActivity
from backburner.core.work.run_facts import CauseKind, OutcomeKind, RunCause, RunMeasure, RunMedians
from backburner.core.work.timeline import AskedQuestion

GAP = SkippedSlots(Gap(2, NOON, NOON), SkipReason.MISSED)
EARLIER = make.run(id=RunId("r_earlier"), status=RunStatus.SUCCESS)
FAILED = make.run(id=RunId("r_failed"), status=RunStatus.FAILURE)
SKIPPED = make.run(id=RunId("r_skipped"), status=RunStatus.SKIPPED, skipped=GAP)
REPLY = make.run(id=RunId("r_reply"), kind=RunKind.REPLY, status=RunStatus.FAILURE)


def asked(**changes: Any) -> AskedQuestion:
    usual: dict[str, Any] = {"id": QuestionId("q"), "purpose": Purpose.QUESTION, "answer": None}
    usual |= {"prompt": "Which\n branch?", "asked_at": NOON, "closed_at": None}
    return AskedQuestion(**{**usual, **changes})


def causes(*items: Any, run: Any = None, before: Any = None) -> list[tuple[CauseKind, str]]:
    found = run_facts.find_causes(run or make.run(), items, before)
    return [(one.kind, run_facts.describe_cause(one, zone="Europe/Berlin")) for one in found]


def test_a_due_slot_starts_a_run_and_what_waits_goes_along() -> None:
    said = make.item(content={"text": "Also\n that.", "message_id": "m_1"})

    assert causes(said, run=make.run(slot_at=NOON)) == [
        (CauseKind.SCHEDULE, "The schedule: Mon 16 Nov 2026, 13:00 CET"),
        (CauseKind.MESSAGE, "Your message: Also that."),
    ]
    assert causes(run=SKIPPED)[0][0] is CauseKind.SCHEDULE
    assert run_facts.describe_cause(RunCause(kind=CauseKind.SCHEDULE), zone="UTC")


@pytest.mark.parametrize(
    ("kind", "content", "words"),
    [
        (
            ItemKind.ANSWER,
            {"answer": "main", "prompt": "Which?", "question_id": "q"},
            "Your answer: main",
        ),
        (
            ItemKind.JOB_RESULT,
            {"title": "Count", "conversation_id": OTHER},
            "The result of the job Count",
        ),
        (ItemKind.RUN_NOW, {}, "You asked for a run now"),
        (ItemKind.EVENT, {"source": "after"}, "The work that it comes after has ended"),
        (ItemKind.EVENT, {}, "An event"),
    ],
)
def test_whatever_is_in_the_inbox_starts_a_run(
    kind: ItemKind, content: dict[str, Any], words: str
) -> None:
    ((found, said),) = causes(make.item(kind=kind, content=content))

    assert (found.value, said) == (kind.value, words)


def test_without_a_reason_of_its_own_a_run_follows_the_one_before() -> None:
    retry = (CauseKind.RETRY, "Another try, after the run before it failed")
    assert causes(before=FAILED) == [retry]
    assert causes(before=EARLIER) == [(CauseKind.FOLLOW_UP, "The run before it was not done")]
    assert causes() == [(CauseKind.START, "It was to begin at once")]


def test_of_a_reply_without_its_message_nothing_is_known() -> None:
    assert causes(run=REPLY, before=make.run(kind=RunKind.REPLY, status=RunStatus.SUCCESS)) == []
    assert causes(run=REPLY) == []


@pytest.mark.parametrize(
    ("changes", "ending", "text"),
    [
        ({"status": RunStatus.RUNNING}, OutcomeKind.RUNNING, "It is at work: thinking."),
        ({"status": RunStatus.SUCCESS, "result": "All\ngreen."}, OutcomeKind.DONE, "All green."),
        ({"status": RunStatus.SUCCESS}, OutcomeKind.DONE, "Done; nothing to report."),
        ({"status": RunStatus.SUCCESS, "kind": RunKind.REPLY}, OutcomeKind.DONE, "It answered."),
        ({"status": RunStatus.CANCELLED}, OutcomeKind.STOPPED, "It was stopped."),
        ({"status": RunStatus.FAILURE}, OutcomeKind.FAILED, "It failed."),
        ({"status": RunStatus.SKIPPED}, OutcomeKind.SKIPPED, "It did not run."),
        (
            {"status": RunStatus.SKIPPED, "skipped": GAP},
            OutcomeKind.SKIPPED,
            "It did not run: machine off or busy, or model unavailable (2 times).",
        ),
    ],
)
def test_how_a_run_ended_is_a_word_and_a_sentence(
    changes: dict[str, Any], ending: OutcomeKind, text: str
) -> None:
    outcome = run_facts.describe_outcome(make.run(**changes), (), None)

    assert (outcome.ending, outcome.text, outcome.what_to_do) == (ending, text, None)


def test_a_run_in_progress_says_what_it_is_doing() -> None:
    call = CallSummary(
        id=CallId("t"),
        tool="look",
        summary="",
        state="started",
        failed=False,
        started_at=NOON,
        ended_at=None,
    )
    running = RunActivity(
        run_id=make.RUN,
        kind=RunKind.BACKGROUND,
        started_at=NOON,
        call=call,
        calls=1,
        drafted_at=None,
    )

    assert run_facts.describe_outcome(make.run(), (), running).text == "It is at work: look."


def test_a_run_that_ended_with_a_question_asked() -> None:
    outcome = run_facts.describe_outcome(make.run(status=RunStatus.SUCCESS), [asked()], None)

    assert (outcome.ending, outcome.text) == (OutcomeKind.ASKED, "It asked: Which branch?")


@pytest.mark.parametrize("kind", FailureKind)
def test_every_failure_says_what_to_do(kind: FailureKind) -> None:
    failed = make.run(status=RunStatus.FAILURE, failure=make.failure(kind))

    outcome = run_facts.describe_outcome(failed, (), None)

    assert (outcome.ending, outcome.text) == (OutcomeKind.FAILED, "The model was overloaded.")
    assert outcome.what_to_do


def test_where_an_allowance_is_used_up_its_question_is_to_be_answered() -> None:
    failed = make.run(status=RunStatus.FAILURE, failure=make.failure())
    question = asked(purpose=Purpose.ALLOWANCE)

    outcome = run_facts.describe_outcome(failed, [question], None)

    assert outcome.what_to_do == "Answer the question about the allowance."


@pytest.mark.parametrize(
    ("changes", "questions", "text"),
    [
        ({}, [asked()], "It waits for your answer."),
        ({}, [asked(closed_at=NOON)], "It waits for its turn."),
        ({"failure": make.failure()}, [], "It waits: The model was overloaded."),
        ({"waits_for_user": True}, [], "It waits for you."),
    ],
)
def test_a_run_that_was_handed_back_says_what_it_waits_for(
    changes: dict[str, Any], questions: list[AskedQuestion], text: str
) -> None:
    waits = make.run(status=RunStatus.QUEUED, **changes)

    outcome = run_facts.describe_outcome(waits, questions, None)

    assert (outcome.ending, outcome.text) == (OutcomeKind.WAITING, text)


def test_a_run_that_waits_for_jobs_says_how_many_are_done() -> None:
    waits = make.run(status=RunStatus.QUEUED)

    outcome = run_facts.describe_outcome(waits, (), None, jobs=(2, 5))

    assert outcome.text == "It waits for its jobs: 2 of 5 done."


def test_tries_are_the_failed_runs_of_the_kind_since_the_last_good_one() -> None:
    first = make.run(id=RunId("r_first"), status=RunStatus.FAILURE)

    tries = run_facts.find_tries(make.run(), [FAILED, REPLY, SKIPPED, first, EARLIER, FAILED])

    assert [run.id for run in tries] == ["r_first", "r_failed"]
    assert run_facts.find_tries(make.run(), [FAILED]) == [FAILED]


def test_the_run_before_and_the_next_try_are_of_the_same_kind() -> None:
    assert run_facts.find_before(make.run(), [REPLY, SKIPPED, EARLIER]) == EARLIER
    assert run_facts.find_before(make.run(), []) is None
    assert run_facts.find_next_try(FAILED, [REPLY, SKIPPED, EARLIER]) == EARLIER
    assert run_facts.find_next_try(EARLIER, [FAILED]) is None


def test_medians_are_of_runs_that_ended() -> None:
    def measure(status: RunStatus, number: int) -> RunMeasure:
        return RunMeasure(make.run(status=status), timedelta(seconds=number), number, 10 * number)

    measures = [
        measure(RunStatus.SUCCESS, 1),
        measure(RunStatus.FAILURE, 3),
        measure(RunStatus.SUCCESS, 8),
        measure(RunStatus.RUNNING, 100),
    ]

    assert run_facts.take_medians(measures) == RunMedians(timedelta(seconds=3), 3, 30)
    assert run_facts.take_medians(measures[3:]) is None


def test_what_is_quoted_is_one_short_line() -> None:
    assert run_facts.shorten("a\n  b") == "a b"
    assert len(run_facts.shorten("x" * 999)) == run_facts.MAX_QUOTED_CHARS
