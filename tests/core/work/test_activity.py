"""A run in progress is calling, writing or thinking."""

from datetime import timedelta
from typing import Any

from support.stage.make import NOON, RUN

from backburner.core.ids import CallId
from backburner.core.run import RunKind
from backburner.core.work.activity import Activity, CallSummary, RunActivity

LATER = NOON + timedelta(seconds=1)


def call(**changes: Any) -> CallSummary:
    usual = {"id": CallId("t_1"), "tool": "look", "summary": "at=CI", "state": "done"}
    times = {"failed": False, "started_at": NOON, "ended_at": NOON}
    return CallSummary(**{**usual, **times, **changes})


def activity(**changes: Any) -> RunActivity:
    usual = {"run_id": RUN, "kind": RunKind.REPLY, "started_at": NOON, "calls": 0}
    return RunActivity(**{**usual, "call": None, "drafted_at": None, **changes})


def test_a_run_without_text_and_calls_is_thinking() -> None:
    assert activity().doing == "thinking"


def test_a_run_with_text_is_writing() -> None:
    assert activity(drafted_at=NOON).doing == "writing"


def test_a_call_in_progress_counts_most() -> None:
    running = activity(call=call(ended_at=None), drafted_at=LATER)

    assert running.activity is Activity.CALLING
    assert running.doing == "look: at=CI"


def test_after_a_call_a_run_is_thinking_until_it_writes() -> None:
    last = call(ended_at=LATER, summary="")

    assert activity(call=last, drafted_at=NOON).doing == "thinking, after look"
    assert activity(call=last, drafted_at=LATER).doing == "writing, after look"
