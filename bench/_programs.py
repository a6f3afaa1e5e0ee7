"""Programs of Claude Code that are at work at the same time, and the memory that they take."""

import asyncio
import os
from collections import defaultdict
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

from _turns import claude_engine, take_turn
from support.contracts.engine.harness import EngineHarness, Shared
from support.model_api import ModelApi, ModelRequest, Reply, Stall

PAGE = os.sysconf("SC_PAGE_SIZE")
#: For so many to start, in seconds.
BOUND = 60


class Memory(NamedTuple):
    """Bytes: of one process, with its share of what it has in common; and what is no file."""

    whole: int
    own: int


async def measure_memory(folder: Path, count: int) -> dict[str, float]:
    """Let so many wait for a model that says nothing; give the megabytes that each takes."""
    async with AsyncExitStack() as opened:
        api = await opened.enter_async_context(ModelApi(otherwise=_say_nothing))
        engine = await opened.enter_async_context(claude_engine(api.address, folder, warm=0))
        before = set(_descendants())
        turns = [
            asyncio.create_task(take_turn(EngineHarness(Shared(engine)))) for _ in range(count)
        ]
        try:
            await api.wait_for_requests(count, within=BOUND)
            used = [_memory(pid) for pid in _descendants() if pid not in before]
        finally:
            for turn in turns:
                turn.cancel()
            await asyncio.gather(*turns, return_exceptions=True)
    return {
        f"mb_of_each_claude_of_{count}": sum(one.whole for one in used) / count / 2**20,
        f"mb_of_each_claude_of_{count}_without_files": sum(one.own for one in used) / count / 2**20,
    }


def _say_nothing(heard: ModelRequest) -> Reply:
    del heard
    return [Stall()]


def _memory(pid: int) -> Memory:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
        found = {name: int(size.split()[0]) * 1024 for name, size in (x.split(":") for x in lines)}
        return Memory(found["Pss"], found["Pss_Anon"])
    except (OSError, KeyError):
        # Others may not look so closely; then it is what the process has for itself.
        resident, shared = Path(f"/proc/{pid}/statm").read_text().split()[1:3]
        return Memory(int(resident) * PAGE, (int(resident) - int(shared)) * PAGE)


def _descendants() -> list[int]:
    children = defaultdict[int, list[int]](list)
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children[int(fields[1])].append(int(folder.name))
    found, left = list[int](), list(children[os.getpid()])
    while left:
        found.append(left.pop())
        left += children[found[-1]]
    return found
