"""Work whose connections cannot be used, as the commands for work show it; with a real server."""

from collections.abc import Callable
from typing import Any

import pytest
from support.programs.cli_server import Call, Running

from backburner.core.connections.connection import Connection, ConnectionState
from backburner.core.ids import new_connection_id
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
