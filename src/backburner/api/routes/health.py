"""`/health` and `/ready`: is the process there, and can it do its work."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Literal

import structlog
from fastapi import APIRouter, Response
from pydantic import BaseModel

from backburner import __version__

#: Passes by returning, fails by raising.
Check = Callable[[], Awaitable[None]]
Checks = Mapping[str, Check]

LONGEST_CHECK = timedelta(seconds=5)

_log = structlog.get_logger(__name__)


class Health(BaseModel):
    status: Literal["ok"] = "ok"
    version: str = __version__


class Readiness(BaseModel):
    status: Literal["ready", "not ready"]
    checks: dict[str, Literal["ok", "failed"]]


def build_router(checks: Checks) -> APIRouter:
    router = APIRouter(tags=["health"])

    @router.get("/health")
    async def health() -> Health:
        """Answer as soon as the process can answer anything."""
        return Health()

    @router.get("/ready", responses={503: {"model": Readiness}})
    async def ready(response: Response) -> Readiness:
        """Tell whether every part that is needed does its work."""
        passed = await asyncio.gather(*(_passes(name, check) for name, check in checks.items()))
        if not all(passed):
            response.status_code = 503
        return Readiness(
            status="ready" if all(passed) else "not ready",
            checks={
                name: "ok" if ok else "failed" for name, ok in zip(checks, passed, strict=True)
            },
        )

    return router


async def _passes(name: str, check: Check) -> bool:
    try:
        async with asyncio.timeout(LONGEST_CHECK.total_seconds()):
            await check()
    except Exception:  # noqa: BLE001 (whatever went wrong, the part does not work)
        # The reason may name paths and hosts; it is for the log, not for whoever asks.
        _log.exception("a readiness check failed", check=name)
        return False
    return True
