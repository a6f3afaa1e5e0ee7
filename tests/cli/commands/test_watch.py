"""`backburner watch`: work as it happens."""

import json
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.programs.cli_server import Running
from support.programs.programs import PATIENCE, Ended, starter
from support.programs.programs import Running as Program
from support.requirements import requirement

from backburner.cli.client import NotSignedIn, Server
from backburner.cli.live.event_reader import EventReader
from backburner.cli.live.live_view import LiveView
from backburner.core import transitions
from backburner.core.ids import new_call_id, new_message_id
from backburner.core.run import SkippedSlots, SkipReason
from backburner.core.schedule import Gap
from backburner.core.tool_policy import Tool, ToolCall
from backburner.ports import Claimer
from backburner.store.tx import Tx

Ask = Callable[..., Any]
Call = Callable[..., Ended]


@pytest.fixture
def watch(running: Running, ask: Ask) -> Iterator[Callable[..., Program]]:
    del ask
    with starter() as start:
        address = ("--url", running.address)
        yield lambda *arguments: start(
            "watch", *arguments, *address, env={"BACKBURNER_TOKEN": running.token}
        )


def lines_until(program: Program, text: str) -> list[str]:
    """Read lines up to one with this text."""
    lines = [program.read_line()]
    while text not in lines[-1]:
        lines.append(program.read_line())
    return lines


@requirement("B-now")
def test_a_message_its_reply_and_its_end_are_shown_as_they_happen(
    watch: Callable[..., Program], ask: Ask
) -> None:
    program = watch()
    assert program.read_line() == "Nothing runs now."

    ask("say", "--no-wait", "hello there")

    lines = lines_until(program, "ended (reply): success")
    assert "[hello there] you: hello there" in lines
    assert sum("ended (reply)" in line for line in lines) == 1


def test_only_the_conversation_that_is_asked_for_is_shown(
    watch: Callable[..., Program], ask: Ask
) -> None:
    chat_id = ask("say", "--no-wait", "mine")["conversation_id"]
    ask("say", "--no-wait", "other")
    program = watch(chat_id)
    program.read_line()

    ask("say", "--no-wait", "other again")
    ask("say", "--no-wait", "--in", chat_id, "and now")

    lines = lines_until(program, "you: and now")
    assert not any("other" in line for line in lines)


@requirement("B-now")
def test_ctrl_c_leaves_the_work_running_and_says_so(
    watch: Callable[..., Program],
) -> None:
    program = watch()
    program.read_line()

    ended = program.end(signal.SIGINT)

    assert ended.code == 130
    assert ended.err[-1].startswith("Stopped watching. The work goes on.")


@requirement("B-now")
def test_tool_calls_and_questions_are_shown(watch: Callable[..., Program], ask: Ask) -> None:
    program = watch()
    program.read_line()

    ask("say", "--no-wait", "every 2 seconds ask me whether to go on")

    lines = lines_until(program, "asks: ")
    calls = [line for line in lines if "] schedule_work: what=Ask me whether to go on." in line]
    assert len(calls) == 1
    shown = [line.partition("] ")[2] for line in lines]
    assert sum(line.startswith("All right.") for line in shown) == 1
    assert shown.index("Shall I go on?") < shown.index("ended (background): success")
    assert shown[-1].startswith("asks: Shall I go on? (answer with `")
    assert shown[-1].endswith(" yes` (or no))")


@requirement("B-now")
def test_what_runs_already_is_shown_first_and_in_status(
    watch: Callable[..., Program], ask: Ask, talk: Call, running: Running
) -> None:
    chat_id = ask("say", "Hello there.")["conversation_id"]
    claimer = Claimer(worker="another", lease=timedelta(minutes=1), per_user_limit=1)

    def begin_reply(tx: Tx) -> None:
        chat = tx.conversations.lock(running.user, chat_id)
        said = transitions.receive_message(chat, "So?", message_id=new_message_id(), now=tx.now)
        tx.conversations.save(said)
        # Another process holds its turn, so that the server cannot be done with it before.
        (claim,) = tx.queue.claim(claimer, None)
        call = ToolCall(Tool(server="own", name="look", definition="d"), {"token": "hunter2"})
        tx.tool_calls.begin(claim.turn, new_call_id(), call, read_only=True)

    running.transact(begin_reply)
    program = watch("Hello there.")

    assert program.read_line() == "[Hello there.] started (reply)"
    assert program.read_line() == "[Hello there.] look: token=[hidden]"
    state = ask("status")
    assert [run["running"]["doing"] for run in state["running"]] == ["look: token=[hidden]"]
    lines = talk("status").out
    header, line = lines[lines.index("Running now") + 1 :]
    assert header.split() == ["ID", "TITLE", "KIND", "DOING"]
    assert line.startswith(f"{chat_id[:12]}  Hello there.  reply  since ")
    assert line.endswith(": look: token=[hidden]")


def test_calls_are_shown_before_the_text_that_follows_them(
    running: Running, ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    title = "A conversation with a title that would fill half of a terminal"
    chat_id = ask("say", title)["conversation_id"]
    claimer = Claimer(worker="another", lease=timedelta(minutes=1), per_user_limit=1)
    view = LiveView(lambda: Server(running.address, running.token), None)
    view.begin()

    def begin_reply(tx: Tx) -> str:
        chat = tx.conversations.lock(running.user, chat_id)
        said = transitions.receive_message(chat, "So?", message_id=new_message_id(), now=tx.now)
        tx.conversations.save(said)
        # Another process holds its turn, so that the server cannot be done with it before.
        (claim,) = tx.queue.claim(claimer, None)
        call = ToolCall(Tool(server="own", name="look", definition="d"), {"at": "CI"})
        tx.tool_calls.begin(claim.turn, new_call_id(), call, read_only=True)
        return claim.run.id

    run_id = running.transact(begin_reply)
    capsys.readouterr()
    view.show("draft", {"conversation": chat_id, "run": run_id, "at": 0, "text": "All green."})

    assert capsys.readouterr().out.splitlines() == [
        "[A conversation with a title...] started (reply)",
        "[A conversation with a title...] look: at=CI",
        "[A conversation with a title...] All green.",
    ]


@requirement("Z-honest")
def test_a_skipped_run_says_why_wherever_it_is_shown(
    watch: Callable[..., Program], talk: Call, ask: Ask, running: Running
) -> None:
    task_id = ask("tasks", "add", "CI", "Look.", "--when", "every day at 9:00")["id"]
    program = watch(task_id)
    program.read_line()

    def skip(tx: Tx) -> None:
        task = tx.conversations.lock(running.user, task_id)
        gap = SkippedSlots(Gap(2, tx.now, tx.now), SkipReason.WAITING)
        tx.conversations.save(transitions.Step(conversation=task, skipped=(gap,)))

    running.transact(skip)
    # An event that the server sees: it looks for changes of others only from time to time.
    ask("conversations", "rename", task_id, "CI of main")

    why = "it waited for your answer (2 times)"
    assert lines_until(program, "skipped")[-1].endswith(f"] skipped: {why}")
    assert talk("runs", task_id).out[1].endswith(f"  {why}")
    assert talk("tasks", "history", task_id).out[1].endswith(f"  {why}")
    assert f"last result          skipped: {why}" in talk("tasks", "show", task_id).out
    (run_id,) = [one["id"] for one in ask("runs", task_id)]
    assert f"result        {why}" in talk("runs", task_id, run_id).out
    (run,) = ask("runs", task_id)
    assert (run["skipped"]["reason"], run["skipped"]["in_words"]) == ("waiting for you", why)
    assert "1 skipped" in talk("away").out[0]


@requirement("B-now")
def test_a_server_that_goes_away_is_said_once_and_it_continues_when_it_is_back(
    tmp_path: Path,
) -> None:
    data = ("--data", tmp_path / "data")
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = ("--port", str(free.getsockname()[1]))
    with starter() as start:
        server = start("up", *port, *data)
        server.wait_until_ready()
        start("say", "before", *data).end()
        program = start("watch", *data)
        assert program.read_line() == "Nothing runs now."
        server.end(signal.SIGTERM)
        assert program.read_line().endswith("Waiting for the server.")

        start("up", *port, *data).wait_until_ready()
        start("say", "--no-wait", "missed", *data).end()

        # What was said before it was connected again is not lost.
        assert program.read_line() == "Connected again."
        lines = lines_until(program, "ended (reply)")
    assert "[missed] you: missed" in lines


def test_a_credential_that_a_restart_replaces_is_read_again(running: Running) -> None:
    tokens = iter(["bb_replaced", running.token])
    reader = EventReader(lambda: Server(running.address, next(tokens)), retry_seconds=0.01)
    events = [reader.next(PATIENCE) for _ in range(3)]
    reader.close()

    assert [event and event[0] for event in events] == ["lost", "connected", "hello"]


def test_a_credential_that_stays_refused_ends_the_view(running: Running) -> None:
    reader = EventReader(lambda: Server(running.address, "bb_revoked"), retry_seconds=0.01)
    first = reader.next(PATIENCE)
    with pytest.raises(NotSignedIn):
        reader.next(PATIENCE)
    reader.close()

    assert first is not None
    assert first[0] == "lost"


def test_the_view_waits_for_a_credential_that_works(
    running: Running, ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    token = [running.token]
    view = LiveView(lambda: Server(running.address, token[0]), None)
    view.begin()
    token[0] = "bb_replaced"
    view.show("connected", "")
    chat_id = ask("say", "Hello there.")["conversation_id"]
    view.show("change", {"kind": "message", "conversation": chat_id})
    capsys.readouterr()
    token[0] = running.token
    view.show("connected", "")

    assert "[Hello there.] you: Hello there." in capsys.readouterr().out.splitlines()


def test_a_draft_is_shown_once_whatever_stands_between_its_parts(
    running: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    view = LiveView(lambda: Server(running.address, running.token), None)

    def draft(text: str, at: int) -> None:
        view.show("draft", {"conversation": "c_1", "run": "r_1", "at": at, "text": text})

    draft("The build ", 0)
    draft("is ", 10)
    # As a whole, after a new connection.
    draft("The build is gre", 0)
    view.show("lost", "Gone.")
    draft("en.", 16)
    draft("Anew.", 0)

    assert capsys.readouterr().out == (
        "[c_1] The build is gre\nGone. Waiting for the server.\n[c_1] en.\n[c_1] Anew."
    )


def test_events_are_printed_as_json_one_per_line(watch: Callable[..., Program], ask: Ask) -> None:
    chat_id = ask("say", "hello")["conversation_id"]
    program = watch(chat_id, "--json")
    assert json.loads(program.read_line())["event"] == "hello"

    ask("say", "--no-wait", "something else")
    ask("say", "--no-wait", "--in", chat_id, "again")

    change = json.loads(program.read_line())
    assert (change["event"], change["conversation"]) == ("change", chat_id)
