"""Servers of others in the whole product: their tools and results reach the model."""

import asyncio
import json
import shutil
import subprocess
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from support.faults.outside import Outside
from support.mcp_peers import others
from support.model_api import CallTool, GiveOutcome, ModelApi, ModelRequest, Reply
from support.people.api_users import ApiUser, api_user
from support.programs.real_workers import RealWorkers, program_settings
from support.requirements import requirement
from support.stage.make import USER


@dataclass(frozen=True)
class Call:
    """A call of a tool of a connection."""

    server: str
    tool: str
    arguments: Mapping[str, Any]


@pytest.fixture
def web() -> Iterator[str]:
    """Serve one of them over HTTP."""
    with asyncio.Runner() as runner:
        serving = others.everything_over_http()
        yield runner.run(serving.__aenter__())
        runner.run(serving.__aexit__(None, None, None))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Make a folder that is a repository too."""
    folder = tmp_path / "files"
    git = shutil.which("git")
    assert git is not None
    subprocess.run([git, "init", "--quiet", str(folder)], check=True)
    (folder / "a.txt").write_text("The apple is green.")
    return folder


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """Make a file with a graph, in a folder of its own."""
    file = tmp_path / "graph" / "memory.json"
    file.parent.mkdir()
    ann = {"type": "entity", "name": "Ann", "entityType": "person", "observations": ["likes tea"]}
    file.write_text(json.dumps(ann))
    return file


def calls_of(files: Path) -> Sequence[Call]:
    """Make calls that return everything a server can return."""
    noon = {"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    return [
        Call("web", "get-tiny-image", {}),
        Call("web", "get-structured-content", {"location": "New York"}),
        Call("stdio", "get-tiny-image", {}),
        Call("stdio", "get-resource-links", {"count": 2}),
        Call("files", "read_text_file", {"path": str(files / "a.txt")}),
        Call("memory", "read_graph", {}),
        Call("time", "convert_time", noon),
        Call("git", "git_status", {"repo_path": str(files)}),
    ]


#: What the model is told of them, besides images; links are not followed.
TOLD = (
    '{"temperature":33,"conditions":"Cloudy","humidity":82}',
    "[Link: Blob Resource 1: demo://resource/dynamic/blob/1 (text/plain,",
    '{"content": "The apple is green."}',
    '"likes tea"',
    '"timezone": "Asia/Tokyo"',
    "Untracked files:",
)


@requirement("A-mcp-load")
def test_servers_of_others_are_used_with_both_engines(
    workers: RealWorkers,
    model: ModelApi,
    outside: Outside,
    web: str,
    files: Path,
    graph: Path,
) -> None:
    programs = {
        "stdio": others.everything(),
        "files": others.filesystem(files),
        "memory": others.memory(graph),
        "time": others.time_server(),
        "git": others.git_server(files),
    }
    address = f"{model.address}/v1"
    workers.profiles["other"] = {
        "engine": "openai",
        "address": address,
        "model": "m",
        "images": True,
    }
    settings = {
        "profile": "claude",
        "private_networks": ["127.0.0.1/32"],
        **program_settings(programs),
    }
    _, address = workers.serve(**settings)
    calls = calls_of(files)
    model.otherwise = lambda heard: call_or_end(heard, calls)
    with api_user(outside, address, USER) as ann:
        tools = connect(ann, calls, web)
        names = tuple({call.server for call in calls})
        profiles = ("claude", "other")
        tasks = [ann.task(one, connections=names, profile=one) for one in profiles]
        for task in tasks:
            ann.wait_until_completed(task)
        (file,) = ann.ask("GET", "/files")["items"]
        image = ann.client.get(f"/api/files/{file['digest']}").content
        made = ann.ask("GET", "/connections/calls")["items"]

    assert image.startswith(b"\x89PNG")
    for task, path in zip(tasks, ("/messages", "/completions"), strict=True):
        assert outside.said(task)[-1] == "That is all."
        asked, told, *_ = [one for one in model.requests if one.path.endswith(path)]
        assert {asked.tool_of(server, tool) for server, tool in tools} <= set(asked.tools)
        assert list(images_in(told.body)) == [b64encode(image).decode()] * 2
        assert [words for words in TOLD if not told.holds(words)] == []
    assert [one["outcome"] for one in made] == ["done"] * 2 * len(calls)


def connect(ann: ApiUser, calls: Sequence[Call], web: str) -> Sequence[tuple[str, str]]:
    """Connect to all of them at once, and say of the tools that they may be called unasked.

    Return the names of all tools.
    """

    def connect_to(name: str) -> Sequence[tuple[str, str]]:
        connection = ann.connect(name, **({"url": web} if name == "web" else {"program": name}))
        ann.tick(connection, *(one.tool for one in calls if one.server == name))
        listed = ann.ask("GET", f"/connections/{connection}")["tools"]
        return [(name, tool["name"]) for tool in listed]

    with ThreadPoolExecutor() as threads:
        return list(chain(*threads.map(connect_to, {call.server for call in calls})))


def call_or_end(heard: ModelRequest, calls: Sequence[Call]) -> Reply:
    """Be an agent that makes all calls at once."""
    if heard.holds("Untracked files:"):
        return [GiveOutcome({"complete": True, "message": "That is all."})]
    return [CallTool(heard.tool_of(one.server, one.tool), one.arguments) for one in calls]


def images_in(content: object) -> Iterator[str]:
    """Find the images in a request, as either API takes them."""
    match content:
        case {"type": "image", "source": {"data": str(data)}}:
            yield data
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            yield url.removeprefix("data:image/png;base64,")
        case dict():
            yield from images_in(list(content.values()))
        case list():
            for part in content:
                yield from images_in(part)
