"""A token that was stolen, or whose client was talked into it, reads no mail with its jobs."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from support.doubles.engine import Call, End, ScriptedEngine
from support.doubles.tool_servers import FakeServers
from support.requirements import requirement
from support.stage.api_stage import AskAs, Asker
from support.stage.make import USER
from support.stage.stage import Stage

from backburner.core.tool_policy import ALWAYS_HERE, OWN_SERVER
from backburner.tools.toolbox import Toolbox

TEXT = "Read my mail."
JOB = {"description": "Mail", "prompt": TEXT}
TASK = {"name": "Mail", "prompt": TEXT, "kind": "oneshot"}


@pytest.fixture
def servers() -> FakeServers:
    return FakeServers()


@pytest.fixture
def stage(set_up: Callable[..., Stage], servers: FakeServers) -> Stage:
    return set_up(toolbox=lambda deps: Toolbox(deps, open_session=servers.open_session))


@pytest.fixture
async def owner(ask_as: AskAs, stage: Stage, servers: FakeServers) -> Asker:
    asker = await ask_as(USER)
    servers.add(stage)
    return asker


async def make_client(owner: Asker, connections: Sequence[str] = ()) -> Asker:
    body = {"name": "editor", "scopes": ["read", "write"], "connections": list(connections)}
    made = await owner.do("POST", "/api/tokens", body)
    return Asker(owner.client, made["token"], owner.api)


def servers_in(engine: ScriptedEngine) -> set[str]:
    return {offer.tool.server for one in engine.requests for offer in one.tools} - {OWN_SERVER}


@requirement("A-mcp-isolation")
async def test_work_that_a_write_token_hands_out_reads_no_mail(
    owner: Asker, stage: Stage, servers: FakeServers
) -> None:
    client = await make_client(owner)
    chat = {"conversation": (await stage.chat()).id}
    for path, body in (
        ("/api/conversations", {"message": TEXT}),
        ("/api/conversations", {"what": TEXT, "when": "now"}),
        ("/api/tasks", TASK),
        # For a chat of the user, which has the connection itself.
        ("/api/jobs", JOB | chat),
    ):
        await client.do("POST", path, body)
    await stage.work()

    assert len(stage.engine.requests) >= 4
    assert servers_in(stage.engine) == set()
    assert servers["mail"].opened == 0


@requirement("A-mcp-isolation")
@pytest.mark.parametrize(("path", "body"), [("/api/tasks", TASK), ("/api/jobs", JOB)])
async def test_a_write_token_cannot_name_a_connection_that_it_was_not_given(
    owner: Asker, stage: Stage, path: str, body: dict[str, Any]
) -> None:
    client = await make_client(owner)
    chat = {"conversation": (await stage.chat()).id} if path == "/api/jobs" else {}

    refused = await client("POST", path, {**body, **chat, "connections": ["mail"]})

    assert refused.status_code in (400, 422)
    assert "may not use mail" in refused.text


async def test_a_token_that_was_given_a_connection_may_name_it(owner: Asker, stage: Stage) -> None:
    client = await make_client(owner, ["mail"])
    await client.do("POST", "/api/tasks", TASK)
    await stage.work()
    assert servers_in(stage.engine) == set()

    await client.do("POST", "/api/tasks", TASK | {"name": "Mail 2", "connections": ["mail"]})
    await stage.work()

    assert servers_in(stage.engine) == {"mail"}


async def test_a_job_of_a_token_does_not_use_what_its_user_has_allowed_in_their_chat(
    owner: Asker, stage: Stage, servers: FakeServers
) -> None:
    client = await make_client(owner, ["mail"])
    chat = await stage.chat()
    stage.engine.then(Call("send", {"words": "Hi"}))
    await stage.say(chat, "Send it.")
    await stage.work()
    stage.engine.then(Call("send", {"words": "Hi"}))
    await stage.answer(chat, ALWAYS_HERE)
    await stage.work()
    job = JOB | {"conversation": chat.id, "connections": ["mail"]}

    asked = []
    for asker in (owner, client):
        stage.engine.then(Call("send", {"words": "By a job"}), End({"complete": True}))
        started = await asker.do("POST", "/api/jobs", job)
        await stage.work()
        questions = (await owner.get(f"/api/conversations/{started['id']}"))["questions"]
        asked.append([question["purpose"] for question in questions])

    assert asked == [[], ["approval"]]
    assert servers["mail"].calls == [("send", {"words": "Hi"}), ("send", {"words": "By a job"})]
