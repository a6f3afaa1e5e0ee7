"""`backburner mcp` as an editor starts it: it forwards every request to the server."""

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.people.mcp_clients import Bench, build, make_token, over_pipes, text
from support.requirements import requirement
from support.servers.live import serving
from support.stage.make import USER
from support.stage.stage import BOUND, Stage
from support.stage.stages import clock, database, set_up, stage

from backburner.actions.accounts import credentials

__all__ = ["clock", "database", "set_up", "stage"]
HELLO = {
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "an-editor", "version": "1"},
    },
}


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
async def address(stage: Stage, bench: Bench) -> AsyncIterator[str]:
    async with serving(build(stage, bench)) as address:
        yield address


@requirement("C-mcp")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_clients_of_both_protocol_versions_list_and_call_tools(
    address: str, stage: Stage, bench: Bench, mode: str
) -> None:
    env = {"BACKBURNER_TOKEN": await make_token(stage)}
    async with asyncio.timeout(BOUND), over_pipes("--url", address, env=env, mode=mode) as opened:
        tools = (await opened.list_tools()).tools
        changed = await opened.call_tool("change", {"text": "x"})
        refused = await opened.call_tool("change", {"text": "conflict"})

    assert [tool.name for tool in tools] == ["look", "change", "wait"]
    assert tools[0].input_schema["properties"]["text"]["description"] == "Any."
    assert (text(changed), changed.is_error) == ("changed: x", False)
    assert (text(refused), refused.is_error) == ("It does not fit. Try another.", True)
    place = stage.database.run(
        lambda tx: tx.conversations.load(USER, bench.origins[0].conversation)
    )
    assert place.title == "An Editor (token editor)"


async def test_a_call_that_the_editor_cancels_is_cancelled_at_the_server(
    address: str, stage: Stage, bench: Bench
) -> None:
    env = {"BACKBURNER_TOKEN": await make_token(stage)}
    async with asyncio.timeout(BOUND), over_pipes("--url", address, env=env) as opened:
        calling = asyncio.create_task(opened.call_tool("wait", {}))
        await bench.began.wait()
        calling.cancel()
        await bench.ended.wait()
        assert text(await opened.call_tool("look", {"text": "x"})) == "seen: x"


async def test_a_restarted_server_is_found_and_a_refusal_is_reported(
    stage: Stage, bench: Bench, tmp_path: Path
) -> None:
    stage.user()
    async with asyncio.timeout(BOUND), over_pipes("--data", str(tmp_path)) as opened:
        for text_ in ("one", "two"):
            async with serving(build(stage, bench)) as address:
                secret = (await credentials.issue_local_token(stage.deps, USER)).secret
                write_client(tmp_path, address, secret)
                called = await opened.call_tool("change", {"text": text_})
                assert text(called) == f"changed: {text_}"
                await credentials.sign_out_everywhere(stage.deps, USER)
                refused = await opened.call_tool("change", {})
                assert refused.is_error
                assert text(refused).startswith("The server does not accept this token.")
        gone = await opened.call_tool("change", {})

    assert gone.is_error
    assert text(gone) == f"Cannot reach Backburner at {address}. Start it with `backburner up`."
    assert len({origin.conversation for origin in bench.origins}) == 1


async def test_without_a_server_it_reports_so_and_runs_until_a_signal(
    tmp_path: Path,
) -> None:
    """On stderr too, because an editor may show only the log of the program."""
    async with asyncio.timeout(BOUND), started("--data", str(tmp_path)) as program:
        await ask(program, HELLO)
        await ask(program, {"method": "notifications/initialized"})
        listed = await ask(program, {"id": 2, "method": "tools/list"})
        call = {"name": "background_task"}
        called = await ask(program, {"id": 3, "method": "tools/call", "params": call})
        # It is waiting for the next line.
        program.terminate()
        assert await program.wait() == -signal.SIGTERM
        assert program.stdout
        assert program.stderr
        out, err = await program.stdout.read(), await program.stderr.read()

    message = f"Found no server for the data folder {tmp_path}."
    assert listed["error"]["message"].startswith(message)
    assert called["result"]["isError"]
    assert called["result"]["content"][0]["text"].startswith(message)
    assert out == b""
    assert [line.startswith(message) for line in err.decode().splitlines()] == [True, True]


@asynccontextmanager
async def started(*arguments: str) -> AsyncIterator[Process]:
    command = (sys.executable, "-P", "-m", "backburner", "mcp", *arguments)
    program = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    try:
        yield program
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()


async def ask(program: Process, message: dict[str, Any]) -> Any:
    assert program.stdin
    assert program.stdout
    program.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    return json.loads(await program.stdout.readline()) if "id" in message else None


def write_client(data: Path, address: str, secret: str) -> None:
    """Write the file that a server writes for commands on its machine."""
    file = data / "client.toml"
    file.touch(mode=0o600)
    file.write_text(f'address = "{address}"\ntoken = "{secret}"\n')
