"""The HTTP application, put together from one router per path prefix."""

from collections.abc import Collection

from fastapi import FastAPI

from backburner import __version__
from backburner.actions.deps import Deps
from backburner.api import accounts, backup, health, mine, problems, tokens, users
from backburner.api.hosts import KnownHosts


def build_api(
    deps: Deps, *, hosts: Collection[str], checks: health.Checks, public_url: str = ""
) -> FastAPI:
    """Build what answers requests to `hosts`; it is ready while every check passes.

    `public_url` is what browsers see of it behind a proxy.
    """
    api = FastAPI(
        title="Backburner",
        version=__version__,
        openapi_url="/api/openapi.json",
        # These pages load their scripts from somebody else's server.
        docs_url=None,
        redoc_url=None,
    )
    api.state.deps = deps
    api.state.public_url = public_url
    problems.add_handlers(api)
    api.include_router(health.build_router(checks))
    for part in (accounts, backup, mine, tokens, users):
        api.include_router(part.build_router())
    api.add_middleware(KnownHosts, hosts=hosts)
    return api
