"""Claude Code on somebody's own machine hands work to a Backburner that runs, and fetches it."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from support.doubles.engine import End, Sleep
from support.faults import script
from support.faults.outside import Outside
from support.model_api import CallTool, ModelApi, ModelRequest, Reply, Say
from support.people.mcp_clients import text
from support.programs.claude_code import ask_claude
from support.programs.programs import Start, starter
from support.programs.workers import Workers
from support.requirements import requirement
from support.servers.model_threads import newest

from backburner.actions.work.wait import WAIT_POLL_SECONDS
from backburner.app.clock import Clock

#: How long after a job has ended a client that waits may be kept waiting, in seconds: less than it
#: would be if only a poll found out. `bench latency` measures it.
LATEST = WAIT_POLL_SECONDS / 2
JOBS = 5
DONE = "I am a demo without a language model"


def hand_out_and_wait(heard: ModelRequest) -> Reply:
    """Be an agent that has something done and waits for it."""
    last = newest(heard)
    if started := re.search(r"Started (c_\w+)", last):
        return [CallTool("background_block", {"task_ids": [started[1]], "timeout": 30})]
    if DONE in last:
        return [Say("It is done.")]
    return [CallTool("background_task", {"description": "Count", "prompt": "Count the files."})]


@dataclass(frozen=True)
class Here:
    address: str
    data: Path


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    """Start what somebody has on their machine."""
    data = tmp_path_factory.mktemp("data")
    with starter() as start:
        yield Here(start("up", "--port", "0", "--data", data).wait_until_ready(), data)


@requirement("C-mcp")
@pytest.mark.parametrize("kind", ["http", "stdio"])
async def test_claude_code_hands_out_a_job_and_waits_for_it(
    running: Here, tmp_path: Path, kind: str
) -> None:
    server = at_its_address(running) if kind == "http" else as_a_program(running)
    async with ModelApi(otherwise=hand_out_and_wait) as model:
        said = await ask_claude(model, tmp_path, {"backburner": server})
        tools = set(model.requests[0].tools)

    assert said == "It is done."
    assert model.complaints == []
    assert {"mcp__backburner__background_task", "mcp__backburner__task_add"} <= tools


def at_its_address(running: Here) -> dict[str, Any]:
    found = (running.data / "client.toml").read_text()
    (secret,) = re.findall(r'^token = "(.*)"$', found, re.MULTILINE)
    return {
        "type": "http",
        "url": f"{running.address}/mcp",
        "headers": {"Authorization": f"Bearer {secret}"},
    }


def as_a_program(running: Here) -> dict[str, Any]:
    arguments = ["-P", "-m", "backburner", "mcp", "--data", str(running.data)]
    return {"command": sys.executable, "args": arguments, "env": dict(os.environ)}


@pytest.fixture
def address(start: Start, tmp_path: Path, migrated_postgres_url: str) -> str:
    """Start a server that leaves the work to others, and those; give the address."""
    data = tmp_path / "server"
    data.mkdir(mode=0o700)
    # The name of the agent in the other process.
    profile = 'profile = "scripted"\n[profiles.scripted]\nengine = "demo"\n'
    (data / "backburner.toml").write_text(profile)
    there = ("--data", data, "--port", "0", "--database-url", migrated_postgres_url)
    address = start("serve", *there).wait_until_ready()
    Workers(start, tmp_path, migrated_postgres_url).start()
    return address


@pytest.fixture
def secret(outside: Outside) -> str:
    return outside.token()


@requirement("C-mcp")
async def test_a_client_is_told_at_once_of_what_ends_in_another_process(
    address: str, secret: str, outside: Outside
) -> None:
    late = []
    async with connected(address, secret) as client, asyncio.timeout(60):
        for _ in range(JOBS):
            prompt = script.write(Sleep(0.3), End({"complete": True, "message": "Counted."}))
            asked = {"description": "Count", "prompt": prompt}
            started = text(await client.call_tool("background_task", asked))
            (job,) = re.findall(r"Started (c_\w+)", started)
            told = await client.call_tool("background_block", {"task_ids": [job]})
            at = Clock().now()
            assert "Counted." in text(told)
            late.append((at - ended_at(outside, job)).total_seconds())

    assert median(late) < LATEST, late


@asynccontextmanager
async def connected(address: str, secret: str) -> AsyncIterator[Client]:
    headers = {"authorization": f"Bearer {secret}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(f"{address}/mcp", http_client=http)
        async with Client(transport) as client:
            yield client


def ended_at(outside: Outside, job: str) -> datetime:
    ((moment,),) = outside.rows(f"SELECT ended_at FROM conversations WHERE id = '{job}'")  # noqa: S608
    assert isinstance(moment, datetime)
    return moment
