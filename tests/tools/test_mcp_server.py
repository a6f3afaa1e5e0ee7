"""The tools over MCP: which a client sees and may call, and where its work belongs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from sqlalchemy import func, select
from support.people.mcp_clients import ALL, Bench, build, make_token, over_http, text
from support.requirements import requirement
from support.servers.live import serving
from support.stage.make import MATE, USER
from support.stage.stage import BOUND, Stage
from support.stage.until import until

from backburner.actions import conversations
from backburner.actions.accounts import credentials
from backburner.actions.origin import NO_CONVERSATION
from backburner.api.http.caller_limits import CallerLimits, HeldRequest
from backburner.core.accounts import CredentialKind, Scope
from backburner.store import tables
from backburner.tools.mcp_server import SERVER_NAME

HEADERS = {"accept": "application/json, text/event-stream"}
ERAS = ["auto", "legacy"]


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def api(stage: Stage, bench: Bench) -> FastAPI:
    return build(stage, bench)


@pytest.fixture
async def http(api: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=api)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
        yield http


async def post(
    http: httpx2.AsyncClient, secret: str | None, method: str = "tools/list", **more: Any
) -> httpx2.Response:
    headers = {**HEADERS, **more.pop("headers", {})}
    if secret is not None:
        headers["authorization"] = f"Bearer {secret}"
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": more}
    return await http.post("/mcp", json=body, headers=headers)


@requirement("C-mcp")
@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_of_either_era_lists_and_calls_tools(
    http: httpx2.AsyncClient, stage: Stage, mode: str
) -> None:
    async with over_http(http, await make_token(stage), mode) as opened:
        assert opened.server_info
        assert opened.server_info.name == SERVER_NAME
        tools = (await opened.list_tools()).tools
        called = await opened.call_tool("change", {"text": "x"})

    assert [tool.name for tool in tools] == ["look", "change", "wait"]
    assert tools[0].description == "Look."
    assert tools[0].input_schema["properties"]["text"]["description"] == "Any."
    hints = [tool.annotations.read_only_hint for tool in tools if tool.annotations]
    assert hints == [True, False, False]
    assert (text(called), called.is_error) == ("changed: x", False)


async def test_a_tool_that_needs_approval_is_not_offered_to_clients(
    http: httpx2.AsyncClient, stage: Stage, bench: Bench
) -> None:
    async with over_http(http, await make_token(stage)) as opened:
        called = await opened.call_tool("costly", {"text": "x"})

    assert called.is_error
    assert text(called) == "There is no tool 'costly' for this token."
    assert bench.origins == []


@pytest.mark.parametrize("mode", ERAS)
async def test_a_token_that_may_only_read_is_shown_and_may_call_only_what_reads(
    http: httpx2.AsyncClient, stage: Stage, bench: Bench, mode: str
) -> None:
    async with over_http(http, await make_token(stage, scopes=[Scope.READ]), mode) as opened:
        tools = (await opened.list_tools()).tools
        seen = await opened.call_tool("look", {"text": "x"})
        refused = await opened.call_tool("change", {"text": "x"})

    assert [tool.name for tool in tools] == ["look"]
    assert text(seen) == "seen: x"
    assert refused.is_error
    assert text(refused) == (
        "There is no tool 'change' for this token. This token lacks the scope: write."
    )
    assert len(bench.origins) == 1


async def test_a_client_gets_error_messages_and_no_internal_details(
    http: httpx2.AsyncClient, stage: Stage
) -> None:
    async with over_http(http, await make_token(stage)) as opened:
        result = [await opened.call_tool("change", {"text": one}) for one in ("conflict", "fault")]
        result.append(await opened.call_tool("change", {"text": 1, "other": 2}))

    assert all(one.is_error for one in result)
    assert text(result[0]) == "It does not fit. Try another."
    assert text(result[1]) == "change failed with an internal error."
    assert text(result[2]).startswith("change was not called. text: ")


@requirement("C-mcp")
async def test_the_work_of_a_token_belongs_to_one_conversation(
    http: httpx2.AsyncClient, stage: Stage, bench: Bench
) -> None:
    mine, other = await make_token(stage), await make_token(stage, name="other")
    for secret in (mine, mine, other):
        async with over_http(http, secret) as opened:
            await asyncio.gather(*(opened.call_tool("change", {}) for _ in range(3)))

    places = [origin.conversation for origin in bench.origins]
    assert len(set(places[:6])) == 1
    assert len(set(places)) == 2
    found = stage.database.run(lambda tx: tx.conversations.load(USER, places[0]))
    assert found.title == "An Editor (token editor)"
    assert all(origin.user == USER and origin.turn is None for origin in bench.origins)


async def test_a_client_that_only_reads_gets_no_conversation(
    http: httpx2.AsyncClient, stage: Stage, bench: Bench
) -> None:
    async with over_http(http, await make_token(stage)) as opened:
        await opened.list_tools()
        await opened.call_tool("look", {})
        assert count_conversations(stage) == 0
        await opened.call_tool("change", {})
        await opened.call_tool("look", {})

    nowhere, *somewhere = (origin.conversation for origin in bench.origins)
    assert nowhere == NO_CONVERSATION
    assert len(set(somewhere)) == count_conversations(stage) == 1


async def test_an_archived_conversation_of_a_client_is_replaced(
    http: httpx2.AsyncClient, stage: Stage, bench: Bench
) -> None:
    secret = await make_token(stage)
    async with over_http(http, secret, "legacy") as opened:
        await opened.call_tool("change", {})
        await conversations.archive(stage.deps, USER, bench.origins[0].conversation)
        await opened.call_tool("change", {})

    first, second = (origin.conversation for origin in bench.origins)
    assert first != second
    assert stage.database.run(lambda tx: tx.conversations.load(USER, second)).title == "editor"


async def test_a_token_that_replaces_another_keeps_its_conversation(
    http: httpx2.AsyncClient, stage: Stage, bench: Bench
) -> None:
    stage.user()
    for _ in range(2):
        # As each start of a server on this machine does it.
        token = await credentials.issue_local_token(stage.deps, USER)
        await credentials.revoke_other_local_tokens(stage.deps, USER, token)
        async with over_http(http, token.secret) as opened:
            await opened.call_tool("change", {})

    first, second = (origin.conversation for origin in bench.origins)
    assert first == second


async def test_another_user_gets_a_conversation_of_their_own(
    http: httpx2.AsyncClient, stage: Stage, bench: Bench
) -> None:
    for user in (USER, MATE):
        async with over_http(http, await make_token(stage, user)) as opened:
            await opened.call_tool("change", {})

    mine, theirs = bench.origins
    assert (mine.user, theirs.user) == (USER, MATE)
    assert mine.conversation != theirs.conversation


async def test_a_request_without_a_valid_token_is_refused(
    http: httpx2.AsyncClient, stage: Stage, bench: Bench
) -> None:
    expired = await make_token(stage, expires_at=stage.database.run(lambda tx: tx.now))
    revoked = await make_token(stage, MATE)
    await credentials.sign_out_everywhere(stage.deps, MATE)
    session = stage.database.run(
        lambda tx: credentials.issue(tx, USER, CredentialKind.SESSION, ALL)
    ).secret
    for secret in (None, "", "bb_no", expired, revoked, session):
        answer = await post(http, secret, "tools/call", name="change", arguments={})
        assert answer.status_code == 401, secret
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["www-authenticate"] == "Bearer"
    cookie = {"cookie": f"backburner={session}"}
    assert (await post(http, None, headers=cookie)).status_code == 401
    assert bench.origins == []


async def test_a_token_that_may_neither_read_nor_write_is_refused(
    http: httpx2.AsyncClient, stage: Stage
) -> None:
    answer = await post(http, await make_token(stage, scopes=[Scope.OPERATE]))
    assert answer.status_code == 403


async def test_pages_of_others_and_names_that_are_not_ours_are_refused(
    http: httpx2.AsyncClient, stage: Stage
) -> None:
    secret = await make_token(stage)
    for headers, status in (
        ({"origin": "http://localhost"}, 200),
        ({"origin": "https://elsewhere.example"}, 403),
        ({"origin": "null"}, 403),
        ({"host": "elsewhere.example"}, 421),
    ):
        answer = await post(http, secret, headers=headers)
        assert (headers, answer.status_code) == (headers, status)


async def test_only_post_is_answered_and_bodies_are_bounded(
    http: httpx2.AsyncClient, stage: Stage
) -> None:
    secret = await make_token(stage)
    headers = {"authorization": f"Bearer {secret}", **HEADERS}
    for method in ("GET", "DELETE", "PUT"):
        answer = await http.request(method, "/mcp", headers=headers)
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert (await http.get("/mcp")).status_code == 401
    large = await post(http, secret, "tools/call", name="look", arguments={"text": "x" * 2**20})
    assert large.status_code == 413


async def test_a_user_has_so_many_calls_open(
    http: httpx2.AsyncClient, api: FastAPI, stage: Stage
) -> None:
    mine, theirs = await make_token(stage), await make_token(stage, MATE)
    limits: CallerLimits = api.state.limits
    with ExitStack() as opened:
        for _ in range(10):
            opened.enter_context(limits.hold(USER, HeldRequest.CALL))

        refused, accepted = await post(http, mine), await post(http, theirs)

    assert refused.status_code == 429
    assert "You have 10 calls open" in refused.json()["detail"]
    assert accepted.status_code == 200
    assert (await post(http, mine)).status_code == 200


async def test_a_malformed_request_is_refused(http: httpx2.AsyncClient, stage: Stage) -> None:
    headers = {
        "authorization": f"Bearer {await make_token(stage)}",
        "content-type": "application/json",
        **HEADERS,
    }
    for body in (b"", b"{", b"[]", b"7", b'{"jsonrpc":"2.0"}', b"\xff"):
        for era in ({}, {"mcp-protocol-version": "2026-07-28"}, {"mcp-protocol-version": "x"}):
            answer = await http.post("/mcp", content=body, headers={**headers, **era})
            assert answer.status_code == 400, (body, era, answer.text)


async def test_a_call_ends_when_its_client_leaves(api: FastAPI, stage: Stage, bench: Bench) -> None:
    secret = await make_token(stage)
    async with serving(api) as address, httpx2.AsyncClient(base_url=address) as http:
        calling = asyncio.create_task(post(http, secret, "tools/call", name="wait"))
        async with asyncio.timeout(BOUND):
            await bench.began.wait()
            calling.cancel()
            await bench.ended.wait()


async def test_a_call_ends_when_its_user_is_signed_out_everywhere(
    api: FastAPI, stage: Stage, bench: Bench
) -> None:
    secret = await make_token(stage, MATE)
    async with serving(api) as address, httpx2.AsyncClient(base_url=address) as http:
        calling = asyncio.create_task(post(http, secret, "tools/call", name="wait"))
        async with asyncio.timeout(BOUND):
            await bench.began.wait()
            await until_watched(api)
            await credentials.sign_out_everywhere(stage.deps, MATE)
            await bench.ended.wait()
            answer = await calling

    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_call_ends_when_the_server_stops(api: FastAPI, stage: Stage, bench: Bench) -> None:
    secret = await make_token(stage)
    async with httpx2.AsyncClient() as http, asyncio.timeout(BOUND):
        async with serving(api) as address:
            http.base_url = httpx2.URL(address)
            calling = asyncio.create_task(post(http, secret, "tools/call", name="wait"))
            await bench.began.wait()
            await until_watched(api)
        answer = await calling

    assert answer.status_code == 503
    assert bench.ended.is_set()


async def until_watched(api: FastAPI) -> None:
    await until(lambda: api.state.feed._subscribers)


def count_conversations(stage: Stage) -> int:
    counted = select(func.count()).select_from(tables.conversations)
    return stage.database.run(lambda tx: tx.connection.execute(counted).scalar_one())
