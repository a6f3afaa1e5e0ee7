"""Trials of what the system gives: what is kept, and what is tried again."""

import pytest
import structlog.testing

from backburner.process.confinement import run_trial
from backburner.process.trial import RETRY_SECONDS, SystemTrial


@pytest.mark.parametrize("answer", [True, False])
def test_an_answer_of_the_system_is_kept_and_logged_once(*, answer: bool) -> None:
    answers = iter([answer])
    trial = SystemTrial("process_namespace.tried", lambda: next(answers), otherwise=False)

    with structlog.testing.capture_logs() as logs:
        assert [trial.result(now=now) for now in (0, 1, 2 * RETRY_SECONDS)] == [answer] * 3

    assert [(line["event"], line["given"]) for line in logs] == [
        ("process_namespace.tried", answer)
    ]


def test_a_trial_without_an_answer_is_repeated_after_some_minutes() -> None:
    answers = iter([None, True])
    trial = SystemTrial("process_namespace.tried", lambda: next(answers), otherwise=False)

    with structlog.testing.capture_logs() as logs:
        results = [trial.result(now=now) for now in (0, 1, RETRY_SECONDS, RETRY_SECONDS + 1)]

    assert results == [False, False, True, True]
    assert [line["log_level"] for line in logs] == ["warning", "info"]


def test_only_an_exit_of_the_line_itself_is_an_answer() -> None:
    assert run_trial("true") is True
    assert run_trial("false") is False
    # As where no process can be started, or not within the time for it.
    assert run_trial("kill -9 $$") is None
    assert run_trial("sleep 60", within=0.2) is None
