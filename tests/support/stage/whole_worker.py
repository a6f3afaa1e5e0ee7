"""A whole worker on a stage, which does by itself what there is to do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from backburner.worker.seats import Seats
from backburner.worker.service import Pace, Worker
from support.stage.stage import Stage

#: Longer than any test: whatever happens is not because of it.
NEVER = timedelta(hours=1)
PACE = Pace(poll=NEVER, lease=timedelta(seconds=2), heartbeat=timedelta(milliseconds=300))
SEATS = Seats(total=5)


@asynccontextmanager
async def working(
    stage: Stage, *, pace: Pace = PACE, seats: Seats = SEATS
) -> AsyncIterator[Worker]:
    bus = stage.database.bus
    assert bus
    worker = Worker(stage.deps, bus, seats=seats, pace=pace)
    stopping = asyncio.Event()
    task = asyncio.create_task(worker.run(stopping))
    try:
        yield worker
    finally:
        stopping.set()
        async with asyncio.timeout(10):
            await task
