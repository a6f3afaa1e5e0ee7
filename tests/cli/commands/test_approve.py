"""`backburner approve` and `reject`: whatever waits for a yes or no."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from support.programs.cli_server import Call, Running
from support.stage import make

from backburner.cli.command_name import COMMAND_VARIABLE
from backburner.cli.commands.questions import describe_continuation
from backburner.core import transitions
from backburner.core.ids import derive_question_id, new_conversation_id
from backburner.core.question import Purpose, QuestionType
from backburner.core.schedule import Interval
from backburner.core.transitions import Brief
from backburner.ports import Tx

CALL = {
    "server": "s",
    "tool": "run_command",
    "definition": "d",
    "arguments": {"command": "rm x"},
    "digest": "x",
    "words": None,
}
LATER = ("--when", "33 3 * * 1")


def put_question(running: Running, title: str, **changes: Any) -> str:
    """Have a task ask something, and give the id of the question."""
    question_id = derive_question_id(running.user, title)

    def work(tx: Tx) -> None:
        # The demo understands it, and it recurs: the run that the answer starts does not end it.
        schedule = Interval(timedelta(days=5), anchor=tx.now)
        brief = Brief(title=title, prompt="Tell me the time.", schedule=schedule)
        task = transitions.start_task(new_conversation_id(), running.user, brief, now=tx.now)
        asked = {
            "prompt": "Go on?",
            "type": QuestionType.CONFIRMATION,
            "options": ("yes", "no"),
            **changes,
        }
        tx.conversations.add(task)
        question = make.question(id=question_id, **asked)
        tx.conversations.save(transitions.ask_owner(task.conversation, question))

    running.transact(work)
    return question_id


def put_approval(running: Running, title: str) -> str:
    return put_question(
        running,
        title,
        purpose=Purpose.APPROVAL,
        type=QuestionType.CHOICE,
        options=("yes", "no"),
        binds_to={"calls": [CALL]},
    )


def test_a_call_is_approved_by_its_question_or_by_the_name_of_the_work(
    talk: Call, running: Running, ask: Callable[..., Any]
) -> None:
    first, _ = put_approval(running, "Runner"), put_approval(running, "Second")
    unseen = talk("approve", first[:12])
    by_id = talk("approve", first[:12], "--yes")
    by_name = talk("reject", "second")

    # Nobody is there to see the call.
    assert (unseen.code, "--yes" in unseen.err[0]) == (2, True)
    assert by_id.out == ["Approved: Runner. It continues with your answer."]
    assert by_name.out == ["Rejected: Second. It continues with your answer."]
    assert ask("questions") == []


def test_a_confirmation_is_given_and_json_is_printed(
    running: Running, ask: Callable[..., Any]
) -> None:
    put_question(running, "Deploy")

    assert ask("approve", "deploy")["title"] == "Deploy"
    assert ask("questions") == []


def test_what_takes_another_answer_or_none_is_said_truly(talk: Call, running: Running) -> None:
    asked = put_question(running, "Choose", type=QuestionType.CHOICE, options=("red", "blue"))
    talk("tasks", "add", "Quiet", "Look.", *LATER)
    choice, quiet = talk("approve", "Choose"), talk("reject", "quiet")
    unknown = talk("approve", "nothing")

    assert choice.code == 2
    assert f"`backburner answer {asked[:12]} TEXT`" in choice.err[0]
    assert (quiet.code, quiet.err[0]) == (4, "'Quiet' waits for no approval.")
    assert unknown.code == 3
    assert unknown.err[0].startswith("No open question, task or job is named nothing")


def test_a_choice_is_answered_by_its_number(talk: Call, running: Running) -> None:
    asked = put_question(running, "Colour", type=QuestionType.CHOICE, options=("red", "blue"))
    shown, listed = talk("questions", asked), talk("questions")
    works, tasks = talk("conversations").out, talk("tasks").out
    one, task = talk("conversations", "Colour").out, talk("tasks", "show", "Colour").out
    answered = talk("answer", asked[:12], "2")

    assert "  2  blue" in shown.out
    assert any("1 red / 2 blue" in line for line in listed.out)
    # Work that waits for an answer has no next time.
    assert not [line for line in [*works, *tasks] if re.search(r"\d{4}-\d\d-\d\d", line)]
    assert not [line for line in [*one, *task] if line.startswith("next runs")]
    assert answered.out == ["Answered: blue. It continues with your answer."]


def test_what_is_approved_is_shown_as_it_was_written(
    talk: Call, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = "Run `backburner db restore`?"
    call = {**CALL, "arguments": {"command": "echo `backburner token list`"}}
    asked = put_question(running, "Shown", prompt=written, binds_to={"calls": [call]})
    talk("tasks", "add", "Tried", "Look.", *LATER)
    monkeypatch.setenv(COMMAND_VARIABLE, "python3 dev.py run")
    shown, tried = talk("questions", asked).out, talk("tasks", "test-run", "Tried").out

    assert written in shown
    assert '  "command": "echo `backburner token list`"' in shown
    # A text of the program itself names the command that started it.
    assert "`python3 dev.py run conversations " in tried[0]


def test_a_name_is_not_taken_for_the_start_of_an_id(talk: Call, running: Running) -> None:
    first = put_question(running, "First")
    plain = first.partition("_")[2]
    short, named = plain[:5], put_question(running, plain[:3])
    too_short, by_name = talk("approve", short), talk("approve", plain[:3])
    namesake = put_question(running, plain[:8], type=QuestionType.CHOICE, options=("red", "blue"))
    both, whole = talk("approve", plain[:8]), talk("approve", first)

    assert named != first
    assert too_short.code == 3
    assert by_name.out == [f"Approved: {plain[:3]}. It continues with your answer."]
    assert both.code == 2
    assert first in both.err[0]
    assert namesake in both.err[0]
    assert whole.out == ["Approved: First. It continues with your answer."]


@pytest.mark.parametrize(
    ("kind", "ended_as", "expected"),
    [
        ("task", "completed", "It has already ended: "),
        ("chat", "completed", "The reply continues: "),
    ],
)
def test_work_that_is_over_when_its_answer_is_printed_is_said_to_have_ended(
    kind: str, ended_as: str, expected: str
) -> None:
    conversation = {"id": "c_12345678", "status": "active", "kind": kind, "ended_as": ended_as}

    assert describe_continuation(conversation, {"purpose": "question"}).startswith(expected)
