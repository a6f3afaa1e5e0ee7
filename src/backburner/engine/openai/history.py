"""The session: one message an entry. No call stays without a result."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pydantic import ValidationError
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from backburner.core.errors import SessionGone
from backburner.ports import Blob

INTERRUPTED = "The run was interrupted here. It is unknown whether this call was made."


def dump(message: ModelMessage) -> str:
    if isinstance(message, ModelResponse):
        # Thoughts make a session long.
        parts = [part for part in message.parts if not isinstance(part, ThinkingPart)]
        message = replace(message, parts=parts)
    return ModelMessagesTypeAdapter.dump_json([message]).decode()


def load(entries: Iterable[str]) -> list[ModelMessage]:
    try:
        messages = [
            message
            for entry in entries
            for message in ModelMessagesTypeAdapter.validate_json(entry)
        ]
    except ValidationError:
        raise SessionGone("The stored session cannot be read.") from None
    return list(_complete(messages))


def prompt(text: str, images: Sequence[Blob] = ()) -> ModelRequest:
    if not images:
        return ModelRequest(parts=[UserPromptPart(content=text)])
    shown = (BinaryContent(blob.data, media_type=blob.media_type) for blob in images)
    return ModelRequest(parts=[UserPromptPart(content=[text, *shown])])


def result(call: ToolCallPart, text: str, *, failed: bool = False) -> ModelRequest:
    part = ToolReturnPart(
        tool_name=call.tool_name,
        content=text,
        tool_call_id=call.tool_call_id,
        outcome="failed" if failed else "success",
    )
    return ModelRequest(parts=[part])


def _complete(messages: Sequence[ModelMessage]) -> Iterator[ModelMessage]:
    """Add missing results where a turn was cut between a call and its result."""
    waiting = dict[str, ToolCallPart]()
    for message in messages:
        results = _results(message)
        if any(call_id not in waiting for call_id in results):
            raise SessionGone("The stored session has a result without its call.")
        if not results:
            yield from _interrupted(waiting)
            waiting.clear()
        for call_id in results:
            del waiting[call_id]
        if isinstance(message, ModelResponse):
            waiting = {call.tool_call_id: call for call in message.tool_calls}
        yield message
    yield from _interrupted(waiting)


def _interrupted(waiting: dict[str, ToolCallPart]) -> Iterator[ModelRequest]:
    return (result(call, INTERRUPTED, failed=True) for call in waiting.values())


def _results(message: ModelMessage) -> list[str]:
    if isinstance(message, ModelResponse):
        return []
    return [part.tool_call_id for part in message.parts if isinstance(part, ToolReturnPart)]
