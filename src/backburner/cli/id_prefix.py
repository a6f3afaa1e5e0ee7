"""Find an object by a unique prefix of its id, with or without the type letter."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

from backburner.cli.client import Server
from backburner.cli.output import truncate
from backburner.core.conversation import normalize_title
from backburner.core.errors import BadRequest, NotFound

#: Characters of a complete id: the type letter, an underscore and 26 more.
FULL_ID_CHARS = 28
MAX_MATCHES_SHOWN = 5


def find_conversation(server: Server, prefix: str) -> str:
    conversations = chain(
        server.items("/api/conversations"), server.items("/api/conversations", archived=True)
    )
    return _find(prefix, conversations, "conversation", label="title")


def find_task(server: Server, name: str, **query: Any) -> str:
    """Find a task by its name, else by a prefix of its id; finished tasks too."""
    if len(name) == FULL_ID_CHARS:
        return name
    tasks = {task["id"]: task for task in _tasks(server, query)}
    wanted = normalize_title(name).casefold()
    named = [task for task in tasks.values() if task["name"].casefold() == wanted]
    if len(named) == 1:
        return str(named[0]["id"])
    if len(named) > 1:
        ids = "; ".join(task["id"] for task in named[:MAX_MATCHES_SHOWN])
        raise BadRequest(f"{len(named)} tasks are named {name}: {ids}.", hint="Use an id.")
    return match_prefix(name, tasks.values(), "task", label="name")


def _tasks(server: Server, query: dict[str, Any]) -> Iterable[Any]:
    yield from server.items("/api/tasks", **query)
    if not query:
        yield from server.items("/api/tasks", status="done")


def find_question(server: Server, prefix: str) -> str:
    return _find(prefix, server.items("/api/questions"), "open question", label="prompt")


def find_grant(server: Server, prefix: str) -> str:
    return _find(prefix, server.items("/api/grants"), "grant", label="tool")


def find_job(server: Server, prefix: str) -> str:
    return _find(prefix, server.items("/api/jobs"), "job", label="description")


def find_run(server: Server, conversation_id: str, prefix: str) -> str:
    runs = server.items(f"/api/conversations/{conversation_id}/runs")
    return _find(prefix, runs, "run", label="status")


def _find(prefix: str, items: Iterable[Any], noun: str, *, label: str) -> str:
    # A complete id needs no request: items are only fetched when they are read.
    is_complete = len(prefix) == FULL_ID_CHARS
    return prefix if is_complete else match_prefix(prefix, items, noun, label=label)


def match_prefix(prefix: str, items: Iterable[Any], noun: str, *, label: str) -> str:
    """Return the one id that starts with the prefix; `label` is the field shown in errors."""
    if not prefix.strip("_"):
        raise BadRequest(f"No {noun} given.", hint="Use its id, or the start of it.")
    matches = {item["id"]: item for item in items if _matches(item["id"], prefix)}
    if not matches:
        raise NotFound(f"No {noun} has an id that starts with {prefix}.")
    if len(matches) > 1:
        shown = list(matches.values())[:MAX_MATCHES_SHOWN]
        names = "; ".join(f"{item['id']} ({truncate(item[label])})" for item in shown)
        raise BadRequest(
            f"{len(matches)} ids start with {prefix}: {names}.",
            hint="Use more characters of the id.",
        )
    return str(next(iter(matches)))


def _matches(full_id: str, prefix: str) -> bool:
    return full_id.startswith(prefix) or full_id.partition("_")[2].startswith(prefix)
