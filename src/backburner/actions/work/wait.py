"""Waiting for jobs: a run is handed back meanwhile, and whoever calls from outside is kept on."""

import asyncio
from collections.abc import Collection
from contextlib import ExitStack, suppress
from datetime import timedelta

from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.actions.work import jobs
from backburner.actions.work.jobs import JobSelection
from backburner.ports import HintKind, JobWait, Listener, Tx

#: How often it is looked whether a hint was lost, in seconds.
WAIT_POLL_SECONDS = 1.0


async def wait_in_call(
    deps: Deps, origin: Origin, ids: Collection[str], longest: timedelta
) -> JobSelection:
    """Wait until jobs have settled, or for so long; then tell how all of them stand."""
    loop = asyncio.get_running_loop()
    until = loop.time() + longest.total_seconds()
    with ExitStack() as open_:
        bus = deps.bus
        # Before the first look, or what changes in between would not be heard of.
        hints = open_.enter_context(bus.listen(HintKind.CHANGED, user=origin.user)) if bus else None
        while not await jobs.have_settled(deps, origin, ids):
            left = until - loop.time()
            if left <= 0:
                break
            await _wait_for_hint(hints, min(left, WAIT_POLL_SECONDS))
    return await jobs.fetch(deps, origin, ids)


async def fetch_or_wait(
    deps: Deps, origin: Origin, ids: Collection[str], longest: timedelta
) -> JobSelection | JobWait:
    """Tell how jobs stand that have all settled; else what the run that asks is to wait for."""

    def work(tx: Tx) -> JobSelection | JobWait:
        found, unknown = jobs.find(tx, origin, ids)
        if jobs.are_settled(found):
            return jobs.take(tx, origin, found, unknown)
        return JobWait(tuple(job.id for job in found), longest)

    return await deps.store.transact(work)


async def _wait_for_hint(hints: Listener | None, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await (asyncio.Event().wait() if hints is None else hints.take())
