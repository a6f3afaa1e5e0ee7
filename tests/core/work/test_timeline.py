"""A run is shown as bars: calls, thinking between them, and waits."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from support.stage import make
from support.stage.make import NOON

from backburner.core.allowance import Amount
from backburner.core.ids import CallId, QuestionId
from backburner.core.question import Purpose
from backburner.core.run import FailureKind, Run, RunStatus
from backburner.core.work import timeline
from backburner.core.work.activity import CallSummary
from backburner.core.work.timeline import AskedQuestion, PaidCall, RunPart, Span, TimelineStep

SECOND = timedelta(seconds=1)


def at(seconds: float) -> datetime:
    return NOON + seconds * SECOND


def call(began: float, ended: float | None, **changes: Any) -> CallSummary:
    times = {"started_at": at(began), "ended_at": None if ended is None else at(ended)}
    usual = {"id": CallId("t_1"), "tool": "look", "summary": "", "state": "done", "failed": False}
    return CallSummary(**{**usual, **times, **changes})


def model_call(ended: float) -> PaidCall:
    return PaidCall(model="m", spent=Amount(5, 7), output=2, cached=1, ended_at=at(ended))


def asked(seconds: float, purpose: Purpose = Purpose.QUESTION, **changes: Any) -> AskedQuestion:
    usual: dict[str, Any] = {"id": QuestionId("q"), "prompt": "Which?", "answer": None}
    return AskedQuestion(
        **{**usual, "purpose": purpose, "asked_at": at(seconds), "closed_at": None, **changes}
    )


def ended(seconds: float, **changes: Any) -> Run:
    return make.run(status=RunStatus.SUCCESS, ended_at=at(seconds), **changes)


def spans(run: Run, *parts: RunPart, now: float = 100) -> list[tuple[float, float]]:
    found = timeline.work_spans(run, parts, now=at(now))
    return [((one.began_at - NOON) / SECOND, (one.ended_at - NOON) / SECOND) for one in found]


def build(run: Run, *worked: tuple[float, float], **more: Any) -> list[tuple[str, float, Any]]:
    made = timeline.build_timeline(
        run,
        [Span(at(began), at(until)) for began, until in worked],
        **{"calls": (), "model_calls": (), **more},
    )
    return [shown(step) for step in made.steps]


def shown(step: TimelineStep) -> tuple[str, float, Any]:
    seconds = None if step.duration is None else step.duration / SECOND
    return step.in_words, step.offset / SECOND, seconds


def test_a_run_works_from_each_claim_to_its_commit_or_to_when_it_is_handed_back() -> None:
    run = ended(90, epoch=5)
    parts = (RunPart(2, at(0), at(10)), RunPart(5, at(60), at(90)))

    assert spans(run, *parts) == [(0, 10), (60, 90)]
    worked = timeline.work_spans(run, parts, now=at(100))
    assert timeline.worked_for(worked) == 40 * SECOND


def test_a_run_in_progress_works_since_it_was_last_taken_up() -> None:
    assert spans(make.run(), now=7) == [(0, 7)]
    resumed = make.run(epoch=3, resumed_at=at(20))
    assert spans(resumed, RunPart(1, at(0), at(10)), now=25) == [(0, 10), (20, 25)]


def test_a_run_whose_process_went_away_worked_until_it_was_ended() -> None:
    run = make.run(status=RunStatus.FAILURE, ended_at=at(30))

    assert spans(run) == [(0, 30)]


def test_a_run_that_waits_or_was_skipped_does_not_work() -> None:
    waits = make.run(status=RunStatus.QUEUED)
    assert spans(waits, RunPart(1, at(0), at(10))) == [(0, 10)]
    assert spans(make.run(status=RunStatus.SKIPPED, epoch=0, ended_at=NOON)) == []
    dropped = make.run(status=RunStatus.CANCELLED, ended_at=at(50))
    assert spans(dropped, RunPart(1, at(0), at(10))) == [(0, 10)]


def test_parts_without_a_beginning_follow_each_other() -> None:
    parts = (RunPart(1, None, at(10)), RunPart(2, None, at(30)))

    assert spans(ended(30, epoch=2), *parts) == [(0, 10), (10, 30)]


def test_clocks_that_went_back_make_no_negative_spans() -> None:
    parts = (RunPart(1, at(0), at(10)), RunPart(2, at(5), at(8)))

    assert spans(ended(8, epoch=2), *parts) == [(0, 10), (10, 10)]


def test_between_calls_the_model_thinks() -> None:
    calls = [call(2, 5), call(6, 9, tool="make", failed=True)]

    assert build(ended(10), (0, 10), calls=calls) == [
        ("Thinking", 0, 2),
        ("look", 2, 3),
        ("Thinking", 5, 1),
        ("make", 6, 3),
        ("Thinking", 9, 1),
    ]


def test_every_model_call_is_a_step_of_its_own() -> None:
    steps = build(
        ended(10), (0, 10), calls=[call(3, 6)], model_calls=[model_call(2), model_call(8)]
    )

    assert steps == [
        ("Thinking, with m", 0, 2),
        ("Thinking", 2, 1),
        ("look", 3, 3),
        ("Thinking, with m", 6, 2),
        ("Thinking", 8, 2),
    ]


def test_calls_at_once_overlap_and_short_gaps_are_not_shown() -> None:
    calls = [call(0.01, 5), call(0.02, 3)]

    assert build(ended(5.04), (0, 5.04), calls=calls, model_calls=[model_call(4)]) == [
        ("look", 0.01, 4.99),
        ("look", 0.02, 2.98),
        # While a call was under way, by an agent below.
        ("Thinking, with m", 4, 0),
    ]


def test_what_is_under_way_has_no_end() -> None:
    assert build(make.run(), (0, 9), calls=[call(2, None)]) == [
        ("Thinking", 0, 2),
        ("look", 2, None),
    ]
    assert build(make.run(), (0, 9)) == [("Thinking", 0, None)]
    assert build(make.run(), (0, 0)) == [("Thinking", 0, None)]


@pytest.mark.parametrize(
    ("purpose", "words"),
    [
        (Purpose.APPROVAL, "your approval"),
        (Purpose.RECONNECT, "your sign-in"),
        (Purpose.ALLOWANCE, "your decision about the allowance"),
        (Purpose.INPUT, "your answer"),
    ],
)
def test_a_run_that_asked_waited_for_the_answer(purpose: Purpose, words: str) -> None:
    questions = [asked(3), asked(5, purpose)]

    steps = build(ended(30), (0, 5), (20, 30), asked=questions)

    assert steps == [
        ("Thinking", 0, 5),
        (f"Waited for {words}", 5, 15),
        ("Thinking", 20, 10),
    ]


def test_a_run_may_wait_for_jobs_for_its_model_or_for_its_turn() -> None:
    waits = make.run(status=RunStatus.QUEUED)
    block = [call(0, 5, tool=timeline.WAITING_TOOL)]

    assert build(waits, (0, 5), calls=block)[1] == ("Waits for its jobs", 5, None)
    assert build(waits, (0, 5))[1] == ("Waits for its turn", 5, None)
    trouble = make.failure(FailureKind.UNAVAILABLE)
    late = make.run(status=RunStatus.QUEUED, failure=trouble)
    words = "Waits for this to be over: The model was overloaded."
    assert build(late, (0, 5))[1] == (words, 5, None)


def test_a_run_that_was_stopped_while_it_waited_waited_to_the_end() -> None:
    stopped = make.run(status=RunStatus.CANCELLED, ended_at=at(30))

    assert build(stopped, (0, 5))[1] == ("Waited for its turn", 5, 25)
    assert build(ended(5), (0, 5)) == [("Thinking", 0, 5)]


def test_a_run_that_begins_with_a_wait_shows_it() -> None:
    assert build(ended(9), (4, 9)) == [("Waited for its turn", 0, 4), ("Thinking", 4, 5)]


def test_more_steps_than_the_limit_are_cut() -> None:
    calls = [call(number, number) for number in range(4)]
    made = timeline.build_timeline(
        ended(3), [Span(NOON, at(3))], calls=calls, model_calls=(), limit=3
    )

    assert (len(made.steps), made.is_cut) == (3, True)
