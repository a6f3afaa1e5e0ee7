"""Work that a token hands out uses what the token was given by name, and nothing else of its user.

Of memories there is nothing in its prompts, and no tool.
"""

import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest
from mcp import Client
from support.doubles.engine import Call, End, Say
from support.people.mcp_clients import over_http, text
from support.people.tool_calls import children
from support.stage.api_stage import AskAs, Asker
from support.stage.make import USER
from support.stage.stage import Stage, prompts

from backburner.actions import memories
from backburner.api.app import build_api
from backburner.core.conversation import Conversation
from backburner.core.ids import ConversationId
from backburner.tools.mcp_server import McpServer
from backburner.tools.toolbox import Toolbox

PART = "# Memories\n"
MEMORY_TOOLS = {"memory_set", "memory_search", "memory_delete"}
TEA = "What about tea?"
JOB = {"description": "Tea", "prompt": TEA}
WITH, WITHOUT = (True, True), (False, False)


@pytest.fixture
def stage(set_up: Callable[..., Stage]) -> Stage:
    return set_up(otherwise=lambda _: [Say("Well.")], toolbox=Toolbox)


@pytest.fixture
async def owner(ask_as: AskAs, stage: Stage) -> Asker:
    owner = await ask_as(USER)
    await memories.remember(stage.deps, USER, "tea", "With milk.")
    return owner


@pytest.fixture
async def mcp(stage: Stage) -> AsyncIterator[httpx2.AsyncClient]:
    api = build_api(stage.deps, hosts={"localhost"}, checks={}, tools=McpServer(stage.deps))
    transport = httpx2.ASGITransport(app=api)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
        yield http


async def make_client(owner: Asker, *given: str) -> Asker:
    body: dict[str, Any] = {"name": "editor", "scopes": ["read", "write"]}
    made = await owner.do("POST", "/api/tokens", body | ({"uses": list(given)} if given else {}))
    return Asker(owner.client, made["token"], owner.api)


async def hand_out(asker: Asker, stage: Stage) -> list[Conversation]:
    """Start a conversation, two tasks, and a job for a chat of the user."""
    job = JOB | {"conversation": (await stage.chat()).id}
    started = [
        await asker.do("POST", "/api/conversations", {"message": TEA}),
        await asker.do("POST", "/api/conversations", {"what": TEA, "when": "now"}),
        await asker.do("POST", "/api/tasks", {"name": "Tea", "prompt": TEA, "kind": "oneshot"}),
        await asker.do("POST", "/api/jobs", job),
    ]
    return [load(stage, one["id"]) for one in started]


def load(stage: Stage, which: str) -> Conversation:
    return stage.database.run(lambda tx: tx.conversations.load(USER, ConversationId(which)))


def look_at(stage: Stage, work: Conversation) -> tuple[bool, bool]:
    """Tell whether memories were in a prompt of it, and whether it had tools for them."""
    requests = [one for one in stage.engine.requests if one.conversation.id == work.id]
    assert requests
    offered = {offer.tool.name for request in requests for offer in request.tools}
    said = "".join(prompts(stage.engine, work.id))
    return PART in said, bool(MEMORY_TOOLS & offered)


async def test_work_of_a_token_has_no_memories(owner: Asker, stage: Stage) -> None:
    handed_out = await hand_out(await make_client(owner), stage)
    await stage.work()

    assert [look_at(stage, work) for work in handed_out] == [WITHOUT] * 4
    shown = await owner.get(f"/api/conversations/{handed_out[0].id}")
    assert shown["uses"] == []
    assert (await owner.get(f"/api/tasks/{handed_out[2].id}"))["uses"] == []


@pytest.mark.parametrize("by", ["a token with memories", "the command line", "a browser"])
async def test_work_of_the_user_or_of_a_token_with_memories_has_them(
    owner: Asker, stage: Stage, browser: httpx2.AsyncClient, by: str
) -> None:
    asker = owner if by == "the command line" else await make_client(owner, "memories")
    if by == "a browser":
        link = (await owner.do("POST", "/api/sign-in-links"))["secret"]
        assert (await browser.post("/api/sign-in", json={"link": link})).status_code == 200
        asker = Browser(browser, "", owner.api)
    handed_out = await hand_out(asker, stage)
    await stage.work()

    assert [look_at(stage, work) for work in handed_out] == [WITH] * 4
    expected = ["memories"] if by == "a token with memories" else None
    shown = await owner.get(f"/api/conversations/{handed_out[0].id}")
    assert shown["uses"] == expected


class Browser(Asker):
    async def __call__(
        self, method: str, path: str, body: object = None, **more: Any
    ) -> httpx2.Response:
        return await self.client.request(method, path, json=body, **more)


@pytest.mark.parametrize(
    "call",
    [
        Call("background_task", JOB),
        Call("task_add", {"name": "Tea", "prompt": TEA, "interval": "1h"}),
        Call("schedule_work", {"what": TEA, "when": "in 20 seconds", "separate": True}),
    ],
    ids=lambda call: call.tool,
)
async def test_work_below_it_has_no_memories_either(owner: Asker, stage: Stage, call: Call) -> None:
    client = await make_client(owner)
    stage.engine.then(call, Say("Started."))
    chat = await client.do("POST", "/api/conversations", {"message": TEA})
    await stage.work()

    (child,) = children(stage, load(stage, chat["id"]))
    assert child.uses == frozenset()


async def test_a_job_for_it_has_no_memories_whoever_starts_it(owner: Asker, stage: Stage) -> None:
    chat = await (await make_client(owner)).do("POST", "/api/conversations", {"message": TEA})

    for asker in (owner, await make_client(owner, "memories")):
        job = await asker.do("POST", "/api/jobs", JOB | {"conversation": chat["id"]})
        assert load(stage, job["id"]).uses == frozenset()


async def test_a_proposal_and_a_test_run_of_it_have_no_memories(owner: Asker, stage: Stage) -> None:
    client = await make_client(owner)
    propose = {"name": "More tea", "prompt": TEA, "interval": "1h", "why": "It helps."}
    stage.engine.then(Call("task_propose", propose), End({"complete": True, "message": "Done."}))
    task = await client.do("POST", "/api/tasks", {"name": "x", "prompt": "y", "kind": "oneshot"})
    await stage.work()
    (proposed,) = children(stage, load(stage, task["id"]))

    await owner.do("POST", f"/api/tasks/{proposed.id}/approve")
    trial = await owner.do("POST", f"/api/tasks/{proposed.id}/test-run")
    await stage.work()

    assert load(stage, proposed.id).uses == frozenset()
    assert look_at(stage, load(stage, trial["conversation_id"])) == WITHOUT


async def test_a_message_of_a_token_leaves_a_conversation_of_the_user_its_rights(
    owner: Asker, stage: Stage
) -> None:
    chat, client = await stage.chat(), await make_client(owner)

    await client.do("POST", f"/api/conversations/{chat.id}/messages", {"content": TEA})
    await stage.work()

    assert look_at(stage, chat) == WITH
    # And one of the user leaves that of a token without them.
    theirs = await client.do("POST", "/api/conversations", {"message": "Hello."})
    await owner.do("POST", f"/api/conversations/{theirs['id']}/messages", {"content": TEA})
    await stage.work()
    assert look_at(stage, load(stage, theirs["id"])) == WITHOUT


@pytest.mark.parametrize(("given", "expected"), [((), WITHOUT), (("memories",), WITH)])
async def test_a_client_over_mcp_and_its_jobs_have_what_the_token_was_given(
    owner: Asker,
    stage: Stage,
    mcp: httpx2.AsyncClient,
    given: tuple[str, ...],
    expected: tuple[bool, bool],
) -> None:
    token = (await make_client(owner, *given)).token
    async with over_http(mcp, token) as client:
        offered = {tool.name for tool in (await client.list_tools()).tools}
        found = await client.call_tool("memory_search", {"query": "tea"})
        job = await start_job(client)
        await client.call_tool("task_add", {"name": "Tea", "prompt": TEA, "interval": "1h"})
    await stage.work()

    assert bool(MEMORY_TOOLS & offered) is expected[1]
    assert ("milk" in text(found)) is expected[1]
    if not given:
        assert "`--with memories`" in text(found)
    started = load(stage, job)
    assert look_at(stage, started) == expected
    assert started.parent_id is not None
    place = load(stage, started.parent_id)
    below = {work.uses for work in children(stage, place)}
    assert below == {place.uses} == {frozenset(given)}


async def test_a_token_takes_over_no_conversation_with_other_rights(
    owner: Asker, stage: Stage, mcp: httpx2.AsyncClient
) -> None:
    places = []
    for given in ((), (), ("memories",)):
        client = await make_client(owner, *given)
        async with over_http(mcp, client.token) as opened:
            places.append(load(stage, await start_job(opened)).parent_id)
        await client.do("POST", "/api/sign-out", {})

    assert places[0] == places[1] != places[2]


async def test_a_list_of_tokens_shows_what_they_were_given(owner: Asker) -> None:
    await make_client(owner)
    given = await make_client(owner, "memories")

    listed = (await given.get("/api/tokens"))["items"]

    assert [one["uses"] for one in listed if one["name"] == "editor"] == [[], ["memories"]]
    assert [one["uses"] for one in listed if one["name"] != "editor"] == [None]
    refused = await owner("POST", "/api/tokens", {"name": "x", "uses": ["mail"]})
    assert refused.status_code == 422


async def start_job(client: Client) -> str:
    started = text(await client.call_tool("background_task", JOB))
    found = re.search(r"c_\w{26}", started)
    assert found, started
    return found[0]
