"""Parameters that endpoints take from the application or the connection.

Dependencies are coroutines: FastAPI would call plain functions in a thread.
"""

from collections.abc import AsyncIterator
from contextlib import ExitStack
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


async def provide_deps(request: Request) -> Deps:
    return get_deps(request)


async def read_client_address(request: Request) -> str:
    return request.client.host if request.client else ""


async def open_stack() -> AsyncIterator[ExitStack]:
    """Hold what a request opens, until its response was sent or could not be."""
    with ExitStack() as stack:
        yield stack


AppDeps = Annotated[Deps, Depends(provide_deps)]
ClientAddress = Annotated[str, Depends(read_client_address)]
Opened = Annotated[ExitStack, Depends(open_stack)]
