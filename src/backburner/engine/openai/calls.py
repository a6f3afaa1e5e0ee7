"""The calls in a model's message: read, and mended where others could not read them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai.messages import ModelResponse, ModelResponsePart, ToolCallPart


@dataclass(frozen=True, slots=True)
class Call:
    part: ToolCallPart
    #: None: what the model wrote is no JSON object.
    arguments: Mapping[str, Any] | None
    #: What it wrote.
    written: str


def take_calls(response: ModelResponse) -> tuple[ModelResponse, list[Call]]:
    """Read the calls of a message, and give the message as it can be sent back.

    There are servers that give two calls the same id, and some that cannot take back what their
    model wrote if it is no JSON.
    """
    parts, calls = list[ModelResponsePart](), list[Call]()
    taken = set[str]()
    for part in response.parts:
        if not isinstance(part, ToolCallPart):
            parts.append(part)
            continue
        call = _read(part, number=len(calls), taken=taken)
        taken.add(call.part.tool_call_id)
        parts.append(call.part)
        calls.append(call)
    return replace(response, parts=parts), calls


def read_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _read(part: ToolCallPart, *, number: int, taken: set[str]) -> Call:
    written = part.args if isinstance(part.args, str) else json.dumps(part.args or {})
    arguments = read_object(written or "{}")
    own = part.tool_call_id
    mended = replace(
        part,
        args="{}" if arguments is None else written or "{}",
        tool_call_id=f"{own}-{number}" if own in taken else own,
    )
    return Call(mended, arguments, written)
