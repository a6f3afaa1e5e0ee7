"""What a call of a model used, and how long the session has become. Estimated if nobody says."""

import json
from collections.abc import Iterable, Iterator, Sequence

from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters

from backburner.core.allowance import Usage

BYTES_IN_TOKEN = 4
#: What stands around the words of a message, about, in bytes.
_AROUND = 16


def usage(
    answer: ModelResponse, sent: Sequence[ModelMessage], parameters: ModelRequestParameters
) -> Usage:
    """Say what a call used: what the server says, or what it comes to in bytes."""
    told = answer.usage
    if not (told.input_tokens or told.output_tokens):
        request = _weigh(sent) + _fixed(parameters)
        return Usage(input=request // BYTES_IN_TOKEN, output=_weigh([answer]) // BYTES_IN_TOKEN)
    cached = told.cache_read_tokens + told.cache_write_tokens
    return Usage(
        input=max(0, told.input_tokens - cached),
        output=told.output_tokens,
        cache_read=told.cache_read_tokens,
        cache_write=told.cache_write_tokens,
    )


def session(used: Usage, sent: Sequence[ModelMessage], parameters: ModelRequestParameters) -> int:
    """Say about how many tokens the session has, apart from system prompt and tools."""
    messages = _weigh(sent)
    share = messages / (messages + _fixed(parameters))
    return round((used.input + used.cache_read + used.cache_write) * share) + used.output


def _weigh(messages: Iterable[ModelMessage]) -> int:
    return sum(
        _AROUND + sum(len(text.encode(errors="replace")) for text in _texts(message))
        for message in messages
    )


def _texts(message: ModelMessage) -> Iterator[str]:
    for part in message.parts:
        match part:
            case UserPromptPart() | TextPart() | ThinkingPart() | ToolReturnPart():
                yield str(part.content)
            case ToolCallPart():
                yield part.tool_name + part.args_as_json_str()
            case _:
                pass


def _fixed(parameters: ModelRequestParameters) -> int:
    tools = (*parameters.function_tools, *parameters.output_tools)
    said = [part.content for part in parameters.instruction_parts or ()]
    said += [tool.name + (tool.description or "") for tool in tools]
    said += [json.dumps(tool.parameters_json_schema) for tool in tools]
    return sum(len(text.encode(errors="replace")) for text in said)
