"""Finds out which one is meant: any beginning of an id does, if only one begins so."""

from collections.abc import Iterable
from typing import Any

from backburner.cli.client import Server
from backburner.cli.output import brief
from backburner.core.errors import BadRequest, NotFound

#: An id with its letter and its line.
WHOLE = 28
MOST_NAMED = 5


def conversation(server: Server, given: str) -> str:
    if len(given) == WHOLE:
        return given
    found = [
        *server.items("/api/conversations"),
        *server.items("/api/conversations", archived=True),
    ]
    return choose(given, found, "conversation", "title")


def task(server: Server, given: str, **query: Any) -> str:
    """Take the task of that name, else the one whose id begins so; ended ones too."""
    if len(given) == WHOLE:
        return given
    found = {one["id"]: one for one in _tasks(server, query)}
    named = [one for one in found.values() if one["name"].casefold() == given.casefold()]
    if len(named) == 1:
        return str(named[0]["id"])
    if len(named) > 1:
        ids = "; ".join(one["id"] for one in named[:MOST_NAMED])
        raise BadRequest(f"{len(named)} tasks are called {given}: {ids}.", hint="Give the id.")
    return choose(given, found.values(), "task", "name")


def _tasks(server: Server, query: dict[str, Any]) -> Iterable[Any]:
    yield from server.items("/api/tasks", **query)
    if not query:
        yield from server.items("/api/tasks", status="done")


def question(server: Server, given: str) -> str:
    if len(given) == WHOLE:
        return given
    return choose(given, server.items("/api/questions"), "open question", "prompt")


def grant(server: Server, given: str) -> str:
    if len(given) == WHOLE:
        return given
    return choose(given, server.items("/api/grants"), "grant", "tool")


def job(server: Server, given: str) -> str:
    if len(given) == WHOLE:
        return given
    return choose(given, server.items("/api/jobs"), "job", "description")


def run(server: Server, of: str, given: str) -> str:
    if len(given) == WHOLE:
        return given
    return choose(given, server.items(f"/api/conversations/{of}/runs"), "run", "status")


def choose(given: str, among: Iterable[Any], what: str, named_by: str) -> str:
    """Take the one whose id begins so, with or without its letter."""
    if not given.strip("_"):
        raise BadRequest(f"Say which {what}.", hint="Any beginning of its id will do.")
    found = {one["id"]: one for one in among if _begins(one["id"], given)}
    if not found:
        raise NotFound(f"There is no {what} whose id begins with {given}.")
    if len(found) > 1:
        few = list(found.values())[:MOST_NAMED]
        names = "; ".join(f"{one['id']} ({brief(one[named_by])})" for one in few)
        raise BadRequest(
            f"{len(found)} ids begin with {given}: {names}.", hint="Give more of the one you mean."
        )
    return str(next(iter(found)))


def _begins(which: str, given: str) -> bool:
    return which.startswith(given) or which.partition("_")[2].startswith(given)
