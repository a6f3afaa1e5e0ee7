"""What a model is offered besides messages: who it is, tools, and a tool to end with.

The outcome is a tool like the others. A format for the whole answer would be kept from its first
word on by the servers of local models, so that no tool could be called any more.
"""

from collections.abc import Mapping
from typing import Any

from pydantic_ai.messages import InstructionPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from backburner.engine.persona import SYSTEM_PROMPT
from backburner.ports import Offer

OUTCOME_TOOL = "final_result"
ABOUT_OUTCOME = "End the work with its outcome. Call this last, alone and once."


def parameters_for(
    offers: Mapping[str, Offer], schema: Mapping[str, Any] | None
) -> ModelRequestParameters:
    tools = [
        ToolDefinition(
            name=name,
            parameters_json_schema={"properties": {}, **offer.parameters},
            description=offer.description,
        )
        for name, offer in offers.items()
    ]
    return ModelRequestParameters(
        function_tools=tools,
        output_tools=[] if schema is None else [_outcome(schema)],
        output_mode="text" if schema is None else "tool",
        # Not every server can force a call, and some models think aloud first.
        allow_text_output=True,
        instruction_parts=[InstructionPart(content=SYSTEM_PROMPT)],
    )


def _outcome(schema: Mapping[str, Any]) -> ToolDefinition:
    return ToolDefinition(
        name=OUTCOME_TOOL,
        parameters_json_schema=dict(schema),
        description=ABOUT_OUTCOME,
        kind="output",
    )
