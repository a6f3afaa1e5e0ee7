"""Find an object by its name, or by a unique prefix of its id, with or without the type letter."""

import re
from collections.abc import Iterable
from itertools import chain
from typing import Any

from backburner.cli.client import Server
from backburner.cli.output import truncate
from backburner.core.errors import BadRequest, NotFound
from backburner.core.validation import normalize_title

#: The type letter, an underscore and 26 characters; a name may be as long.
_FULL_ID = re.compile(r"[a-z]_[0-9a-z]{26}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
MAX_MATCHES_SHOWN = 5
#: The hint to what was not found.
LISTED_BY = {
    "conversation": "See `backburner conversations`.",
    "task": "See `backburner tasks`.",
    "job": "See `backburner jobs`.",
    "open question": "See `backburner questions`.",
    "grant": "See `backburner grants`.",
    "run": "See `backburner runs CONVERSATION`.",
    "invitation": "See `backburner user invitations`.",
    "file": "See `backburner files`.",
    "browser": "See `backburner push`.",
    "session": "See `backburner sessions`.",
}


def find_conversation(server: Server, reference: str) -> str:
    path = "/api/conversations"
    conversations = chain(server.items(path, all=True), server.items(path, all=True, archived=True))
    return _find(reference, conversations, "conversation", name="title")


def find_task(server: Server, reference: str) -> str:
    """Find a task; of several with one name, the one that is not done."""
    if is_full_id(reference):
        return reference
    open_tasks = list(server.items("/api/tasks"))
    if len(named := select_named(reference, open_tasks, "name")) == 1:
        return str(named[0]["id"])
    tasks = chain(open_tasks, server.items("/api/tasks", status="done"))
    return match(reference, tasks, "task", name="name")


def find_job(server: Server, reference: str) -> str:
    return _find(reference, server.items("/api/jobs"), "job", name="description")


def find_question(server: Server, prefix: str) -> str:
    return _find(prefix, server.items("/api/questions"), "open question", label="prompt")


def find_grant(server: Server, prefix: str) -> str:
    return _find(prefix, server.items("/api/grants"), "grant", label="tool")


def find_run(server: Server, conversation_id: str, prefix: str) -> str:
    runs = server.items(f"/api/conversations/{conversation_id}/runs")
    return _find(prefix, runs, "run", label="status")


def find_file(server: Server, prefix: str) -> str:
    """Find the digest of a file by the start of it."""
    if _DIGEST.fullmatch(prefix):
        return prefix
    listed = ({"id": file["digest"], "name": file["name"]} for file in server.items("/api/files"))
    return match_prefix(prefix, listed, "file", label="name")


def _find(
    reference: str, items: Iterable[Any], noun: str, *, name: str | None = None, label: str = ""
) -> str:
    # A complete id needs no request: items are only fetched when they are read.
    if is_full_id(reference):
        return reference
    if name is None:
        return match_prefix(reference, items, noun, label=label)
    return match(reference, items, noun, name=name)


def match(reference: str, items: Iterable[Any], noun: str, *, name: str) -> str:
    """Return the id of the one object with this name, or else with this prefix of an id."""
    if not reference.strip(" _"):
        raise BadRequest(f"No {noun} given.", hint="Use its name, its id, or the start of it.")
    known = list({item["id"]: item for item in items}.values())
    named = select_named(reference, known, name)
    if len(named) == 1:
        return str(named[0]["id"])
    if len(named) > 1:
        ids = "; ".join(map(_with_kind, named[:MAX_MATCHES_SHOWN]))
        raise BadRequest(f"{len(named)} {noun}s are named {reference}: {ids}.", hint="Use an id.")
    if not any(matches(item["id"], reference) for item in known):
        raise NotFound(
            f"No {noun} is named {reference} or has an id that starts with it.",
            hint=LISTED_BY[noun],
        )
    return match_prefix(reference, known, noun, label=name)


def select_named(reference: str, items: Iterable[Any], name: str) -> list[Any]:
    """Select the objects with this name; case does not matter."""
    wanted = normalize_title(reference).casefold()
    return [item for item in items if item[name].casefold() == wanted]


def match_prefix(prefix: str, items: Iterable[Any], noun: str, *, label: str) -> str:
    """Return the one id that starts with the prefix; `label` is the field shown in errors."""
    if not prefix.strip("_"):
        raise BadRequest(f"No {noun} given.", hint="Use its id, or the start of it.")
    found = {item["id"]: item for item in items if matches(item["id"], prefix)}
    if not found:
        raise NotFound(f"No {noun} has an id that starts with {prefix}.", hint=LISTED_BY[noun])
    if len(found) > 1:
        shown = list(found.values())[:MAX_MATCHES_SHOWN]
        names = "; ".join(f"{item['id']} ({truncate(item[label])})" for item in shown)
        raise BadRequest(
            f"{len(found)} ids start with {prefix}: {names}.",
            hint="Use more characters of the id.",
        )
    return str(next(iter(found)))


def _with_kind(item: Any) -> str:
    return f"{item['id']} ({item['kind']})" if "kind" in item else str(item["id"])


def is_full_id(text: str) -> bool:
    return _FULL_ID.fullmatch(text) is not None


def matches(full_id: str, prefix: str) -> bool:
    return full_id.startswith(prefix) or full_id.partition("_")[2].startswith(prefix)
