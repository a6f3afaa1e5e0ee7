"""The HTTP application."""

from collections import Counter
from collections.abc import Collection
from datetime import timedelta
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.routing import Route

from backburner import __version__
from backburner.actions.deps import Deps
from backburner.api.http import openapi, problems
from backburner.api.http.caller_limits import CallerLimits
from backburner.api.http.headers import HeadersMiddleware
from backburner.api.http.hosts import HostCheckMiddleware
from backburner.api.http.limits import BodyLimitMiddleware, upload_limits
from backburner.api.routes import (
    away,
    conversations,
    downloads,
    events,
    grants,
    jobs,
    mcp,
    me,
    memories,
    messages,
    monitoring,
    notices,
    questions,
    runs,
    schedules,
    sign_in,
    spending,
    tasks,
    tokens,
    users,
)
from backburner.api.routes.channels import push
from backburner.api.routes.operate import model_setup, models, overview, pause_all, vault
from backburner.api.routes.operate import spending as user_spending
from backburner.api.routes.work import (
    connection_imports,
    connection_sign_in,
    connections,
    files,
    folders,
    timeline,
    upcoming,
)
from backburner.live.feed import Feed

ROUTERS = (
    sign_in.router,
    me.router,
    tokens.router,
    users.router,
    conversations.router,
    messages.router,
    schedules.router,
    tasks.router,
    jobs.router,
    jobs.agents_router,
    runs.router,
    questions.router,
    grants.router,
    notices.router,
    push.router,
    memories.router,
    spending.router,
    away.router,
    events.router,
    downloads.router,
    # Before the routes with an id in the same place.
    connection_imports.router,
    files.router,
    connections.router,
    connection_sign_in.router,
    folders.router,
    timeline.router,
    models.router,
    model_setup.router,
    overview.router,
    user_spending.router,
    pause_all.router,
    vault.router,
    upcoming.router,
)
#: Shorter than the minute or so after which proxies close idle connections.
HEARTBEAT_INTERVAL = timedelta(seconds=15)


def _operation_id(route: APIRoute) -> str:
    """Use the function's name, which reads well in generated clients."""
    return route.name


#: All routes of the API. Applications share them, with all that FastAPI derives from their types.
_root = APIRouter(generate_unique_id_function=_operation_id)
for _router in ROUTERS:
    _root.include_router(_router, responses=openapi.COMMON_RESPONSES)
_monitoring = APIRouter(generate_unique_id_function=_operation_id)
_monitoring.include_router(monitoring.router)
_root.include_router(_monitoring)


class Api(FastAPI):
    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = openapi.complete(
                super().openapi(), public_url=self.state.public_url
            )
        return self.openapi_schema


def build_api(
    deps: Deps,
    *,
    hosts: Collection[str],
    checks: monitoring.Checks,
    public_url: str = "",
    tools: mcp.ServeTools | None = None,
    heartbeat: timedelta = HEARTBEAT_INTERVAL,
    reply_timeout: timedelta | None = None,
) -> FastAPI:
    """Build the application that serves `hosts`; it is ready while all `checks` pass.

    `public_url` is its address behind a proxy. `tools` serves MCP clients. Idle streams send a
    comment every `heartbeat`. A streamed reply ends after `reply_timeout`, by default the timeout
    of a run and a minute to wait for its start.
    """
    api = Api(
        title="Backburner",
        version=__version__,
        openapi_url="/api/openapi.json",
        # FastAPI's documentation pages load scripts from a third-party server.
        docs_url=None,
        redoc_url=None,
        exception_handlers=problems.HANDLERS,
        routes=list(_root.routes),
    )
    responses = _set_up_monitoring(api, deps, checks)
    api.state.public_url = public_url
    api.state.feed = Feed(deps)
    api.state.heartbeat = heartbeat.total_seconds()
    api.state.reply_timeout = reply_timeout
    if tools is not None:
        api.routes.append(Route(mcp.PATH, mcp.McpEndpoint(tools), include_in_schema=False))
    # Looked up later: the description of the API is made without anything behind it.
    uploads = {files.router.prefix: lambda: upload_limits(deps.limits.files.file)}
    api.add_middleware(BodyLimitMiddleware, posts=uploads)
    api.add_middleware(HostCheckMiddleware, hosts=hosts)
    api.add_middleware(HeadersMiddleware, responses=responses)
    return api


def build_monitoring_api(deps: Deps, *, checks: monitoring.Checks) -> FastAPI:
    """Build the application of a worker, with the routes for monitoring only.

    It serves any host: probes use names and addresses that only their machine knows, and no page
    of a browser is at home here.
    """
    api = Api(
        title="Backburner",
        version=__version__,
        openapi_url=None,
        exception_handlers=problems.HANDLERS,
        routes=list(_monitoring.routes),
    )
    responses = _set_up_monitoring(api, deps, checks)
    api.state.public_url = ""
    api.add_middleware(BodyLimitMiddleware)
    api.add_middleware(HeadersMiddleware, responses=responses)
    return api


def _set_up_monitoring(api: FastAPI, deps: Deps, checks: monitoring.Checks) -> Counter[str]:
    """Set what the routes for monitoring need; return the counter of responses."""
    responses = Counter[str]()
    api.state.deps = deps
    api.state.limits = CallerLimits()
    api.state.readiness = monitoring.Readiness(checks)
    api.state.counters = [
        monitoring.CounterMetric("responses", "Responses.", "status", responses),
    ]
    return responses
