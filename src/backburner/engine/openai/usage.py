"""The tokens of a model call and of the session; estimated if the server does not report them."""

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
from backburner.engine.openai.images import IMAGE_TOKENS, count_images, texts_of

BYTES_PER_TOKEN = 4
#: The overhead of a message, roughly.
_MESSAGE_BYTES = 16


def call_usage(
    response: ModelResponse, sent: Sequence[ModelMessage], parameters: ModelRequestParameters
) -> Usage:
    """Return the tokens that the server reports, or an estimate from bytes."""
    reported = response.usage
    if not (reported.input_tokens or reported.output_tokens):
        request = _count_bytes(sent) + _count_fixed_bytes(parameters)
        return Usage(
            input=request // BYTES_PER_TOKEN, output=_count_bytes([response]) // BYTES_PER_TOKEN
        )
    cached = reported.cache_read_tokens + reported.cache_write_tokens
    return Usage(
        input=max(0, reported.input_tokens - cached),
        output=reported.output_tokens,
        cache_read=reported.cache_read_tokens,
        cache_write=reported.cache_write_tokens,
    )


def session_tokens(
    used: Usage, sent: Sequence[ModelMessage], parameters: ModelRequestParameters
) -> int:
    """Estimate the tokens of the session, without system prompt and tools."""
    messages = _count_bytes(sent)
    share = messages / (messages + _count_fixed_bytes(parameters))
    return round((used.input + used.cache_read + used.cache_write) * share) + used.output


def _count_bytes(messages: Iterable[ModelMessage]) -> int:
    return sum(
        _MESSAGE_BYTES
        + sum(len(text.encode(errors="replace")) for text in _texts(message))
        + _count_images(message) * IMAGE_TOKENS * BYTES_PER_TOKEN
        for message in messages
    )


def _count_images(message: ModelMessage) -> int:
    parts = (part for part in message.parts if isinstance(part, UserPromptPart))
    return sum(count_images(part.content) for part in parts)


def _texts(message: ModelMessage) -> Iterator[str]:
    for part in message.parts:
        match part:
            case UserPromptPart(content=content):
                yield from texts_of(content)
            case TextPart() | ThinkingPart() | ToolReturnPart():
                yield str(part.content)
            case ToolCallPart():
                yield part.tool_name + part.args_as_json_str()
            case _:
                pass


def _count_fixed_bytes(parameters: ModelRequestParameters) -> int:
    tools = (*parameters.function_tools, *parameters.output_tools)
    texts = [part.content for part in parameters.instruction_parts or ()]
    texts += [tool.name + (tool.description or "") for tool in tools]
    texts += [json.dumps(tool.parameters_json_schema) for tool in tools]
    return sum(len(text.encode(errors="replace")) for text in texts)
