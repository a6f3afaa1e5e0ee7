"""Tool calls as lines: what people read of them."""

from datetime import timedelta

import pytest
from support.stage.made_up_runs import at

from backburner.core.ids import CallId
from backburner.core.work.activity import CallSummary
from backburner.core.work.call_summary import summarize_arguments
from backburner.ports import ShownCall
from backburner.web.views.tool_line import describe_call, show_call

REMIND = {"what": "Remind me to drink.", "when": "in 2 minutes", "title": "Drink", "notify": "all"}
TASK = {"name": "Digest", "prompt": "Sum up.", "when": "every day at 8", "runs": 3}


@pytest.mark.parametrize(
    ("tool", "arguments", "line"),
    [
        ("schedule_work", REMIND, "Scheduled work Remind me to drink. · in 2 minutes"),
        ("schedule_work", {**REMIND, "what": "long " * 30}, "Scheduled work Drink · in 2 minutes"),
        ("schedule_work", {"when": "now", "what": "x=1\nb"}, "Scheduled work now"),
        ("task_add", TASK, "Added a task Digest · every day at 8"),
        ("task_propose", TASK, "Proposed a task Digest · every day at 8"),
        ("background_task", {"description": "Tests", "prompt": "Run."}, "Started a job Tests"),
        ("memory_set", {"key": "cat", "text": "Olive"}, "Remembered cat · Olive"),
        ("read_file", {"path": "a=b.py"}, "Read a=b.py"),
        ("stop_work", {"name": "Digest"}, "Stopped work name=Digest"),
    ],
)
def test_a_line_says_what_and_when_without_names_of_arguments(
    tool: str, arguments: dict[str, object], line: str
) -> None:
    call = CallSummary(
        id=CallId("t_1"),
        tool=tool,
        summary=summarize_arguments(arguments),
        state="done",
        failed=False,
        started_at=at(0),
        ended_at=at(1),
    )

    assert describe_call(call, at(2)) == line


@pytest.mark.parametrize(
    ("milliseconds", "took"), [(0, ""), (99, ""), (100, "0.1\N{NO-BREAK SPACE}s")]
)
def test_a_line_leaves_out_a_time_that_is_next_to_nothing(milliseconds: int, took: str) -> None:
    call = CallSummary(
        id=CallId("t_1"),
        tool="read_file",
        summary="path=a",
        state="done",
        failed=False,
        started_at=at(0),
        ended_at=at(0) + timedelta(milliseconds=milliseconds),
    )

    assert show_call(ShownCall("", call), at(2)).took == took
