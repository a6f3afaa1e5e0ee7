"""Many open pages cost their server little."""

import asyncio
import tomllib
from pathlib import Path

import httpx2
from support.browser.visitors import serving
from support.stage.until import until

STREAMS, SECONDS = 20, 4
#: Of one core. Load makes time longer, and not what a process takes of it.
MAX_SHARE = 0.2


async def test_twenty_streams_take_little_of_a_core(tmp_path: Path) -> None:
    heard = [0] * STREAMS

    async def follow(client: httpx2.AsyncClient, number: int) -> None:
        async with client.stream("GET", "/page/stream") as stream:
            async for line in stream.aiter_lines():
                heard[number] += line.startswith("event:")

    with serving(tmp_path, connections_per_user=str(STREAMS)) as server:
        pid = server.running.process.pid
        token = tomllib.loads((tmp_path / "client.toml").read_text())["token"]
        headers = {"authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(base_url=server.address, headers=headers) as client:
            followed = [asyncio.create_task(follow(client, one)) for one in range(STREAMS)]
            await until(lambda: all(heard))
            before = cpu_seconds(pid)
            for number in range(SECONDS):
                message = {"message": f"hello {number}"}
                (await client.post("/api/conversations", json=message)).raise_for_status()
                await asyncio.sleep(1)
            share = (cpu_seconds(pid) - before) / SECONDS
            for one in followed:
                one.cancel()
            await asyncio.gather(*followed, return_exceptions=True)

    # Each has heard of every message, its run and its reply.
    assert min(heard) > 3 * SECONDS
    assert share < MAX_SHARE, share


def cpu_seconds(pid: int) -> float:
    """Read what a process has taken of all cores."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100
