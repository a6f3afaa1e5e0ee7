"""Replies in the format of the Anthropic Messages API."""

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
    Finish,
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

_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def error(refuse: Refuse) -> dict[str, Any]:
    kind = _ERRORS.get(refuse.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": refuse.message}}


def whole(request: ModelRequest, reply: Reply, number: int) -> dict[str, Any]:
    content = [block for _, block in _blocks(request, reply, number)]
    message = _message(request, reply, number)
    stop = _stop(reply)
    return message | {
        "content": content,
        "stop_reason": stop,
        "usage": _usage(usage_of(reply, request)),
    }


def stream(request: ModelRequest, reply: Reply, number: int) -> Iterator[bytes | Fault]:
    yield _event("message_start", message=_message(request, reply, number))
    index = 0
    blocks = dict(_blocks(request, reply, number))
    for at, step in enumerate(reply):
        match step:
            case Say() | CallTool() | GiveOutcome():
                yield from _block(index, step, blocks[at])
                index += 1
            case Refuse():
                yield _event("error", **error(step))
                return
            case Cut() | Stall() | Garbage() | Delay():
                yield step
            case Usage() | Finish():
                pass
    used = {"output_tokens": usage_of(reply, request).output}
    yield _event("message_delta", delta={"stop_reason": _stop(reply)}, usage=used)
    yield _event("message_stop")


def _block(
    index: int, step: Say | CallTool | GiveOutcome, block: dict[str, Any]
) -> Iterator[bytes]:
    if isinstance(step, Say):
        empty = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": piece} for piece in split(step)]
    else:
        empty = block | {"input": {}}
        given = step.arguments if isinstance(step, CallTool) else step.value
        written = given if isinstance(given, str) else json.dumps(given)
        deltas = [{"type": "input_json_delta", "partial_json": written}]
    yield _event("content_block_start", index=index, content_block=empty)
    for delta in deltas:
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _blocks(
    request: ModelRequest, reply: Reply, number: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Write text and calls as content blocks, each with the index of its step."""
    for at, step in enumerate(reply):
        match step:
            case Say(text):
                yield at, {"type": "text", "text": text}
            case CallTool(name, arguments):
                yield at, _call(f"toolu_{number}_{at}", request.full_name(name), arguments)
            case GiveOutcome(value):
                name = request.outcome_tool or "StructuredOutput"
                yield at, _call(f"toolu_{number}_{at}", name, value)
            case _:
                pass


def _call(call_id: str, tool: str, arguments: object) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": tool, "input": arguments}


def _message(request: ModelRequest, reply: Reply, number: int) -> dict[str, Any]:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": request.body.get("model", ""),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _usage(usage_of(reply, request)) | {"output_tokens": 1},
    }


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
    }


def _stop(reply: Reply) -> str:
    calls = any(isinstance(step, CallTool | GiveOutcome) for step in reply)
    reasons = {"length": "max_tokens", "filter": "refusal"}
    return reasons.get(finish_of(reply), "tool_use" if calls else "end_turn")


def _event(kind: str, **data: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind} | data)}\n\n".encode()
