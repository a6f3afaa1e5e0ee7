"""Requests that the real APIs refuse: calls without results, results without calls, tools with bad
names or schemas.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from support.model_api.request import ModelRequest, read_json
from support.model_api.strict_schemas import Api, about_schema

_MAX_NAME_CHARS: Mapping[Api, int] = {"messages": 128, "completions": 64}
_MAX_DESCRIPTION_CHARS = 1_024
_MAX_TOOLS = 128


def complaint(request: ModelRequest) -> str | None:
    """Return what is wrong with a request, or None."""
    if not isinstance(request.body, dict) or not request.body.get("messages"):
        return "messages: missing."
    api: Api = "messages" if request.path.endswith("/messages") else "completions"
    messages = request.body["messages"]
    about = chain(
        _about_tools(request, _MAX_NAME_CHARS[api]),
        _about_schemas(request, api),
        _about_sizes(request) if api == "completions" else (),
        _about_calls(list(_turns(messages))),
        _about_arguments(messages),
    )
    return next(about, None)


def _about_tools(request: ModelRequest, max_chars: int) -> Iterator[str]:
    for name, count in Counter(request.tools).items():
        if count > 1:
            yield f"tools: {name!r} is defined more than once."
        if not re.fullmatch(f"[a-zA-Z0-9_-]{{1,{max_chars}}}", name):
            yield f"tools: {name!r} is not a valid name."


def _about_schemas(request: ModelRequest, api: Api) -> Iterator[str]:
    for number, (name, schema) in enumerate(request.schemas):
        if wrong := about_schema(schema, api):
            yield f"tools.{number} ({name}): {wrong}"


def _about_sizes(request: ModelRequest) -> Iterator[str]:
    if len(request.tools) > _MAX_TOOLS:
        yield f"tools: array too long, with {len(request.tools)}."
    for number, text in enumerate(request.descriptions):
        if len(text) > _MAX_DESCRIPTION_CHARS:
            yield f"tools.{number}.function.description: string too long."


def _turns(messages: Iterable[dict[str, Any]]) -> Iterator[tuple[set[str], set[str]]]:
    """Yield the ids of the calls and of the results in each message."""
    for message in messages:
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        calls = {call["id"] for call in message.get("tool_calls") or ()}
        calls |= {block["id"] for block in blocks if block.get("type") == "tool_use"}
        results = {message["tool_call_id"]} if "tool_call_id" in message else set()
        results |= {block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"}
        yield calls, results


def _about_calls(turns: list[tuple[set[str], set[str]]]) -> Iterator[str]:
    waiting = set[str]()
    for calls, results in turns:
        if results - waiting:
            yield f"messages: a result for {sorted(results - waiting)}, which was not called."
        waiting -= results
        if waiting and not results:
            yield f"messages: no result for {sorted(waiting)}."
        waiting = waiting | calls
    if waiting:
        yield f"messages: no result for {sorted(waiting)}."


def _about_arguments(messages: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Servers of local models parse them again, and fail if they cannot."""
    for message in messages:
        for call in message.get("tool_calls") or ():
            written = call["function"].get("arguments", "{}")
            if not isinstance(read_json(written.encode()), dict):
                yield f"messages: {written[:40]!r} are not valid arguments."
