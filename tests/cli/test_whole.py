"""Everything that the API can do, a command can; and every listed command exists."""

from collections.abc import Iterable, Iterator
from typing import Any, cast

import click
import pytest
from starlette.routing import BaseRoute
from support.cases.commands_by_route import COMMANDS, NO_COMMAND
from support.requirements import requirement

from backburner.actions.deps import Deps
from backburner.api.app import build_api
from backburner.app.machines import NoTools
from backburner.cli.main import backburner
from backburner.ports import Store


async def no_tools(*_call: Any) -> None:
    pass


def all_routes() -> set[str]:
    """List the routes of the server, each with its method; * for any. Pages only use them."""
    deps = Deps(store=cast("Store", None), engines={}, default_profile="", toolbox=NoTools())
    api = build_api(deps, hosts=(), checks={}, tools=no_tools)
    return set(walk(api.routes))


def walk(routes: Iterable[BaseRoute]) -> Iterator[str]:
    for route in routes:
        router = getattr(route, "original_router", None)
        if router is not None:
            yield from walk(router.routes)
            continue
        path, methods = route.path, route.methods or {"*"}  # type: ignore[attr-defined]
        yield from (f"{method} {path}" for method in methods - {"HEAD"})


def find_command(path: str) -> click.Command | None:
    command: click.Command | None = backburner
    for name in path.split():
        if not isinstance(command, click.Group):
            return None
        command = command.get_command(click.Context(command), name)
    return command


@requirement("Z-cli-whole")
def test_every_route_has_a_command_or_a_reason_to_have_none() -> None:
    routes = all_routes()

    assert len(routes) > 80
    assert routes - COMMANDS.keys() - NO_COMMAND.keys() == set()
    # Nor is anything listed that is gone.
    assert (COMMANDS.keys() | NO_COMMAND.keys()) - routes == set()
    assert COMMANDS.keys() & NO_COMMAND.keys() == set()


@requirement("Z-cli-whole")
@pytest.mark.parametrize("path", sorted(set(COMMANDS.values())))
def test_every_command_of_the_table_exists_and_does_something(path: str) -> None:
    command = find_command(path)

    assert command is not None
    assert not isinstance(command, click.Group)


def test_a_command_that_does_not_exist_is_noticed() -> None:
    assert find_command("tasks explode") is None
    assert find_command("me zone") is None
