"""Waiting for jobs: an agent's run is handed back meanwhile, an external call stays open."""

import asyncio
from collections.abc import Collection
from contextlib import ExitStack, suppress
from datetime import timedelta

from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.actions.work import jobs
from backburner.actions.work.jobs import JobSelection
from backburner.core.errors import BadRequest
from backburner.ports import HintKind, JobWait, Listener, Tx

#: Seconds between polls, in case a hint was lost.
WAIT_POLL_SECONDS = 1.0


async def wait_in_call(
    deps: Deps,
    origin: Origin,
    ids: Collection[str],
    limit: timedelta,
    *,
    batch: str | None = None,
) -> JobSelection:
    """Wait until jobs have settled or the limit has passed; then return all of them."""
    _require_jobs(ids, batch)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + limit.total_seconds()
    with ExitStack() as stack:
        bus = deps.bus
        # Listens before the first check, so that no change in between is missed.
        hints = stack.enter_context(bus.listen(HintKind.CHANGED, user=origin.user)) if bus else None
        while not await jobs.have_settled(deps, origin, ids, batch=batch):
            left = deadline - loop.time()
            if left <= 0:
                break
            await _wait_for_hint(hints, min(left, WAIT_POLL_SECONDS))
    return await jobs.fetch(deps, origin, ids, batch=batch)


async def fetch_or_wait(
    deps: Deps,
    origin: Origin,
    ids: Collection[str],
    limit: timedelta,
    *,
    batch: str | None = None,
) -> JobSelection | JobWait:
    """Return the jobs if all have settled, else the wait for which the run is handed back."""
    _require_jobs(ids, batch)

    def work(tx: Tx) -> JobSelection | JobWait:
        known, unknown = jobs.find(tx, origin, ids, batch)
        if jobs.are_settled(known):
            return jobs.retrieve(tx, deps, origin, known, unknown)
        return JobWait(tuple(job.id for job in known), limit)

    return await deps.store.transact(work)


def _require_jobs(ids: Collection[str], batch: str | None) -> None:
    if not any(prefix.strip() for prefix in ids) and not batch:
        raise BadRequest("There are no jobs to wait for.", hint="Give their ids or a batch.")


async def _wait_for_hint(hints: Listener | None, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await (asyncio.Event().wait() if hints is None else hints.take())
