"""What people wait for before anything happens: programs that start; and the memory they keep."""

import asyncio
import tempfile
import time
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from pathlib import Path

from _cells import Cell, Measured
from _environments import USER
from _grounds import Grounds
from _processes import crew, memory
from _turns import claude_engine, whole_runs
from start import BACKBURNER, answered, finished, server
from support.model_api import ModelApi

#: Samples of Claude Code in a round; how long a worker is left alone before it is looked at.
COLD, QUICK_COLD = 5, 2
SETTLE = 3.0
BOUND = 60


def claude_cells(ground: Grounds, opened: ExitStack) -> list[Cell]:
    del opened
    count = QUICK_COLD if ground.scale.is_quick else COLD
    return [Cell("Claude Code, cold", lambda: asyncio.run(_first_requests(count)))]


async def _first_requests(count: int) -> Measured:
    """Say something in new chats; time each up to what the model is asked."""
    taken = []
    async with AsyncExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="bb-bench-")))
        api = await opened.enter_async_context(ModelApi())
        engine = await opened.enter_async_context(claude_engine(api.address, folder, warm=0))
        sample = await opened.enter_async_context(whole_runs(engine, folder))
        for _ in range(count):
            run = asyncio.ensure_future(sample())
            await api.wait_for_requests(len(api.requests) + 1, within=BOUND)
            asked = time.perf_counter()
            # It knows when it said it only afterwards.
            said = -(await run).whole + time.perf_counter()
            taken.append((asked - said) * 1e3)
    return {"ms from message to first request": taken}


def start_cells(ground: Grounds, opened: ExitStack) -> list[Cell]:
    del opened
    USER.make()
    return [
        Cell("up, new data folder", partial(_start, ground)),
        Cell("up", partial(_use, ground)),
        Cell("idle worker, PostgreSQL", partial(_idle_worker, ground)),
    ]


def _start(ground: Grounds) -> Measured:
    with ground.data() as data:
        return {"ms to /health": answered([BACKBURNER], data) * 1e3}


def _use(ground: Grounds) -> Measured:
    """Start again with the same folder, and let somebody say something."""
    with ground.data() as data:
        answered([BACKBURNER], data)
        again = answered([BACKBURNER], data)
        with server([BACKBURNER], data) as (process, _):
            said = finished([BACKBURNER, "say", "hello", "--data", str(data)])
            time.sleep(SETTLE)
            used = memory(process.pid)
    return {
        "ms to /health, again": again * 1e3,
        "ms of `say hello`": said * 1e3,
        "resident MB": used.resident / 2**20,
        "unique MB": used.unique / 2**20,
    }


def _idle_worker(ground: Grounds) -> Measured:
    with ground.postgres("quiet") as url, ground.data() as data:
        command = [BACKBURNER, "worker", "--database-url", url, "--data", str(data)]
        with crew(command) as workers:
            # What it writes says that it is ready.
            workers.wait_until_ready()
            time.sleep(SETTLE)
            used = memory(workers.pids[0])
    return {"resident MB": used.resident / 2**20, "unique MB": used.unique / 2**20}
