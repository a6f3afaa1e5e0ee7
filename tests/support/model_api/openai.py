"""Replies in the format of the OpenAI chat completions API."""

import json
from collections.abc import Iterator
from typing import Any

from backburner.core.allowance import Usage
from support.model_api.request import ModelRequest
from support.model_api.steps import (
    CallTool,
    Cut,
    Delay,
    Fault,
    Garbage,
    GiveOutcome,
    Refuse,
    Reply,
    Say,
    Stall,
    finish_of,
    split,
    usage_of,
)

MODELS = {"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": "nobody"}]}


def error(refuse: Refuse) -> dict[str, Any]:
    return {
        "error": {"message": refuse.message, "type": "error", "param": None, "code": refuse.status}
    }


def whole(
    request: ModelRequest, reply: Reply, number: int, *, reports_usage: bool
) -> dict[str, Any]:
    deltas = [delta for step in _deltas(request, reply, number) for delta in step[1]]
    text = "".join(delta.get("content", "") for delta in deltas)
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message |= {"tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": _finish(reply, calls=bool(calls))}
    usage = {"usage": _usage(usage_of(reply, request))} if reports_usage else {}
    return _frame(request, number, "chat.completion") | {"choices": [choice]} | usage


def stream(
    request: ModelRequest, reply: Reply, number: int, *, reports_usage: bool
) -> Iterator[bytes | Fault]:
    frame = _frame(request, number, "chat.completion.chunk")
    yield _chunk(frame, {"role": "assistant", "content": ""})
    deltas = dict(_deltas(request, reply, number))
    for at, step in enumerate(reply):
        match step:
            case Refuse():
                yield _data(error(step))
                return
            case Cut() | Stall() | Garbage() | Delay():
                yield step
            case _:
                yield from (_chunk(frame, delta) for delta in deltas.get(at, ()))
    calls = any("tool_calls" in delta for given in deltas.values() for delta in given)
    yield _chunk(frame, {}, finish=_finish(reply, calls=calls))
    if reports_usage:
        yield _data(frame | {"choices": [], "usage": _usage(usage_of(reply, request))})
    yield b"data: [DONE]\n\n"


def _deltas(
    request: ModelRequest, reply: Reply, number: int
) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Write text and calls as deltas, each with the index of its step."""
    index = 0
    for at, step in enumerate(reply):
        match step:
            case Say():
                yield at, [{"content": piece} for piece in split(step)]
            case CallTool(name, arguments):
                yield at, [_call(index, f"call_{number}_{at}", request.full_name(name), arguments)]
                index += 1
            case GiveOutcome(value) if (tool := request.outcome_tool) is not None:
                yield at, [_call(index, f"call_{number}_{at}", tool, value)]
                index += 1
            case GiveOutcome(value):
                yield at, [{"content": json.dumps(value)}]
            case _:
                pass


def _call(index: int, call_id: str, tool: str, arguments: object) -> dict[str, Any]:
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    function = {"name": tool, "arguments": written}
    call = {"index": index, "id": call_id, "type": "function", "function": function}
    return {"tool_calls": [call]}


def _frame(request: ModelRequest, number: int, kind: str) -> dict[str, Any]:
    model = request.body.get("model", "")
    return {"id": f"chatcmpl-{number}", "object": kind, "created": 1_700_000_000, "model": model}


def _chunk(frame: dict[str, Any], delta: dict[str, Any], finish: str | None = None) -> bytes:
    return _data(frame | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def _data(value: object) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def _finish(reply: Reply, *, calls: bool) -> str:
    reasons = {"length": "length", "filter": "content_filter"}
    return reasons.get(finish_of(reply), "tool_calls" if calls else "stop")


def _usage(usage: Usage) -> dict[str, Any]:
    # Here cached tokens are part of the prompt.
    prompt = usage.input + usage.cache_read + usage.cache_write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
    }
