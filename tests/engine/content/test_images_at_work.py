"""Images and files of tools in real runs: with the gate, a database, and the engines."""

import json
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.cases.images import png
from support.mcp_peers import others
from support.mcp_peers.sessions import session
from support.model_api import CallTool, ModelApi, Say
from support.stage.make import USER
from support.stage.stage import Stage

from backburner.bus.local import LocalBus
from backburner.engine.claude.engine import ClaudeEngine, ClaudeModel
from backburner.engine.openai import OpenAIEngine
from backburner.ports import Blob, Link, ToolResult
from backburner.process.launcher import CleanLauncher
from backburner.runs.tool_results import MAX_RESULT_CHARS
from backburner.store.db import Database

IMAGE = png(30, 20)
ENCODED = b64encode(IMAGE).decode()
RESULT = ToolResult(
    "Look:",
    blobs=(Blob(IMAGE, "image/png", "a.png"), Blob(b"ID3", "audio/mpeg", "b.mp3")),
    links=(Link("https://example.org/c", "More"),),
    structured={"count": 2},
)
STALL = timedelta(seconds=20)


@pytest.fixture
async def api() -> AsyncIterator[ModelApi]:
    async with ModelApi() as api:
        yield api
        assert api.complaints == []


def claude(api: ModelApi, folder: Path) -> ClaudeEngine:
    return ClaudeEngine(
        ClaudeModel(name="claude-sonnet-5-5", address=api.address, headers={"x-api-key": "key"}),
        launcher=CleanLauncher(),
        homes=folder / "homes",
        workspace=lambda user: folder / user,
        warm=0,
    )


def openai(api: ModelApi, folder: Path) -> OpenAIEngine:
    del folder
    return OpenAIEngine(model="m", address=f"{api.address}/v1", sees_images=True, stall=STALL)


@pytest.fixture(params=[claude, openai], ids=["claude", "openai"])
async def stage(
    request: pytest.FixtureRequest, api: ModelApi, database: Database, tmp_path: Path
) -> AsyncIterator[Stage]:
    make: Callable[..., Any] = request.param
    engine = make(api, tmp_path)
    yield Stage(database, LocalBus(), engine)
    await engine.close()


async def test_a_chat_has_all_that_a_tool_returned(stage: Stage, api: ModelApi) -> None:
    await show(stage, RESULT)
    api.then(CallTool("look"))
    api.then(Say("A small one."))
    api.then(Say("Yes."))
    chat = await stage.chat()
    await stage.say(chat, "What is there?")
    await stage.work()
    await stage.say(chat, "Is it small?")
    await stage.work()

    files = stage.database.run(lambda tx: tx.files.page(USER, None, limit=9))
    assert {file.name for file in files} == {"a.png", "b.mp3"}
    assert stage.said(chat)[-1] == "Yes."
    for request in api.requests[1:]:
        assert request.holds(ENCODED)
        for part in ("Look:", '{"count": 2}', "[Link: More: https://example.org/c]", "b.mp3"):
            assert request.holds(part), part
        assert all(request.holds(f"kept as file {file.digest[:16]}.") for file in files)


async def test_a_long_result_reaches_the_model_up_to_the_limit(stage: Stage, api: ModelApi) -> None:
    text = "ä" * (MAX_RESULT_CHARS - 1) + "." + "#" * 1000
    await show(stage, ToolResult(text))
    api.then(CallTool("look"))
    chat = await stage.chat()
    await stage.say(chat, "What is there?")
    await stage.work()

    assert api.requests[1].holds("ä" * (MAX_RESULT_CHARS - 1) + ".\n[Cut here, after 100,000")
    assert not api.requests[1].holds(".#")
    (file,) = stage.database.run(lambda tx: tx.files.page(USER, None, limit=9))
    assert file.size == len(text.encode())


async def test_what_a_server_of_others_returns_reaches_the_model(
    stage: Stage, api: ModelApi
) -> None:
    asked: list[tuple[str, dict[str, Any]]] = [
        ("get-tiny-image", {}),
        ("get-structured-content", {"location": "New York"}),
        ("get-resource-links", {"count": 2}),
        ("get-resource-reference", {"resourceType": "Blob", "resourceId": 1}),
    ]
    async with session(others.everything()) as opened:
        results = [await opened.call(name, arguments) for name, arguments in asked]

    async def run(arguments: Mapping[str, Any]) -> ToolResult:
        result = results[arguments["number"]]
        assert isinstance(result, ToolResult)
        return result

    stage.tools.handlers["look"] = run
    for number in range(len(asked)):
        api.then(CallTool("look", {"number": number}))
    api.then(Say("That is all."))
    chat = await stage.chat()
    await stage.say(chat, "What is there?")
    await stage.work()

    image, structured, links, resource = (one for one in results if isinstance(one, ToolResult))
    request = api.requests[-1]
    assert stage.said(chat)[-1] == "That is all."
    assert request.holds(b64encode(image.blobs[0].data).decode())
    assert json.loads(structured.text) == structured.structured
    assert request.holds(structured.text)
    assert all(request.holds(f"[Link: {link.name}: {link.url}") for link in links.links)
    kept = stage.database.run(lambda tx: tx.files.page(USER, None, limit=9))
    assert sorted(file.size for file in kept) == sorted(
        len(blob.data) for blob in (*image.blobs, *resource.blobs)
    )
    assert all(request.holds(f"kept as file {file.digest[:16]}.") for file in kept)


async def show(stage: Stage, result: ToolResult) -> None:
    async def run(_arguments: Mapping[str, Any]) -> ToolResult:
        return result

    stage.tools.handlers["look"] = run
