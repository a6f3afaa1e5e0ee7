"""What the real APIs refuse: a call without its result, a result without its call, odd names."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from support.model_api.heard import Heard, read_json

_LONGEST_NAME = {"messages": 128, "completions": 64}


def complaint(heard: Heard) -> str | None:
    """Say what is wrong with a request; None: nothing is."""
    if not isinstance(heard.body, dict) or not heard.body.get("messages"):
        return "messages: it is missing."
    kind = heard.path.rpartition("/")[2]
    messages = heard.body["messages"]
    about = chain(
        _about_tools(heard, _LONGEST_NAME[kind]),
        _about_calls(list(_turns(messages))),
        _about_arguments(messages),
    )
    return next(about, None)


def _about_tools(heard: Heard, longest: int) -> Iterator[str]:
    for name, count in Counter(heard.tools).items():
        if count > 1:
            yield f"tools: {name!r} stands there more than once."
        if not re.fullmatch(f"[a-zA-Z0-9_-]{{1,{longest}}}", name):
            yield f"tools: {name!r} is no name."


def _turns(messages: Iterable[dict[str, Any]]) -> Iterator[tuple[set[str], set[str]]]:
    """For each message, the ids of the calls and of the results in it."""
    for message in messages:
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        calls = {call["id"] for call in message.get("tool_calls") or ()}
        calls |= {block["id"] for block in blocks if block.get("type") == "tool_use"}
        results = {message["tool_call_id"]} if "tool_call_id" in message else set()
        results |= {one["tool_use_id"] for one in blocks if one.get("type") == "tool_result"}
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
    """Servers of local models read them again, and fail where they cannot."""
    for message in messages:
        for call in message.get("tool_calls") or ():
            written = call["function"].get("arguments", "{}")
            if not isinstance(read_json(written.encode()), dict):
                yield f"messages: {written[:40]!r} are no arguments."
