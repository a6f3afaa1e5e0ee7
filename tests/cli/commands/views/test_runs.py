"""`backburner runs`: the last runs of all conversations or of one, and the page of a run."""

from collections.abc import Callable
from typing import Any

import pytest
from support.programs.cli_server import Call, wait_for


@pytest.fixture
def answered(ask: Callable[..., Any]) -> tuple[str, str]:
    """Have a conversation with a reply; return its id and that of the run."""
    conversation_id = ask("say", "--no-wait", "hello there")["conversation_id"]
    wait_for(lambda: [one for one in ask("runs", conversation_id) if one["ended_at"]])
    (run,) = ask("runs", conversation_id)
    return conversation_id, run["id"]


def test_without_an_argument_the_last_runs_of_all_conversations_are_listed(
    answered: tuple[str, str], ask: Callable[..., Any], talk: Call
) -> None:
    heading, *rows = talk("runs").out

    assert heading.split()[:3] == ["ID", "CONVERSATION", "STATUS"]
    assert [row.split()[0] for row in rows] == [answered[1][:12]]
    assert [one["id"] for one in ask("runs")] == [answered[1]]


def test_a_run_is_shown_with_its_cause_and_what_it_was_told(
    answered: tuple[str, str], talk: Call
) -> None:
    conversation_id, run_id = answered
    shown = talk("runs", run_id).out

    assert "cause         Your message: hello there" in shown
    assert shown == talk("runs", conversation_id, run_id[:12]).out
    assert any(
        "The user says: hello there" in line for line in talk("runs", run_id, "--prompt").out
    )


def test_the_runs_of_a_conversation_are_compared(
    answered: tuple[str, str], ask: Callable[..., Any], talk: Call
) -> None:
    conversation_id, run_id = answered
    lines = talk("runs", conversation_id, "--stats").out

    assert lines[1].startswith(run_id[:12])
    assert "failed        0 of 1" in lines
    assert [one["id"] for one in ask("runs", conversation_id, "--stats")["runs"]] == [run_id]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--stats"], "--stats needs CONVERSATION, and --prompt needs RUN."),
        (["c_x", "r_x", "--stats"], "--stats is about a conversation: leave out RUN."),
        (["c_x", "--prompt"], "--prompt needs RUN."),
    ],
)
def test_options_for_something_else_are_refused(
    arguments: list[str], message: str, talk: Call
) -> None:
    ended = talk("runs", *arguments)

    assert ended.code == 2
    assert any(message in line for line in ended.err)
