"""The fake model API plays its script, and records its requests."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import claude_agent_sdk as sdk
import httpx2
import pytest

from support.model_api import (
    CallTool,
    Cut,
    Delay,
    Garbage,
    GiveOutcome,
    ModelApi,
    Refuse,
    Say,
    Stall,
    Step,
    Usage,
)

ANTHROPIC = "/v1/messages"
OPENAI = "/v1/chat/completions"
BOTH = pytest.mark.parametrize("path", [ANTHROPIC, OPENAI])
FROM_CLI = {"user-agent": "claude-cli/2.1"}


@pytest.fixture
async def api() -> AsyncIterator[ModelApi]:
    async with ModelApi() as api:
        yield api


@pytest.fixture
async def client(api: ModelApi) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=api.address, timeout=10) as client:
        yield client


def ask(*tools: str, text: str = "Hello?", stream: bool = False, **more: Any) -> dict[str, Any]:
    """Make a request that both APIs understand."""
    offered = [{"name": name, "function": {"name": name}} for name in tools]
    messages = [{"role": "user", "content": text}]
    body = {"model": "m", "messages": messages, "tools": offered, "stream": stream}
    return body | {"stream_options": {"include_usage": True}} | more


async def events(client: httpx2.AsyncClient, path: str, *tools: str) -> list[dict[str, Any]]:
    found = list[dict[str, Any]]()
    async with client.stream("POST", path, json=ask(*tools, stream=True)) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: {"):
                found.append(json.loads(line.removeprefix("data: ")))
    return found


async def test_an_anthropic_message_holds_words_calls_and_usage(
    api: ModelApi, client: httpx2.AsyncClient
) -> None:
    api.then(Say("Hi."), CallTool("send", {"to": "x"}), Usage(1, 2, 3, 4))

    answer = await client.post(ANTHROPIC, json=ask("mcp__backburner__send"))

    message = answer.json()
    text, call = message["content"]
    assert text == {"type": "text", "text": "Hi."}
    assert (call["name"], call["input"]) == ("mcp__backburner__send", {"to": "x"})
    assert message["stop_reason"] == "tool_use"
    assert message["usage"] == {
        "input_tokens": 1,
        "output_tokens": 2,
        "cache_read_input_tokens": 3,
        "cache_creation_input_tokens": 4,
    }


async def test_an_anthropic_message_is_streamed_in_pieces(
    api: ModelApi, client: httpx2.AsyncClient
) -> None:
    api.then(Say("abcdef", pieces=3), CallTool("send", {"to": "x"}), Usage(output=7))

    found = await events(client, ANTHROPIC, "mcp__backburner__send")

    deltas = [one["delta"] for one in found if one["type"] == "content_block_delta"]
    assert [delta.get("text") for delta in deltas] == ["ab", "cd", "ef", None]
    assert json.loads(deltas[-1]["partial_json"]) == {"to": "x"}
    assert found[-2]["usage"] == {"output_tokens": 7}
    assert found[-1]["type"] == "message_stop"


async def test_an_openai_completion_holds_words_calls_and_usage(
    api: ModelApi, client: httpx2.AsyncClient
) -> None:
    api.then(Say("Hi."), CallTool("send", {"to": "x"}), CallTool("look"), Usage(1, 2, 3))

    answer = await client.post(OPENAI, json=ask("send", "look"))

    completion = answer.json()
    message = completion["choices"][0]["message"]
    assert message["content"] == "Hi."
    called = [(call["function"]["name"], call["id"]) for call in message["tool_calls"]]
    assert [name for name, _ in called] == ["send", "look"]
    assert len({name for _, name in called}) == 2
    assert completion["usage"]["prompt_tokens"] == 4
    assert completion["usage"]["completion_tokens"] == 2
    assert completion["usage"]["prompt_tokens_details"] == {"cached_tokens": 3}


async def test_an_openai_completion_is_streamed_with_its_usage_last(
    api: ModelApi, client: httpx2.AsyncClient
) -> None:
    api.then(Say("abcd", pieces=2), CallTool("send", "{no json"))

    *chunks, last = await events(client, OPENAI, "send")

    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert "".join(delta.get("content") or "" for delta in deltas) == "abcd"
    (call,) = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert call["function"] == {"name": "send", "arguments": "{no json"}
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert last["usage"]["prompt_tokens"] == api.requests[0].size // 4


async def test_no_usage_is_told_where_the_server_is_one_that_does_not(
    api: ModelApi, client: httpx2.AsyncClient
) -> None:
    api.reports_usage = False

    assert not any("usage" in chunk for chunk in await events(client, OPENAI))


async def test_an_outcome_goes_to_the_tool_for_it(
    api: ModelApi, client: httpx2.AsyncClient
) -> None:
    api.then(GiveOutcome({"complete": True}))
    api.then(GiveOutcome({"complete": True}))

    claude = await client.post(ANTHROPIC, json=ask("StructuredOutput"))
    other = await client.post(OPENAI, json=ask("final_result"))

    assert claude.json()["content"][0]["name"] == "StructuredOutput"
    (call,) = other.json()["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "final_result"


async def test_an_outcome_is_text_where_a_format_is_asked_for(
    api: ModelApi, client: httpx2.AsyncClient
) -> None:
    api.then(GiveOutcome({"complete": True}))

    answer = await client.post(OPENAI, json=ask(response_format={"type": "json_object"}))

    assert json.loads(answer.json()["choices"][0]["message"]["content"]) == {"complete": True}


@BOTH
async def test_no_two_calls_have_the_same_id(
    api: ModelApi, client: httpx2.AsyncClient, path: str
) -> None:
    api.then(CallTool("send"), CallTool("send"))
    api.then(CallTool("send"))

    both = [(await client.post(path, json=ask("send"))).text for _ in range(2)]

    found = [part for text in both for part in text.split('"') if part[:5] in ("call_", "toolu")]
    assert len(found) == len(set(found)) == 3


@BOTH
async def test_a_script_may_depend_on_what_is_asked(
    api: ModelApi, client: httpx2.AsyncClient, path: str
) -> None:
    api.then_as(lambda heard: [Say(heard.body["messages"][-1]["content"].upper())])

    answer = await client.post(path, json=ask(text="echo"))

    assert "ECHO" in answer.text


@BOTH
async def test_a_refusal_has_its_status_and_says_when_to_come_back(
    api: ModelApi, client: httpx2.AsyncClient, path: str
) -> None:
    api.then(Refuse(529, retry_after="7", message="Too much."))

    answer = await client.post(path, json=ask(stream=True))

    assert answer.status_code == 529
    assert answer.headers["retry-after"] == "7"
    assert answer.json()["error"]["message"] == "Too much."


@BOTH
async def test_a_refusal_may_come_in_the_middle(
    api: ModelApi, client: httpx2.AsyncClient, path: str
) -> None:
    api.then(Say("Well"), Refuse(529, message="Too much."))

    found = await events(client, path)

    assert found[-1]["error"]["message"] == "Too much."


@BOTH
@pytest.mark.parametrize("stream", [True, False])
async def test_a_connection_can_be_cut(
    api: ModelApi, client: httpx2.AsyncClient, path: str, *, stream: bool
) -> None:
    api.then(Say("Well"), Cut())

    with pytest.raises(httpx2.TransportError):
        await client.post(path, json=ask(stream=stream))


@BOTH
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("fault", [Stall(), Delay(600)], ids=["stall", "delay"])
async def test_what_stalls_ends_when_the_other_side_leaves(
    api: ModelApi, client: httpx2.AsyncClient, path: str, fault: Step, *, stream: bool
) -> None:
    api.then(Say("Well"), fault)

    with pytest.raises(httpx2.ReadTimeout):
        await client.post(path, json=ask(stream=stream), timeout=0.1)

    async with asyncio.timeout(5):
        await api.requests[0].gone.wait()


@BOTH
async def test_a_delay_ends_when_it_is_let_go(
    api: ModelApi, client: httpx2.AsyncClient, path: str
) -> None:
    let_go = asyncio.Event()
    api.then(Say("Well"), Delay(let_go), Say(" done"))
    asking = asyncio.create_task(events(client, path))
    await api.wait_for_requests(1)
    assert not asking.done()

    let_go.set()

    assert "done" in json.dumps(await asking)


@BOTH
async def test_garbage_is_no_stream_of_events(
    api: ModelApi, client: httpx2.AsyncClient, path: str
) -> None:
    api.then(Garbage())

    answer = await client.post(path, json=ask(stream=True))

    assert answer.status_code == 200
    assert answer.content == Garbage().data


async def test_everything_asked_is_kept(api: ModelApi, client: httpx2.AsyncClient) -> None:
    canary = 'canary "ö"'
    await client.post(OPENAI, json=ask(text="short"), headers={"x-test": "in-a-header"})
    await client.post("/s/path-secret" + ANTHROPIC, json=ask(text=f"long {canary}"))

    assert [heard.path for heard in api.received] == [OPENAI, "/s/path-secret/v1/messages"]
    assert api.largest == len(api.received[1].raw) > len(api.received[0].raw)
    assert all(api.holds(words) for words in (canary, "in-a-header", "path-secret"))
    assert not api.holds("canary that never was")


async def test_what_claude_code_asks_for_itself_takes_no_reply_of_the_script(
    api: ModelApi, client: httpx2.AsyncClient
) -> None:
    api.then(Say("For the agent."))

    aside = await client.post(ANTHROPIC, json=ask(), headers=FROM_CLI)
    agent = await client.post(ANTHROPIC, json=ask(context_management={}), headers=FROM_CLI)

    assert "For the agent." not in aside.text
    assert "For the agent." in agent.text
    assert (len(api.received), len(api.requests), api.left) == (2, 1, 0)


@BOTH
async def test_tools_without_proper_names_are_refused(
    api: ModelApi, client: httpx2.AsyncClient, path: str
) -> None:
    twice = await client.post(path, json=ask("send", "send"))
    odd = await client.post(path, json=ask("files.read"))
    empty = await client.post(path, json={"model": "m"})

    assert [twice.status_code, odd.status_code, empty.status_code] == [400, 400, 400]
    assert len(api.complaints) == 3


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "anthropic", "openai"),
    [
        ({}, 200, 200),
        (
            {"properties": {"a.b-c_1": TEXT, "b": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}},
            200,
            200,
        ),
        ({"properties": {"a": {"properties": {"$filter": TEXT}, "anyOf": [{}]}}}, 200, 200),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, 200, 200),
        ({"type": "string"}, 400, 400),
        ({"properties": ["a"]}, 400, 400),
        ({"properties": {"a": {"type": "any"}}}, 400, 400),
        ({"properties": {"a": {"minimum": 0, "exclusiveMinimum": True}}}, 400, 400),
        ({"allOf": [{}]}, 400, 400),
        ({"enum": [{}]}, 200, 400),
        ({"not": {}}, 200, 400),
        ({"properties": {"$filter": TEXT}}, 400, 200),
        ({"properties": {"a" * 65: TEXT}}, 400, 200),
        ({"properties": {"a": {"$ref": "#/$defs/lost"}}}, 400, 200),
        ({"properties": {"a": {"anyOf": [{"type": ["array", "null"]}]}}}, 200, 400),
        ({"properties": {"a": {"pattern": r"\p{L}"}}}, 200, 400),
        ({"properties": {"a": {"pattern": "(?!a)"}}}, 200, 400),
    ],
    ids=str,
)
async def test_tools_are_refused_for_their_schemas_as_the_real_apis_do(
    client: httpx2.AsyncClient, schema: dict[str, Any], anthropic: int, openai: int
) -> None:
    schema = {"type": "object", "properties": {}} | schema
    tools = [{"name": "a", "input_schema": schema}]
    functions = [{"type": "function", "function": {"name": "a", "parameters": schema}}]

    assert (await client.post(ANTHROPIC, json=ask(tools=tools))).status_code == anthropic
    assert (await client.post(OPENAI, json=ask(tools=functions))).status_code == openai


async def test_more_and_longer_tools_than_openai_takes_are_refused(
    client: httpx2.AsyncClient,
) -> None:
    async def status(path: str, *described: str) -> int:
        tools = [{"name": f"a{n}", "description": text} for n, text in enumerate(described)]
        functions = [{"type": "function", "function": tool} for tool in tools]
        given = functions if path == OPENAI else tools
        return (await client.post(path, json=ask(tools=given))).status_code

    assert await status(OPENAI, *128 * ["a" * 1_024]) == 200
    assert await status(OPENAI, *129 * ["a"]) == await status(OPENAI, "a" * 1_025) == 400
    assert await status(ANTHROPIC, *129 * ["a" * 1_025]) == 200


OPENAI_CALL = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "send"}}]}
OPENAI_RESULT = {"role": "tool", "tool_call_id": "a", "content": "Done."}
ANTHROPIC_CALL = {"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]}
ANTHROPIC_RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}
WORDS = {"role": "user", "content": "Hello?"}


@pytest.mark.parametrize(
    ("path", "call", "result"),
    [(OPENAI, OPENAI_CALL, OPENAI_RESULT), (ANTHROPIC, ANTHROPIC_CALL, ANTHROPIC_RESULT)],
)
async def test_calls_and_results_that_do_not_belong_together_are_refused(
    client: httpx2.AsyncClient, path: str, call: dict[str, Any], result: dict[str, Any]
) -> None:
    async def status(*messages: dict[str, Any]) -> int:
        return (await client.post(path, json=ask() | {"messages": messages})).status_code

    assert await status(WORDS, call, result) == await status(call, result, WORDS) == 200
    assert await status(WORDS, call) == await status(WORDS, call, WORDS) == 400
    assert await status(WORDS, result) == await status(call, WORDS, result) == 400


async def test_arguments_that_cannot_be_read_are_not_taken_back(
    client: httpx2.AsyncClient,
) -> None:
    call = {"id": "a", "function": {"name": "send", "arguments": "{no json"}}
    messages = [{"role": "assistant", "tool_calls": [call]}, OPENAI_RESULT]

    answer = await client.post(OPENAI, json=ask() | {"messages": messages})

    assert answer.status_code == 400


async def test_models_and_tokens_can_be_counted(api: ModelApi, client: httpx2.AsyncClient) -> None:
    models = await client.get("/v1/models")
    tokens = await client.post("/v1/messages/count_tokens", json=ask())
    nothing = await client.head("/api/hello")

    assert models.json()["data"]
    assert tokens.json()["input_tokens"] > 0
    assert nothing.status_code == 404
    assert api.requests == []


async def test_it_ends_though_somebody_is_still_waiting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with ModelApi() as api, httpx2.AsyncClient(base_url=api.address) as client:
        api.then(Stall())
        asking = asyncio.create_task(client.post(OPENAI, json=ask(stream=True), timeout=10))
        await api.wait_for_requests(1)
        await api.__aexit__(None, None, None)

        with pytest.raises(httpx2.TransportError):
            await asking
    assert api.requests[0].gone.is_set()
    assert caplog.text == ""


async def test_it_serves_other_processes() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "support.model_api", "--port", "0", stdout=-1
    )
    assert process.stdout is not None
    try:
        address = (await asyncio.wait_for(process.stdout.readline(), 20)).decode().strip()
        async with httpx2.AsyncClient(base_url=address, timeout=10) as client:
            answer = await client.post(OPENAI, json=ask())
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.communicate()

    assert answer.json()["choices"][0]["message"]["content"] == "Hello."


async def test_the_real_claude_code_can_work_with_it(api: ModelApi, tmp_path: Path) -> None:
    api.then(Say("Sending it.", pieces=3), CallTool("send", {"to": "x"}), Usage(1, 2, 3, 4))
    api.then(GiveOutcome({"complete": True}))
    sent = list[dict[str, Any]]()

    @sdk.tool("send", "Send something.", {"to": str})
    async def send(arguments: dict[str, Any]) -> dict[str, Any]:
        sent.append(arguments)
        return {"content": [{"type": "text", "text": "It is sent."}]}

    server = sdk.create_sdk_mcp_server("backburner", tools=[send])
    options = claude_options(api, tmp_path, mcp_servers={"backburner": server})
    *_, result = [message async for message in sdk.query(prompt="Send it.", options=options)]

    assert isinstance(result, sdk.ResultMessage)
    assert result.structured_output == {"complete": True}
    assert sent == [{"to": "x"}]
    assert (len(api.requests), api.left) == (2, 0)
    assert api.requests[1].holds("It is sent.")


def claude_options(api: ModelApi, folder: Path, **more: Any) -> sdk.ClaudeAgentOptions:
    schema = {"type": "object", "properties": {"complete": {"type": "boolean"}}}
    return sdk.ClaudeAgentOptions(
        system_prompt="You are here to help.",
        tools=[],
        allowed_tools=["mcp__backburner__send"],
        setting_sources=[],
        strict_mcp_config=True,
        output_format={"type": "json_schema", "schema": schema},
        cwd=folder,
        env={
            "ANTHROPIC_API_KEY": "anything",
            "ANTHROPIC_BASE_URL": api.address,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CONFIG_DIR": str(folder / "config"),
            "IS_SANDBOX": "1",
        },
        **more,
    )
