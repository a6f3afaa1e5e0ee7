"""What the agent remembers: each message an entry. No call stays without a result."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pydantic import ValidationError
from pydantic_ai.messages import (
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

INTERRUPTED = "The run was interrupted here. Nobody knows whether this call was made."


def dump(message: ModelMessage) -> str:
    if isinstance(message, ModelResponse):
        # What it thought on the way makes a session long.
        parts = [part for part in message.parts if not isinstance(part, ThinkingPart)]
        message = replace(message, parts=parts)
    return ModelMessagesTypeAdapter.dump_json([message]).decode()


def load(entries: Iterable[str]) -> list[ModelMessage]:
    try:
        found = [one for entry in entries for one in ModelMessagesTypeAdapter.validate_json(entry)]
    except ValidationError:
        raise SessionGone("What the agent remembered cannot be read.") from None
    return list(_completed(found))


def prompt(text: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(content=text)])


def answer(call: ToolCallPart, text: str, *, failed: bool = False) -> ModelRequest:
    part = ToolReturnPart(
        tool_name=call.tool_name,
        content=text,
        tool_call_id=call.tool_call_id,
        outcome="failed" if failed else "success",
    )
    return ModelRequest(parts=[part])


def _completed(messages: Sequence[ModelMessage]) -> Iterator[ModelMessage]:
    """Add the results that are missing where a turn was cut between a call and its result."""
    waiting = dict[str, ToolCallPart]()
    for message in messages:
        results = _results(message)
        if any(result not in waiting for result in results):
            raise SessionGone("The agent remembers the result of a call that it does not remember.")
        if not results:
            yield from _interrupted(waiting)
            waiting.clear()
        for result in results:
            del waiting[result]
        if isinstance(message, ModelResponse):
            waiting = {call.tool_call_id: call for call in message.tool_calls}
        yield message
    yield from _interrupted(waiting)


def _interrupted(waiting: dict[str, ToolCallPart]) -> Iterator[ModelRequest]:
    return (answer(call, INTERRUPTED, failed=True) for call in waiting.values())


def _results(message: ModelMessage) -> list[str]:
    if isinstance(message, ModelResponse):
        return []
    return [part.tool_call_id for part in message.parts if isinstance(part, ToolReturnPart)]
