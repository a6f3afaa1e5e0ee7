"""Programs of Claude Code that are at work at the same time, and the memory that they take."""

import asyncio
import os
from collections import defaultdict
from contextlib import AsyncExitStack
from pathlib import Path

from _turns import claude_engine, take_turn

from backburner.testing.engine_contract.trial import Shared, Trial
from backburner.testing.model_api import Heard, ModelApi, Reply, Stall

PAGE = os.sysconf("SC_PAGE_SIZE")
#: For so many to start, in seconds.
BOUND = 60


async def measure_memory(folder: Path, count: int) -> float:
    """Let so many wait for a model that says nothing; give the megabytes that each takes."""
    async with AsyncExitStack() as opened:
        api = await opened.enter_async_context(ModelApi(otherwise=_say_nothing))
        engine = await opened.enter_async_context(claude_engine(api.address, folder, warm=0))
        before = set(_descendants())
        turns = [asyncio.create_task(take_turn(Trial(Shared(engine)))) for _ in range(count)]
        try:
            await api.wait_for_requests(count, within=BOUND)
            used = sum(_memory(pid) for pid in _descendants() if pid not in before)
        finally:
            for turn in turns:
                turn.cancel()
            await asyncio.gather(*turns, return_exceptions=True)
    return used / count / 2**20


def _say_nothing(heard: Heard) -> Reply:
    del heard
    return [Stall()]


def _memory(pid: int) -> int:
    """Give the bytes of a process, with its share of what it has in common with others."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    except (OSError, StopIteration):
        # Others may not look so closely; then it is what the process has for itself.
        resident, shared = Path(f"/proc/{pid}/statm").read_text().split()[1:3]
        return (int(resident) - int(shared)) * PAGE


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
