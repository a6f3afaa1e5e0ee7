"""Parameters that endpoints take from the application or the connection."""

from typing import Annotated

from fastapi import Depends, Request

from backburner.actions.deps import Deps
from backburner.live.feed import Feed


def get_deps(request: Request) -> Deps:
    deps: Deps = request.app.state.deps
    return deps


def get_feed(request: Request) -> Feed:
    feed: Feed = request.app.state.feed
    return feed


def get_client_address(request: Request) -> str:
    return request.client.host if request.client else ""


AppDeps = Annotated[Deps, Depends(get_deps)]
ClientAddress = Annotated[str, Depends(get_client_address)]
