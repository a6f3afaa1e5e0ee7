"""`/health`, `/ready` and `/metrics`.

Metrics need the scope `operate`: behind a proxy every request seems to come from this machine, so
the client's address proves nothing. They are counts, without names or texts of users.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta

import structlog
from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from backburner.actions import browse
from backburner.api.http.auth import MetricsReader
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.openapi import COMMON_RESPONSES
from backburner.api.schemas.monitoring import HealthOut, ReadinessOut
from backburner.ports import Gauges

#: Passes by returning, fails by raising.
Check = Callable[[], Awaitable[None]]
Checks = Mapping[str, Check]

CHECK_TIMEOUT = timedelta(seconds=5)
PROMETHEUS_TEXT = "text/plain; version=0.0.4; charset=utf-8"

_log = structlog.get_logger(__name__)

router = APIRouter(tags=["monitoring"])


@router.get("/health", summary="Check that the process runs")
async def get_health() -> HealthOut:
    """Respond as soon as the process accepts requests."""
    return HealthOut()


@router.get(
    "/ready", summary="Check that the server is ready", responses={503: {"model": ReadinessOut}}
)
async def get_readiness(request: Request, response: Response) -> ReadinessOut:
    """Check everything that the server depends on."""
    checks: Checks = request.app.state.checks
    passed = await asyncio.gather(*(_passes(name, check) for name, check in checks.items()))
    if not all(passed):
        response.status_code = 503
    return ReadinessOut(
        status="ready" if all(passed) else "not ready",
        checks={name: "ok" if ok else "failed" for name, ok in zip(checks, passed, strict=True)},
    )


@router.get(
    "/metrics",
    summary="Metrics for Prometheus",
    response_class=PlainTextResponse,
    responses=COMMON_RESPONSES,
)
async def get_metrics(deps: AppDeps, _: MetricsReader) -> PlainTextResponse:
    """Count runs, queued work, questions and deliveries of all users; needs scope `operate`."""
    return PlainTextResponse(format_metrics(await browse.gauges(deps)), media_type=PROMETHEUS_TEXT)


async def _passes(name: str, check: Check) -> bool:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT.total_seconds()):
            await check()
    except Exception:  # noqa: BLE001 (any failure means not ready)
        # The error may name paths and hosts, so it is logged and not sent to the client.
        _log.exception("readiness.check_failed", check=name)
        return False
    return True


def format_metrics(gauges: Gauges) -> str:
    lines = [
        *_format_gauge("runs", "Runs in progress and handed back.", gauges.runs),
        *_format_gauge(
            "runs_ended_last_hour", "Runs ended in the last hour.", gauges.ended_last_hour
        ),
        *_format_gauge("queue_depth", "Work that can be claimed now.", gauges.claimable),
        *_format_gauge(
            "queue_oldest_seconds",
            "Age of the oldest work that can be claimed.",
            gauges.oldest_wait.total_seconds(),
        ),
        *_format_gauge("people_waiting", "Messages without a reply.", gauges.users_waiting),
        *_format_gauge("questions_open", "Open questions.", gauges.questions),
        *_format_gauge("deliveries_waiting", "Deliveries to be sent.", gauges.deliveries),
        *_format_gauge("users", "Accounts.", gauges.users),
        *_format_gauge("paused", "1 while all background work is paused.", int(gauges.paused)),
    ]
    return "\n".join(lines) + "\n"


def _format_gauge(name: str, help_: str, value: float | Mapping[str, int]) -> Iterable[str]:
    name = f"backburner_{name}"
    yield f"# HELP {name} {help_}"
    yield f"# TYPE {name} gauge"
    if isinstance(value, Mapping):
        yield from (f'{name}{{status="{status}"}} {count}' for status, count in value.items())
    else:
        yield f"{name} {value}"
