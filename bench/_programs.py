"""Programs of Claude Code that are at work at the same time, and the memory that they take."""

import asyncio
import os
from contextlib import AsyncExitStack
from pathlib import Path

from _processes import descendants, memory
from _turns import claude_engine, take_turn
from support.contracts.engine.harness import EngineHarness, Shared
from support.model_api import ModelApi, ModelRequest, Reply, Stall

#: For so many to start, in seconds.
BOUND = 60


async def measure_memory(folder: Path, count: int) -> dict[str, float]:
    """Let so many wait for a model that says nothing; give the megabytes that each takes."""
    async with AsyncExitStack() as opened:
        api = await opened.enter_async_context(ModelApi(otherwise=_say_nothing))
        engine = await opened.enter_async_context(claude_engine(api.address, folder, warm=0))
        before = set(descendants(os.getpid()))
        turns = [
            asyncio.create_task(take_turn(EngineHarness(Shared(engine)))) for _ in range(count)
        ]
        try:
            await api.wait_for_requests(count, within=BOUND)
            started = [pid for pid in descendants(os.getpid()) if pid not in before]
            used = [memory(pid) for pid in started]
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
