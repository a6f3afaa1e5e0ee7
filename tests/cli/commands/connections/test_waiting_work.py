"""Work whose connections cannot be used, as the commands for work show it; with a real server."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from support.programs.cli_server import Call, Running, wait_for

from backburner.core.connections.connection import Connection, ConnectionState
from backburner.core.ids import ConversationId, new_call_id, new_connection_id, new_run_id
from backburner.core.run import RunKind, Turn
from backburner.core.tool_policy import Tool, ToolCall
from backburner.ports import CallEnd
from backburner.store.tx import Tx

#: A schedule that is not due while a test runs.
LATER = ("--when", "every monday at 3:33")


def connect(running: Running, name: str, **fields: Any) -> Connection:
    def add(tx: Tx) -> Connection:
        connection = Connection(
            id=new_connection_id(),
            user_id=running.user,
            name=name,
            title=name.title(),
            url=f"https://{name}.example/mcp",
            created_at=tx.now,
            **fields,
        )
        tx.connections.add(connection)
        return connection

    return running.transact(add)


@pytest.fixture
def post(running: Running) -> Connection:
    return connect(running, "post", state=ConnectionState.SIGNING_IN)


def test_a_task_says_from_the_beginning_which_connections_it_cannot_use(
    talk: Call, ask: Callable[..., Any], running: Running, post: Connection
) -> None:
    connect(running, "off", disabled=True)
    named = ("--connection", post.name, "--connection", "off")
    made = talk("tasks", "add", "both", "Look.", *LATER, *named)
    shown = talk("tasks", "show", "both")

    warnings = [
        "post is not signed in: the work waits for that. Sign in with `backburner connect post`.",
        "off is disabled: the work asks first. Enable it with `backburner connections enable off`.",
    ]
    assert (made.code, made.err) == (0, warnings)
    assert made.out[0].startswith("Created: both")
    facts = dict(line.split(maxsplit=1) for line in shown.out)
    assert facts["warnings"] == " ".join(warnings)
    assert ask("tasks", "show", "both")["warnings"] == warnings
    assert talk("tasks", "edit", "both", "--connection", "off").err == warnings[1:]
    assert ask("tasks", "add", "none", "Look.", *LATER)["warnings"] == []


@pytest.fixture
def waiting(talk: Call, ask: Callable[..., Any], running: Running) -> tuple[str, str]:
    """Let two tasks wait for the same sign-in; return the names of who asked and of the other."""
    connect(running, "mail", state=ConnectionState.SIGNED_OUT)

    def waits_for(name: str) -> str | None:
        awaited: str | None = ask("tasks", "show", name)["waits_for"]
        return awaited

    named = ("--interval", "1h", "--connection", "mail")
    for name in ("first", "second"):
        talk("tasks", "add", name, "Look.", *named)
        wait_for(partial(waits_for, name))
    asking = [one["name"] for one in ask("tasks") if one["needs_you"]]
    assert len(asking) == 1
    return asking[0], "second" if asking == ["first"] else "first"


def test_tasks_that_wait_for_a_sign_in_say_so_alike(
    talk: Call, waiting: tuple[str, str], ask: Callable[..., Any]
) -> None:
    listed = [line for line in talk("tasks").out if "first" in line or "second" in line]
    assert ["waits for: reconnect mail" in line for line in listed] == [True, True]
    for name in waiting:
        shown = dict(line.split(maxsplit=1) for line in talk("tasks", "show", name).out)
        assert shown["status"] == "waits for: reconnect mail"
        assert shown["last"].split(maxsplit=1)[1] == "mail needs a sign-in."
        task_id = ask("tasks", "show", name)["id"]
        assert talk("runs", task_id).out[-1].endswith("  mail needs a sign-in.")
        conversation = "\n".join(talk("conversations", task_id).out)
        assert "Reconnect mail." in conversation
        assert "signed out" not in conversation


@pytest.mark.parametrize("verb", ["resume", "run-now"])
def test_work_that_waits_for_a_sign_in_is_not_started_without_it(
    talk: Call, waiting: tuple[str, str], ask: Callable[..., Any], verb: str
) -> None:
    for name in waiting:
        before = ask("tasks", "show", name)
        for refused in (talk("tasks", verb, name), talk(verb, before["id"])):
            assert (refused.code, refused.out) == (4, [])
            (line,) = refused.err
            assert line == (
                "This waits until you reconnect Mail. Sign in with `backburner connect mail`; the"
                " work then continues by itself."
            )
        assert ask("tasks", "show", name) == before


def test_work_that_waits_for_a_sign_in_can_be_paused(
    talk: Call, waiting: tuple[str, str], ask: Callable[..., Any]
) -> None:
    for name in waiting:
        assert talk("tasks", "pause", name).out == [f"Paused: {name}."]
        paused = ask("tasks", "show", name)
        assert (paused["status"], paused["pause_reason"]) == ("paused", "user")
        assert paused["waits_for"] is None


def test_a_failed_call_says_what_its_agent_was_told(
    talk: Call, ask: Callable[..., Any], running: Running
) -> None:
    mail = connect(running, "mail")
    task_id = ask("tasks", "add", "look", "Look.", *LATER)["id"]
    turn = Turn(running.user, ConversationId(task_id), new_run_id(), 1, RunKind.BACKGROUND)
    tool = Tool(server="mail", name="send", definition="d", connection=mail.id)

    def fail(tx: Tx) -> None:
        call_id = new_call_id()
        tx.tool_calls.begin(turn, call_id, ToolCall(tool, {}), read_only=False)
        tx.tool_calls.end(turn, CallEnd(call_id, "The mailbox\nis full.", failed=True))

    running.transact(fail)

    assert talk("connections", "calls").out[-1].endswith('  "The mailbox is full."')
    assert ask("connections", "calls")[0]["told"] == "The mailbox is full."
