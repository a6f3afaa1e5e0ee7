"""The HTTP application, put together from one router per path prefix."""

from collections.abc import Collection
from datetime import timedelta
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from backburner import __version__
from backburner.actions.deps import Deps
from backburner.api.http import problems
from backburner.api.http.hosts import KnownHosts
from backburner.api.http.limits import BoundedBodies
from backburner.api.routes import (
    away,
    backup,
    conversations,
    events,
    grants,
    health,
    jobs,
    mcp,
    me,
    memories,
    messages,
    metrics,
    notices,
    personal_data,
    questions,
    runs,
    schedules,
    sign_in,
    spending,
    tasks,
    tokens,
    users,
)
from backburner.api.schemas.base import add_problem
from backburner.live.feed import Feed

ROUTERS = (
    sign_in.build_router,
    away.build_router,
    backup.build_router,
    conversations.build_router,
    events.build_router,
    grants.build_router,
    jobs.build_router,
    me.build_router,
    memories.build_router,
    messages.build_router,
    metrics.build_router,
    personal_data.build_router,
    notices.build_router,
    questions.build_router,
    runs.build_router,
    schedules.build_router,
    spending.build_router,
    tasks.build_router,
    tokens.build_router,
    users.build_router,
)
#: Often enough for whatever lies between, which ends what seems to be unused after a minute or so.
HEARTBEAT = timedelta(seconds=15)


class Api(FastAPI):
    def openapi(self) -> dict[str, Any]:
        return add_problem(super().openapi())


def build_api(
    deps: Deps,
    *,
    hosts: Collection[str],
    checks: health.Checks,
    public_url: str = "",
    tools: mcp.Serve | None = None,
    heartbeat: timedelta = HEARTBEAT,
) -> FastAPI:
    """Build what answers requests to `hosts`; it is ready while every check passes.

    `public_url` is what browsers see of it behind a proxy; `tools` answers clients over MCP;
    `heartbeat` is how often a stream in which nothing happens says that it is still there.
    """
    api = Api(
        title="Backburner",
        version=__version__,
        openapi_url="/api/openapi.json",
        # These pages load their scripts from somebody else's server.
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=_operation_id,
    )
    api.state.deps = deps
    api.state.public_url = public_url
    api.state.feed = Feed(deps)
    api.state.heartbeat = heartbeat.total_seconds()
    problems.add_handlers(api)
    api.include_router(health.build_router(checks))
    for build_router in ROUTERS:
        api.include_router(build_router())
    if tools is not None:
        mcp.add_route(api, tools)
    api.add_middleware(BoundedBodies)
    api.add_middleware(KnownHosts, hosts=hosts)
    return api


def _operation_id(route: APIRoute) -> str:
    """Call an operation what its function is called: clients that are generated read better."""
    return route.name
