"""`backburner say`: the reply as it arrives."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.programs.cli_server import Running
from support.programs.programs import Ended, Start
from support.requirements import requirement
from support.servers.losing import losing
from support.stage import make

from backburner.cli.client import NoAnswer
from backburner.cli.command_name import COMMAND_VARIABLE
from backburner.cli.commands.say import Reply
from backburner.core import transitions
from backburner.core.errors import BackburnerError
from backburner.core.ids import (
    ConversationId,
    derive_question_id,
    new_conversation_id,
    new_message_id,
)
from backburner.core.question import QuestionType
from backburner.core.schedule import Cron
from backburner.core.transitions import Brief, Step
from backburner.core.transitions.step import system_message
from backburner.ports import Claimer, Tx

Call = Callable[..., Ended]
QUESTION = {
    "id": "q_0123456789abcdef",
    "purpose": "approval",
    "prompt": "May I do this?",
    "options": ["yes"],
}


def test_a_fresh_installation_replies_at_once(
    call: Call, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_DATA", str(tmp_path))
    monkeypatch.setenv(COMMAND_VARIABLE, "python3 dev.py run")
    running = start("up", "--port", "0")
    running.wait_until_ready()
    helped = call("say", "help")
    said = call("say", "-c", "remind me in 1 hour to stretch")
    (conversation,) = json.loads("\n".join(call("conversations", "--json").out))
    more = call("say", "--in", conversation["id"][:8], "--json", "what are you working on?")
    away = call("away", "--seen")

    # The demo names the program the way the server was started.
    assert helped.out[-1] == (
        "For a real model, run `python3 dev.py run setup`, or set one up on the page, in Settings"
        " under Model."
    )
    assert said.code == 0, said.err
    assert said.out[0].startswith("All right.")
    assert said.err == [f"[in {conversation['id'][:12]}]"]
    assert conversation["status"] == "background"
    assert "stretch" in json.loads("\n".join(more.out))["messages"][-1]["content"]
    assert away.code == 0
    assert away.out[0].startswith("Since ")


@pytest.mark.parametrize("text", ["", "  ", "a" * 200_001])
def test_a_message_that_is_refused_creates_no_conversation(talk: Call, text: str) -> None:
    before = talk("conversations", "--json").out
    refused = talk("say", text)

    assert refused.code == 2
    assert "The message" in refused.err[0]
    assert talk("conversations", "--json").out == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("say", "Hello.", "--model", "nope"),
        ("say", "Hello.", "--model", "nope", "--no-wait"),
        ("jobs", "start", "Count.", "--agent", "nope"),
        ("jobs", "start", "Count.", "--folder", "nope"),
    ],
)
def test_nothing_is_left_of_what_was_refused(talk: Call, arguments: tuple[str, ...]) -> None:
    refused = talk(*arguments)

    assert refused.code in (2, 3)
    assert "nope" in refused.err[0]
    assert talk("conversations").out == ["No conversations."]


@pytest.fixture
def question(running: Running, ask: Callable[..., Any]) -> tuple[str, str]:
    """Have a chat with an open question; return the ids of both."""
    chat_id = ask("say", "Hello.")["conversation_id"]
    asked = make.question(
        id=derive_question_id(running.user),
        type=QuestionType.CHOICE,
        prompt="Which one?",
        options=("the first", "the second"),
    )

    def work(tx: Tx) -> None:
        chat = tx.conversations.lock(running.user, chat_id)
        tx.conversations.save(transitions.ask_owner(chat, asked))

    running.transact(work)
    return chat_id, asked.id


def test_an_answer_to_a_reply_says_where_the_reply_continues(
    talk: Call, question: tuple[str, str]
) -> None:
    chat_id, question_id = question
    answered = talk("answer", question_id[:12], "2")
    assert answered.out[0].startswith("Answered: the second. The reply continues: `")
    assert answered.out[0].endswith(f" conversations {chat_id[:12]}`.")


def test_a_message_whose_stream_was_lost_is_not_sent_twice(
    talk: Call, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    with losing(running.address) as between:
        monkeypatch.setenv("BACKBURNER_URL", between.address)
        said = talk("say", "Only once.")

    assert said.code == 0
    assert said.out == ["Connection lost. The message was received."]


def test_a_reply_is_printed_as_it_arrives_and_once(capsys: pytest.CaptureFixture[str]) -> None:
    reply = Reply(echo=True)
    message = {"role": "assistant", "content": "Hello you."}
    end = reply.follow(
        iter(
            [
                ("message", {}),
                ("delta", {"at": 0, "text": "Hello "}),
                ("delta", {"at": 6, "text": "you."}),
                ("done", {"messages": [message]}),
            ]
        )
    )

    assert capsys.readouterr().out == "Hello you.\n"
    assert end["messages"] == [message]


@pytest.mark.parametrize(
    ("options", "answer"),
    [(["yes", "always here", "no"], "yes` (or always here, no)."), ([], "...`.")],
)
def test_a_question_is_printed_with_the_command_that_answers_it(
    capsys: pytest.CaptureFixture[str], options: list[str], answer: str
) -> None:
    question = {**QUESTION, "options": options}
    end = {"messages": [{"role": "assistant", "content": "I try."}], "questions": [question]}

    Reply(echo=True).follow(iter([("done", end)]))

    *before, line = capsys.readouterr().out.splitlines()
    assert before == ["I try.", "May I do this?"]
    assert line.endswith(f" answer q_0123456789 {answer}")


def test_a_reply_that_waits_for_a_sign_in_says_how_to_sign_in(
    capsys: pytest.CaptureFixture[str],
) -> None:
    waits = "This waits until you reconnect Mail. It continues by itself afterwards."
    question = {
        **QUESTION,
        "purpose": "reconnect",
        "prompt": "Reconnect Mail: mail.example no longer accepts the sign-in.",
        "options": ["reconnect", "stop"],
        "binds_to": {"name": "mail"},
    }
    end = {"messages": [{"role": "system", "content": waits}], "questions": [question]}

    Reply(echo=True).follow(iter([("done", {**end, "status": "queued"})]))

    *before, line = capsys.readouterr().out.splitlines()
    assert before == [waits, question["prompt"]]
    assert line == (
        "Sign in with `backburner connect mail`, or stop it with"
        " `backburner answer q_0123456789 stop`."
    )


def test_a_question_that_the_reply_shows_is_not_repeated(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = "Proposed: May I do this?"
    end = {"messages": [{"role": "system", "content": shown}], "questions": [QUESTION]}

    Reply(echo=True).follow(iter([("done", end)]))

    assert capsys.readouterr().out == f"{shown}\n"


def test_a_reply_that_has_not_begun_says_why_on_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    end = {"messages": [{"role": "assistant", "content": "Hello."}]}
    waiting = ("waiting", {"detail": "Waiting for a free seat."})

    Reply(echo=True).follow(iter([waiting, ("done", end)]))

    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("Hello.\n", "Waiting for a free seat.\n")


def test_a_restarted_reply_begins_on_a_new_line(capsys: pytest.CaptureFixture[str]) -> None:
    Reply(echo=True).follow(
        iter(
            [
                ("delta", {"at": 0, "text": "Hel"}),
                ("delta", {"at": 0, "text": "Good day."}),
                ("done", {"messages": [{"role": "assistant", "content": "Good day."}]}),
            ]
        )
    )

    assert capsys.readouterr().out == "Hel\nGood day.\n"


def test_a_stream_that_is_cut_short_is_an_error() -> None:
    with pytest.raises(BackburnerError, match="connection was lost"):
        Reply(echo=False).follow(iter([("message", {})]))


def test_the_last_conversation_is_continued(talk: Call, ask: Callable[..., Any]) -> None:
    first = ask("say", "--no-wait", "first")
    ask("say", "--no-wait", "second")
    ask("say", "--no-wait", "--in", "first", "again")
    ask("jobs", "start", "Count.", "--name", "Job", "--in", "second", "--wait")
    more = ask("say", "--no-wait", "-c", "more")
    both = talk("say", "-c", "--in", "first", "more")

    assert more["conversation_id"] == first["conversation_id"]
    assert both.code == 2


def test_without_a_conversation_there_is_nothing_to_continue(talk: Call) -> None:
    ended = talk("say", "-c", "more")

    assert (ended.code, ended.err) == (3, ["There is no conversation to continue. Leave out -c."])


def test_ctrl_c_leaves_the_reply_running_and_says_how_to_stop_it(
    talk: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Reply, "follow", interrupted)
    ended = talk("say", "Hello.")

    assert ended.code == 130
    assert "goes on" in ended.err[-1]
    assert "`backburner stop c_" in ended.err[-1]


def test_a_server_that_falls_silent_is_left_and_the_reply_goes_on(
    talk: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_silent(*_: object) -> None:
        raise NoAnswer("Backburner has sent nothing for 60 seconds.")

    monkeypatch.setattr(Reply, "follow", is_silent)
    ended = talk("say", "Hello.")

    assert ended.code == 1
    assert ended.err[-1].startswith(
        "Backburner has sent nothing for 60 seconds. The conversation goes on. Follow it with"
        " `backburner watch c_"
    )


def test_a_reply_is_stopped(talk: Call, ask: Callable[..., Any], running: Running) -> None:
    def begin_reply(tx: Tx) -> None:
        chat = tx.conversations.lock(running.user, conversation_id)
        now, new = tx.now, new_message_id()
        tx.conversations.save(transitions.receive_message(chat, "So?", message_id=new, now=now))
        # Another process holds its turn, so that the server cannot be done with it before.
        claimer = Claimer(worker="another", lease=timedelta(minutes=1), per_user_limit=1)
        assert tx.queue.claim(claimer, None)

    conversation_id = ask("say", "Hello there.")["conversation_id"]
    none = talk("stop", "hello there.")
    running.transact(begin_reply)
    stopped = talk("stop", conversation_id[:20])

    assert (none.code, none.err) == (4, ["There is no reply to stop."])
    assert stopped.out == ["Stopped the reply in 'Hello there.'."]


def test_a_failed_reply_gives_its_reason_once(capsys: pytest.CaptureFixture[str]) -> None:
    text = "I could not answer: The model is gone. You can try again."
    data = {"messages": [{"role": "system", "content": text}], "detail": "The model is gone."}
    reply = Reply(echo=True)
    reply.follow(iter([("error", data)]))

    assert reply.failed
    assert capsys.readouterr().out == ""


@requirement("B-propose")
def test_a_yes_in_the_chat_approves_what_was_shown_last_and_says_so(
    talk: Call, ask: Callable[..., Any], running: Running
) -> None:
    chat_id = ask("say", "Hello there.")["conversation_id"]
    task_id = new_conversation_id()

    def propose(tx: Tx) -> None:
        chat = tx.conversations.lock(running.user, ConversationId(chat_id))
        schedule = Cron("33 3 * * 1", "UTC")
        brief = Brief(title="watch-ci", prompt="Look.", schedule=schedule, parent_id=chat.id)
        proposed = transitions.propose(task_id, running.user, brief, why="", now=tx.now)
        (question,) = proposed.conversation.questions
        tx.conversations.add(proposed)
        shown = replace(system_message(question.prompt), shows=question.id)
        tx.conversations.save(Step(conversation=chat, messages=(shown,)))

    running.transact(propose)
    said = talk("say", "--in", chat_id, "yes")

    assert said.out == ["Approved: 'watch-ci'."]
    assert ask("tasks", "show", task_id)["status"] == "active"
