"""Tools in OpenAI's terms: their names, their definitions, and the calls in a model's message.

The outcome is a tool like the others. Servers of local models would enforce a response format from
the first token on, so that no tool could be called any more.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai.messages import InstructionPart, ModelResponse, ModelResponsePart, ToolCallPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from backburner.core.tool_policy import OWN_SERVER, Tool
from backburner.engine.persona import SYSTEM_PROMPT
from backburner.engine.shown_tools import ShownTool, show_tool, shown_name
from backburner.ports import Offer

#: The API refuses longer ones; the schema may say more.
MAX_DESCRIPTION_CHARS = 1_024
GOES_ON = " [It goes on in the description of its arguments.]"
OUTCOME_TOOL = "final_result"
ABOUT_OUTCOME = "End the work with its outcome. Call this last, alone and once."


def name_tools(offers: Iterable[Offer]) -> Mapping[str, ShownTool]:
    """Give every tool a name that the API accepts."""
    return {_name(offer.tool): show_tool(offer) for offer in offers}


def _name(tool: Tool) -> str:
    """Names of connections have no underscore; so this is no name of our own tools."""
    return shown_name(tool.name, prefix="" if tool.server == OWN_SERVER else f"{tool.server}__")


def parameters_for(
    shown: Mapping[str, ShownTool], schema: Mapping[str, Any] | None
) -> ModelRequestParameters:
    """Define the tools of a request, and the outcome tool where there is a schema."""
    return ModelRequestParameters(
        function_tools=[_define(name, tool) for name, tool in shown.items()],
        output_tools=[] if schema is None else [_outcome_tool(schema)],
        output_mode="text" if schema is None else "tool",
        # Not every server can force a call, and some models think aloud first.
        allow_text_output=True,
        instruction_parts=[InstructionPart(content=SYSTEM_PROMPT)],
    )


def _define(name: str, tool: ShownTool) -> ToolDefinition:
    text, schema = tool.offer.description, dict(tool.parameters)
    if len(text) > MAX_DESCRIPTION_CHARS:
        schema["description"] = text
        text = text[: MAX_DESCRIPTION_CHARS - len(GOES_ON)] + GOES_ON
    return ToolDefinition(name=name, parameters_json_schema=schema, description=text)


def _outcome_tool(schema: Mapping[str, Any]) -> ToolDefinition:
    return ToolDefinition(
        name=OUTCOME_TOOL,
        parameters_json_schema=dict(schema),
        description=ABOUT_OUTCOME,
        kind="output",
    )


@dataclass(frozen=True, slots=True)
class ParsedCall:
    part: ToolCallPart
    #: None: the model did not write a JSON object.
    arguments: Mapping[str, Any] | None
    #: The arguments as the model wrote them.
    written: str


def read_calls(response: ModelResponse) -> tuple[ModelResponse, list[ParsedCall]]:
    """Read the calls of a message; return it repaired, so that it can be sent back.

    Some servers give two calls the same id, and some fail on arguments that are not JSON, even
    those of their own model.
    """
    parts, calls = list[ModelResponsePart](), list[ParsedCall]()
    used = set[str]()
    for part in response.parts:
        if not isinstance(part, ToolCallPart):
            parts.append(part)
            continue
        call = _read_call(part, number=len(calls), used=used)
        used.add(call.part.tool_call_id)
        parts.append(call.part)
        calls.append(call)
    return replace(response, parts=parts), calls


def _read_call(part: ToolCallPart, *, number: int, used: set[str]) -> ParsedCall:
    written = part.args if isinstance(part.args, str) else json.dumps(part.args or {})
    arguments = parse_object(written or "{}")
    call_id = part.tool_call_id
    repaired = replace(
        part,
        args="{}" if arguments is None else written or "{}",
        tool_call_id=f"{call_id}-{number}" if call_id in used else call_id,
    )
    return ParsedCall(repaired, arguments, written)


def parse_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
