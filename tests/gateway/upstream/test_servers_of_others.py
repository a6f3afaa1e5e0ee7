"""MCP servers of others, as real processes: tools are listed and called, and nothing is lost."""

import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.mcp_peers import others
from support.mcp_peers.sessions import session

from backburner.gateway.upstream.session import UpstreamSession
from backburner.ports import ToolResult


async def call(opened: UpstreamSession, name: str, **arguments: object) -> ToolResult:
    result = await opened.call(name, arguments)
    assert isinstance(result, ToolResult)
    return result


async def names(opened: UpstreamSession) -> set[str]:
    listed = await opened.list_tools()
    assert listed.left_out == {}
    return {tool.name for tool in listed.tools}


@asynccontextmanager
async def everything(transport: str) -> AsyncIterator[UpstreamSession]:
    if transport == "stdio":
        async with session(others.everything()) as opened:
            yield opened
    else:
        async with others.everything_over_http() as url, session(url) as opened:
            yield opened


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_everything_is_kept(transport: str) -> None:
    async with everything(transport) as opened:
        listed = await names(opened)
        echo = await call(opened, "echo", message="hello")
        image = await call(opened, "get-tiny-image")
        links = await call(opened, "get-resource-links", count=2)
        structured = await call(opened, "get-structured-content", location="New York")
        resource = await call(opened, "get-resource-reference", resourceType="Blob", resourceId=1)
        unknown = await call(opened, "nothing")
        long = await call(opened, "trigger-long-running-operation", duration=0.2, steps=2)
        asked = await call(opened, "trigger-elicitation-request")

    assert {"echo", "get-sum", "get-tiny-image", "trigger-elicitation-request"} <= listed
    assert echo == ToolResult("Echo: hello")
    assert image.text.startswith("Here's the image you requested:")
    assert [blob.media_type for blob in image.blobs] == ["image/png"]
    assert image.blobs[0].data.startswith(b"\x89PNG")
    assert [link.name for link in links.links] == ["Blob Resource 1", "Text Resource 2"]
    assert set(structured.structured or {}) == {"temperature", "conditions", "humidity"}
    assert resource.blobs[0].data.startswith(b"Resource 1")
    assert unknown.failed
    assert "Tool nothing not found" in unknown.text
    assert "Long running operation completed" in long.text
    assert "does not allow to wait for an answer" in asked.text


async def test_a_program_sees_nothing_of_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_OF_OURS", "canary")

    async with session(others.everything()) as opened:
        shown = await call(opened, "get-env")

    assert "PATH" in shown.text
    assert "canary" not in shown.text.lower()


async def test_files_are_read_and_written_in_the_folder_of_the_server(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")

    async with session(others.filesystem(tmp_path)) as opened:
        listed = await names(opened)
        read = await call(opened, "read_text_file", path=str(tmp_path / "a.txt"))
        await call(opened, "write_file", path=str(tmp_path / "b.txt"), content="written")
        refused = await call(opened, "read_text_file", path="/etc/hostname")

    assert len(listed) == 14
    assert read == ToolResult("hello", structured={"content": "hello"})
    assert (tmp_path / "b.txt").read_text() == "written"
    assert refused.failed


async def test_a_graph_is_remembered_from_one_session_to_the_next(tmp_path: Path) -> None:
    entity = {"name": "Ann", "entityType": "person", "observations": ["likes tea"]}
    program = others.memory(tmp_path / "memory.json")

    async with session(program) as opened:
        listed = await names(opened)
        await call(opened, "create_entities", entities=[entity])
    async with session(program) as opened:
        graph = await call(opened, "read_graph")

    assert len(listed) == 9
    assert graph.structured == {"entities": [entity], "relations": []}


async def test_the_time_is_told() -> None:
    async with session(others.time_server()) as opened:
        listed = await names(opened)
        told = await call(
            opened,
            "convert_time",
            source_timezone="Europe/Berlin",
            time="12:00",
            target_timezone="Asia/Tokyo",
        )
        unknown = await call(opened, "get_current_time", timezone="Nowhere/Atlantis")

    assert listed == {"get_current_time", "convert_time"}
    assert "T" in str((told.structured or {}).get("target"))
    assert unknown.failed


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git = shutil.which("git")
    assert git is not None
    subprocess.run([git, "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / "new.txt").write_text("new")
    return tmp_path


async def test_a_repository_is_read(repository: Path) -> None:
    async with session(others.git_server(repository)) as opened:
        listed = await names(opened)
        status = await call(opened, "git_status", repo_path=str(repository))

    assert {"git_status", "git_diff", "git_commit", "git_log"} <= listed
    assert "new.txt" in status.text
    assert not status.failed
