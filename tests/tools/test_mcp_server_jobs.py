"""MCP clients start jobs, wait for them and fetch results; other tokens see nothing of it."""

import asyncio
import re
from collections.abc import AsyncIterator

import httpx2
import pytest
from mcp import Client
from support.doubles.engine import End, Wait
from support.people.mcp_clients import make_token, over_http, text
from support.requirements import requirement
from support.stage.api_stage import read_rows
from support.stage.make import MATE, USER
from support.stage.stage import BOUND, Stage

from backburner.actions.work import wait
from backburner.api.app import build_api
from backburner.core.accounts import Scope
from backburner.core.conversation import Conversation, Kind, Use
from backburner.core.ids import ConversationId
from backburner.tools.mcp_server import McpServer

JOB = {"description": "Count", "prompt": "Count the files."}


@pytest.fixture
async def http(stage: Stage) -> AsyncIterator[httpx2.AsyncClient]:
    api = build_api(stage.deps, hosts={"localhost"}, checks={}, tools=McpServer(stage.deps))
    transport = httpx2.ASGITransport(app=api)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
        yield http


async def start(client: Client, **job: str) -> str:
    """Start a job, and give its id."""
    started = text(await client.call_tool("background_task", JOB | job))
    found = re.search(r"c_\w{26}", started)
    assert found, started
    return found[0]


async def ask(client: Client, tool: str, **arguments: object) -> str:
    called = await client.call_tool(tool, arguments)
    assert not called.is_error, text(called)
    return text(called)


def load(stage: Stage, which: str) -> Conversation:
    return stage.database.run(lambda tx: tx.conversations.load(USER, ConversationId(which)))


@requirement("C-mcp")
async def test_a_client_starts_a_job_waits_for_it_and_fetches_its_result(
    http: httpx2.AsyncClient, stage: Stage
) -> None:
    stage.engine.then(End({"complete": True, "message": "There are 7 files."}))
    async with over_http(http, await make_token(stage)) as client:
        job = await start(client)
        assert "running" in await ask(client, "background_list")
        waiting = asyncio.create_task(ask(client, "background_block", task_ids=[job]))
        await stage.work()
        async with asyncio.timeout(BOUND):
            assert "There are 7 files." in await waiting
        assert "There are 7 files." in await ask(client, "background_output", task_id=job)
        await ask(client, "background_clear")
        assert await ask(client, "background_list") == "There are no such jobs."


@requirement("C-mcp")
async def test_a_client_is_told_to_fetch_results_and_not_that_they_are_sent(
    http: httpx2.AsyncClient, stage: Stage
) -> None:
    stage.engine.then(End({"complete": True, "message": "There are 7 files."}))
    async with over_http(http, await make_token(stage)) as client:
        texts = [str(tool.description) for tool in (await client.list_tools()).tools]
        started = text(await client.call_tool("background_task", JOB))
        await stage.work()
        job = (re.findall(r"c_\w{26}", started) or [""])[0]
        resumed = await ask(client, "background_resume", task_id=job, message="Again.")
        added = await ask(client, "task_add", name="watch", prompt="Look.", interval="30m")

    promised = ("sent here", "sent to this conversation", "to this conversation", "reports here")
    for words in (*texts, started, resumed, added):
        assert not [promise for promise in promised if promise in words], words
    assert "background_output" in started
    assert "background_output" in resumed
    assert "task_history" in added


async def test_a_second_task_of_one_name_is_refused(http: httpx2.AsyncClient, stage: Stage) -> None:
    task = {"name": "watch-ci", "prompt": "Look at CI.", "interval": "30m"}
    async with over_http(http, await make_token(stage)) as client:
        await ask(client, "task_add", **task)
        again = await client.call_tool("task_add", task | {"name": "Watch-CI"})
        await ask(client, "task_cancel", task="watch-ci")
        await ask(client, "task_add", **task)

    assert again.is_error
    assert "already" in text(again)
    assert "change that task" in text(again)


async def test_job_results_are_stored_in_the_clients_conversation_without_a_reply(
    http: httpx2.AsyncClient, stage: Stage
) -> None:
    stage.engine.then(End({"complete": True, "message": "There are 7 files."}))
    async with over_http(http, await make_token(stage)) as client:
        job = load(stage, await start(client))
        await stage.work()

    assert job.kind is Kind.JOB
    assert job.parent_id
    place = load(stage, job.parent_id)
    assert place.keeps_only
    assert any("There are 7 files." in said for said in stage.said(place))
    assert not stage.history(place)
    assert [request.conversation.id for request in stage.engine.requests] == [job.id]


@requirement("C-mcp")
async def test_a_client_that_waits_is_told_at_once(
    http: httpx2.AsyncClient, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A hint ends the wait, and no poll.
    monkeypatch.setattr(wait, "WAIT_POLL_SECONDS", 3600)
    let_go = asyncio.Event()
    stage.engine.then(Wait(let_go), End({"complete": True, "message": "There are 7 files."}))
    stage.engine.then(Wait(let_go), End({"complete": True, "message": "There are 8."}))
    async with over_http(http, await make_token(stage)) as client, asyncio.timeout(BOUND):
        jobs = [await start(client), await start(client)]
        waiting = asyncio.create_task(ask(client, "background_block", task_ids=jobs))
        await stage.take_up()
        assert not waiting.done()
        let_go.set()
        await stage.idle()
        result = await waiting

    assert "There are 7 files." in result
    assert "There are 8." in result


async def test_waiting_ends_when_the_time_is_up(http: httpx2.AsyncClient, stage: Stage) -> None:
    async with over_http(http, await make_token(stage)) as client, asyncio.timeout(BOUND):
        job = await start(client)
        result = await ask(client, "background_block", task_ids=[job], timeout=0.05)

    assert "running" in result


async def test_a_client_has_tasks_and_memories_of_its_user(
    http: httpx2.AsyncClient, stage: Stage
) -> None:
    async with over_http(http, await make_token(stage, uses=Use)) as client:
        task = {"name": "watch-ci", "prompt": "Look at CI.", "interval": "30m"}
        assert "watch-ci" in await ask(client, "task_add", **task)
        assert "watch-ci" in await ask(client, "task_list")
        await ask(client, "memory_set", key="coffee", text="They drink it black.")
        assert "black" in await ask(client, "memory_search", query="coffee")


@requirement("C-mcp")
async def test_a_read_only_token_lists_and_creates_nothing(
    http: httpx2.AsyncClient, stage: Stage
) -> None:
    async with over_http(http, await make_token(stage, scopes=[Scope.READ], uses=Use)) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert await ask(client, "background_list") == "There are no such jobs."
        assert "c_x" in await ask(client, "background_block", task_ids=["c_x"])
        missing = await client.call_tool("background_output", {"task_id": "c_x"})
        await ask(client, "task_list")
        await ask(client, "memory_search", query="coffee")
        refused = await client.call_tool("background_task", JOB)

    assert names == [
        "background_output",
        "background_block",
        "background_list",
        "task_list",
        "task_history",
        "memory_search",
    ]
    assert missing.is_error
    assert refused.is_error
    assert read_rows(stage)["conversations"] == []
    assert stage.engine.requests == []


async def test_jobs_of_another_token_cannot_be_reached(
    http: httpx2.AsyncClient, stage: Stage
) -> None:
    stage.engine.then(End({"complete": True, "message": "There are 7 files."}))
    async with over_http(http, await make_token(stage, uses=Use)) as client:
        job = await start(client)
        await ask(client, "task_add", name="mine", prompt="Look.", interval="30m")
        await ask(client, "memory_set", key="coffee", text="They drink it black.")
    await stage.work()
    before = stage.load(load(stage, job))

    for user in (MATE, USER):
        other = await make_token(stage, user, name="other", uses=Use)
        async with over_http(http, other) as client:
            await ask(client, "memory_set", key="tea", text="Green.")
            for tool in ("background_output", "background_resume"):
                asked = {"task_id": job} | ({"message": "Go on."} if "resume" in tool else {})
                assert (await client.call_tool(tool, asked)).is_error
            for tool in ("background_cancel", "background_clear", "background_block"):
                result = await ask(client, tool, task_ids=[job])
                assert result == f"There are no such jobs: {job}."
            assert await ask(client, "background_list") == "There are no such jobs."
            if user == MATE:
                assert "mine" not in await ask(client, "task_list")
                assert (await client.call_tool("task_cancel", {"task": "mine"})).is_error
                assert "black" not in await ask(client, "memory_search", query="coffee")

    assert stage.load(before) == before
