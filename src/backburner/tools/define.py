"""How a tool is defined: what the agent reads of it, what it takes, and what is done.

The docstring of what is done is what the agent reads; a model of its arguments, with a description
for each, is what it takes.
"""

import hashlib
import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from backburner.core.errors import BackburnerError
from backburner.core.tool_policy import OWN_SERVER, GrantMatch, Tool
from backburner.core.validation import canonical_json
from backburner.ports import Offer, ToolResult


class Arguments(BaseModel):
    """What a tool takes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)


def define_tool(
    name: str,
    takes: type[ArgumentsT],
    run: Callable[[ArgumentsT], Awaitable[str | ToolResult]],
    *,
    free: bool = False,
    read_only: bool = False,
    outside: bool = False,
    grant_match: GrantMatch = GrantMatch.TOOL,
) -> Offer:
    """Define a tool of ours. An error of ours that it raises is told to the agent in its words."""
    description = " ".join((inspect.getdoc(run) or "").split())
    parameters = _parameters(takes)
    definition = canonical_json({"description": description, "parameters": parameters})
    tool = Tool(
        server=OWN_SERVER,
        name=name,
        definition=hashlib.sha256(definition.encode()).hexdigest(),
        free=free,
        grant_match=grant_match,
    )

    async def checked(arguments: Mapping[str, Any]) -> ToolResult:
        try:
            gave = await run(takes.model_validate(dict(arguments)))
            return gave if isinstance(gave, ToolResult) else ToolResult(gave)
        except ValidationError as error:
            return ToolResult(f"{name} was not called. {_complaint(error)}", failed=True)
        except BackburnerError as error:
            return ToolResult(str(error), failed=True)

    return Offer(
        tool=tool,
        description=description,
        parameters=parameters,
        read_only=read_only,
        run=checked,
        outside=outside,
    )


@cache
def _parameters(takes: type[Arguments]) -> Mapping[str, Any]:
    # Once for each: making it takes a millisecond, and tools are made for every run and request.
    schema = takes.model_json_schema()
    # They say what the fields say already.
    for part in (schema, *schema.get("properties", {}).values()):
        part.pop("title", None)
    schema.pop("description", None)
    return schema


def _complaint(error: ValidationError) -> str:
    wrong = (
        f"{'.'.join(str(part) for part in one['loc']) or 'The arguments'}: {one['msg']}."
        for one in error.errors(include_url=False, include_input=False)
    )
    return " ".join(wrong)
