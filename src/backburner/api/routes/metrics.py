"""`/metrics` in the text format of Prometheus: how much there is to do, and who is behind.

For operators only, with a token: behind a proxy everybody seems to come from this machine, so that
coming from here proves nothing. It has numbers and nobody's words or names.
"""

from collections.abc import Iterable, Mapping

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

from backburner.actions import browse
from backburner.api.http.auth import Operator, TheDeps
from backburner.api.schemas.base import refusals
from backburner.ports import Gauges

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def build_router() -> APIRouter:
    router = APIRouter(tags=["metrics"])

    @router.get(
        "/metrics",
        summary="Numbers for Prometheus",
        response_class=PlainTextResponse,
        responses=refusals(),
    )
    async def get_metrics(deps: TheDeps, _: Operator) -> PlainTextResponse:
        """Give counts of all users together; needs the scope `operate`."""
        return PlainTextResponse(write(await browse.gauges(deps)), media_type=MEDIA_TYPE)

    return router


def write(found: Gauges) -> str:
    lines = [
        *_gauge("runs", "Runs under way and handed back.", found.runs),
        *_gauge("runs_ended_last_hour", "Runs that ended in the last hour.", found.ended),
        *_gauge("queue_depth", "Pieces of work that could be taken up now.", found.claimable),
        *_gauge(
            "queue_oldest_seconds",
            "How long the first of them has waited.",
            found.oldest.total_seconds(),
        ),
        *_gauge("people_waiting", "Messages that wait for a reply.", found.people_waiting),
        *_gauge("questions_open", "Questions that wait for an answer.", found.questions),
        *_gauge("deliveries_waiting", "Parts of notices still to be sent.", found.deliveries),
        *_gauge("users", "Accounts.", found.users),
        *_gauge("paused", "1 while all background work stands still.", int(found.paused)),
    ]
    return "\n".join(lines) + "\n"


def _gauge(name: str, about: str, value: float | Mapping[str, int]) -> Iterable[str]:
    name = f"backburner_{name}"
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} gauge"
    if isinstance(value, Mapping):
        yield from (f'{name}{{status="{status}"}} {count}' for status, count in value.items())
    else:
        yield f"{name} {value}"
