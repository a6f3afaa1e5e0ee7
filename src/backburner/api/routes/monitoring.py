"""`/health`, `/ready` and `/metrics`.

Metrics need the scope `metrics`: behind a proxy every request seems to come from this machine, so
the client's address proves nothing. They are counts, without names or texts of users.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog
from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from backburner.actions import browse
from backburner.api.http.auth import MetricsReader
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.openapi import COMMON_RESPONSES
from backburner.api.schemas.monitoring import HealthOut, ReadinessOut
from backburner.core.errors import BackburnerError
from backburner.ports import Gauges

#: Passes by returning, fails by raising.
Check = Callable[[], Coroutine[Any, Any, None]]
Checks = Mapping[str, Check]

CHECK_TIMEOUT = timedelta(seconds=5)
#: How long a result of the checks is given out again.
KEEP_RESULT = timedelta(seconds=1)
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
    """Check everything that the server depends on; a result is kept for a second."""
    readiness: Readiness = request.app.state.readiness
    passed = await readiness.check()
    is_ready = all(passed.values())
    if not is_ready:
        response.status_code = 503
    return ReadinessOut(
        status="ready" if is_ready else "not ready",
        checks={name: "ok" if ok else "failed" for name, ok in passed.items()},
    )


@router.get(
    "/metrics",
    summary="Metrics for Prometheus",
    response_class=PlainTextResponse,
    responses=COMMON_RESPONSES,
)
async def get_metrics(request: Request, deps: AppDeps, _: MetricsReader) -> PlainTextResponse:
    """Count runs, queued work, questions and deliveries of all users; needs scope `metrics`.

    Counters, which end in `_total`, are those of this process since its start.
    """
    readiness: Readiness = request.app.state.readiness
    passed, gauges = await asyncio.gather(readiness.check(), browse.gauges(deps))
    text = format_metrics(gauges, passed, request.app.state.counters)
    return PlainTextResponse(text, media_type=PROMETHEUS_TEXT)


class Readiness:
    """Runs the checks, but not as often as somebody without a credential may ask."""

    def __init__(
        self, checks: Checks, *, timeout: timedelta = CHECK_TIMEOUT, keep: timedelta = KEEP_RESULT
    ) -> None:
        self._checks = checks
        self._timeout = timeout.total_seconds()
        self._keep = keep.total_seconds()
        self._checking: asyncio.Task[dict[str, bool]] | None = None
        self._keep_until = 0.0
        #: Checks that are under way, some of which may never end.
        self._underway: dict[str, asyncio.Future[None]] = {}

    async def check(self) -> dict[str, bool]:
        """Run all checks, unless they are being run or have just been."""
        checking = self._checking
        now = asyncio.get_running_loop().time()
        if checking is None or (checking.done() and now >= self._keep_until):
            checking = self._checking = asyncio.create_task(self._check_all())
        return await asyncio.shield(checking)

    async def _check_all(self) -> dict[str, bool]:
        passed = await asyncio.gather(*map(self._passes, self._checks))
        self._keep_until = asyncio.get_running_loop().time() + self._keep
        return dict(zip(self._checks, passed, strict=True))

    async def _passes(self, name: str) -> bool:
        if name not in self._underway:
            self._underway[name] = asyncio.ensure_future(self._checks[name]())
        running = self._underway[name]
        await asyncio.wait({running}, timeout=self._timeout)
        if not running.done():
            _log.error("readiness.check_hangs", check=name)
            return False
        del self._underway[name]
        # The error may name paths and hosts, so it is logged and not sent to the client.
        if isinstance(error := running.exception(), BackburnerError):
            _log.error("readiness.check_failed", check=name, error=str(error))
        elif error is not None:
            _log.error("readiness.check_failed", check=name, exc_info=error)
        return error is None


@dataclass(frozen=True, slots=True)
class CounterMetric:
    """Counts of this process, by one label."""

    name: str
    help: str
    label: str
    counts: Mapping[str, int]


def format_metrics(
    gauges: Gauges, passed: Mapping[str, bool], counters: Iterable[CounterMetric]
) -> str:
    checks = {name.replace(" ", "_"): int(ok) for name, ok in passed.items()}
    lines = [
        *_format("ready", "1 for each check of /ready that passes.", checks, label="check"),
        *_format("runs", "Runs in progress and handed back.", gauges.runs),
        *_format("runs_ended_last_hour", "Runs ended in the last hour.", gauges.ended_last_hour),
        *_format("queue_depth", "Work that can be claimed now.", gauges.claimable),
        *_format(
            "queue_oldest_seconds",
            "Age of the oldest work that can be claimed.",
            gauges.oldest_wait.total_seconds(),
        ),
        *_format("people_waiting", "Messages without a reply.", gauges.users_waiting),
        *_format("questions_open", "Open questions.", gauges.questions),
        *_format("deliveries_waiting", "Deliveries to be sent.", gauges.deliveries),
        *_format("users", "Accounts.", gauges.users),
        *_format("paused", "1 while all background work is paused.", int(gauges.paused)),
    ]
    for counter in counters:
        lines += _format(
            f"{counter.name}_total",
            counter.help,
            # A copy: others count on meanwhile.
            dict(sorted(counter.counts.items())),
            label=counter.label,
            kind="counter",
        )
    return "\n".join(lines) + "\n"


def _format(
    name: str,
    help_: str,
    value: float | Mapping[str, int],
    *,
    label: str = "status",
    kind: str = "gauge",
) -> Iterable[str]:
    name = f"backburner_{name}"
    yield f"# HELP {name} {help_}"
    yield f"# TYPE {name} {kind}"
    if isinstance(value, Mapping):
        yield from (f'{name}{{{label}="{each}"}} {count}' for each, count in value.items())
    else:
        yield f"{name} {value}"
