"""Defines a tool from a function and a model of its arguments.

The docstring of the function and the descriptions of the arguments are what the agent reads.
"""

import hashlib
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Annotated, Any, TypedDict, TypeVar, Unpack

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
)

from backburner.core.commands import Cage
from backburner.core.errors import BackburnerError
from backburner.core.tool_policy import OWN_SERVER, GrantMatch, Tool
from backburner.core.validation import canonical_json
from backburner.core.work.timeouts import parse_timeout
from backburner.ports import Offer, ToolResult


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _read_timeout(value: object) -> object:
    """Read a timeout; what is wrong with it becomes part of the errors of the arguments."""
    try:
        if isinstance(value, str):
            return parse_timeout(value) if value.strip() else None
        return value  # noqa: TRY300 (None, or a number of seconds)
    except BackburnerError as error:
        raise ValueError(str(error)) from None


#: How long a run may take, as agents write it; empty: the default.
Timeout = Annotated[
    timedelta | None,
    BeforeValidator(_read_timeout),
    WithJsonSchema({"type": "string"}),
    Field(description="How long a run may take: `20m`, `3h`; at most `24h`."),
]


#: The same for all tools that hand out work.
CONNECTIONS = "Connections of this conversation that it may use, by name."


class Policy(TypedDict, total=False):
    """The fields of a `Tool` that say when a call needs approval."""

    free: bool
    grant_match: GrantMatch
    guards_files: bool
    cage: Cage | None
    cage_missing: str
    belongs_to: str


ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)


def define_tool(
    name: str,
    model: type[ArgumentsT],
    run: Callable[[ArgumentsT], Awaitable[str | ToolResult]],
    *,
    read_only: bool = False,
    outside: bool = False,
    waits: bool = False,
    preview: Callable[[Mapping[str, Any]], Awaitable[str]] | None = None,
    **policy: Unpack[Policy],
) -> Offer:
    """Define a built-in tool. The agent gets the message of a `BackburnerError` that it raises.

    `policy` has the remaining fields of its `Tool`.
    """
    description, tool = _describe(name, run.__doc__ or "", model, **policy)

    async def checked(arguments: Mapping[str, Any]) -> ToolResult:
        try:
            result = await run(model.model_validate(dict(arguments)))
            return result if isinstance(result, ToolResult) else ToolResult(result)
        except ValidationError as error:
            return ToolResult(f"{name} was not called. {_describe_errors(error)}", failed=True)
        except BackburnerError as error:
            return ToolResult(str(error), failed=True)

    return Offer(
        tool=tool,
        description=description,
        parameters=_parameters(model),
        read_only=read_only,
        run=checked,
        outside=outside,
        waits=waits,
        preview=preview,
    )


def describe_for_clients(offers: Iterable[Offer], texts: Mapping[str, str]) -> Sequence[Offer]:
    """Replace descriptions by those for clients outside: they are not part of a conversation."""
    return [
        replace(offer, description=texts.get(offer.tool.name, offer.description))
        for offer in offers
    ]


# Cached: tools are defined for every run and request, and a schema alone takes a millisecond.
@cache
def _describe(
    name: str, doc: str, model: type[Arguments], **policy: Unpack[Policy]
) -> tuple[str, Tool]:
    """Return the description of a tool, and the tool with a digest of all that agents read."""
    description = " ".join(inspect.cleandoc(doc).split())
    definition = canonical_json({"description": description, "parameters": _parameters(model)})
    digest = hashlib.sha256(definition.encode()).hexdigest()
    return description, Tool(server=OWN_SERVER, name=name, definition=digest, **policy)


@cache
def _parameters(model: type[Arguments]) -> Mapping[str, Any]:
    schema = model.model_json_schema()
    # Titles only repeat the names.
    for part in (schema, *schema.get("properties", {}).values()):
        part.pop("title", None)
    schema.pop("description", None)
    return schema


def _describe_errors(error: ValidationError) -> str:
    return " ".join(
        f"{'.'.join(str(part) for part in detail['loc']) or 'The arguments'}: {detail['msg']}."
        for detail in error.errors(include_url=False, include_input=False)
    )
