"""Comparison of the tools that a server lists with those that we know.

Agents get a tool with the definition that its owner has accepted, and no other. The first list
after a connection was added is accepted as a whole.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from backburner.core.connections.connection import (
    ConnectionTool,
    Ticks,
    ToolDefinition,
    ToolNature,
    definition_digest,
)
from backburner.core.connections.naming import MAX_TOOL_NAME_CHARS, check_tool_name
from backburner.core.errors import BadRequest, Conflict, NotFound
from backburner.core.validation import check_json, check_text, json_size

#: Of one connection.
MAX_TOOLS = 500
MAX_LISTING_BYTES = 1_000_000
#: Of all connections of a user: each of their runs reads them, and in memory they are ten times
#: as large.
MAX_USER_LISTING_BYTES = 5_000_000
#: Of one tool.
MAX_DESCRIPTION_CHARS = 20_000
MAX_SCHEMA_BYTES = 100_000

Natures = Callable[[str], ToolNature]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The tools of a connection after a server has listed them."""

    #: Tools that are new, or differ from what we knew of them.
    changed: tuple[ConnectionTool, ...] = ()
    #: The names of tools that are gone and that no owner had accepted.
    forgotten: tuple[str, ...] = ()
    #: Withheld tools that the owner was not told about.
    unreported: tuple[ConnectionTool, ...] = ()

    @property
    def is_unchanged(self) -> bool:
        return not (self.changed or self.forgotten)


@dataclass(frozen=True, slots=True)
class Usable:
    """The tools of a list that can be kept, and why others were left out, by their names."""

    tools: Sequence[ToolDefinition]
    left_out: Mapping[str, str] = field(default_factory=dict)


def select_usable(listed: Iterable[ToolDefinition], *, of_others: int = 0) -> Usable:
    """Leave out tools that are too large, cannot be stored, or have the name of another one.

    The other connections of their user have tools of so many bytes already.
    """
    kept, left_out, size = dict[str, ToolDefinition](), dict[str, str](), 0
    for tool in listed:
        shown = tool.name[:MAX_TOOL_NAME_CHARS]
        try:
            _check_definition(tool)
        except BadRequest as error:
            left_out[shown] = error.message
            continue
        size += json_size([tool.name, tool.description, dict(tool.parameters)])
        if tool.name in kept:
            left_out[shown] = "The server lists two tools of this name."
        elif len(kept) == MAX_TOOLS:
            left_out[shown] = f"A connection may have {MAX_TOOLS} tools."
        elif size > MAX_LISTING_BYTES:
            left_out[shown] = f"The tools of a connection may have {MAX_LISTING_BYTES:,} bytes."
        elif of_others + size > MAX_USER_LISTING_BYTES:
            left_out[shown] = (
                f"The tools of all your connections may have {MAX_USER_LISTING_BYTES:,} bytes."
                " Remove a connection first."
            )
        else:
            kept[tool.name] = tool
    return Usable(tuple(kept.values()), left_out)


def compare(
    known: Iterable[ConnectionTool],
    listed: Iterable[ToolDefinition],
    *,
    natures: Natures,
    is_first: bool,
) -> Listing:
    """Compare the tools that a server lists with those that we know."""
    before = {tool.name: tool for tool in known}
    now = {
        definition.name: _update(before.get(definition.name), definition, natures, accept=is_first)
        for definition in listed
    }
    missing = [tool for name, tool in before.items() if name not in now]
    gone = [replace(tool, gone=True) for tool in missing if tool.accepted]
    return Listing(
        changed=tuple(tool for tool in (*now.values(), *gone) if tool != before.get(tool.name)),
        forgotten=tuple(tool.name for tool in missing if not tool.accepted),
        unreported=tuple(
            tool for tool in now.values() if tool.is_withheld and tool.reported != tool.digest
        ),
    )


def mark_reported(listing: Listing) -> tuple[ConnectionTool, ...]:
    """Return the changed tools, with those that their owner is told about marked."""
    told = {tool.name: replace(tool, reported=tool.digest) for tool in listing.unreported}
    others = (tool for tool in listing.changed if tool.name not in told)
    return (*others, *told.values())


def accept(tools: Iterable[ConnectionTool], seen: Mapping[str, str]) -> tuple[ConnectionTool, ...]:
    """Accept the definitions of tools that their owner has seen, by name and digest.

    What the owner had ticked was said of another definition, and ends.
    """
    known = {tool.name: tool for tool in tools}
    accepted = []
    for name, digest in seen.items():
        tool = known.get(name)
        if tool is None or tool.gone:
            raise NotFound(f"There is no tool {name[:80]!r}.", hint="Look at the tools again.")
        if tool.digest != digest:
            raise Conflict(
                f"{name!r} has changed since it was shown.", hint="Look at the tools again."
            )
        if not tool.is_accepted:
            accepted.append(
                replace(
                    tool,
                    accepted=tool.digest,
                    accepted_definition=tool.definition,
                    reported=tool.digest,
                    ticks=_without_yes(tool.ticks),
                )
            )
    return tuple(accepted)


def describe_withheld(name: str, unreported: Sequence[ConnectionTool]) -> str:
    """Tell the owner of withheld tools; not their names, which the server has chosen."""
    changed = sum(1 for tool in unreported if tool.accepted)
    new = len(unreported) - changed
    parts = [f"{_count(changed)} changed"] if changed else []
    parts += [f"{_count(new)} {'is' if new == 1 else 'are'} new"] if new else []
    return (
        f"Connection {name}: {' and '.join(parts)}. Agents cannot use what you have not accepted."
        f" To see the difference and accept it: `backburner connections accept {name}`."
    )


def _count(tools: int) -> str:
    return "1 tool" if tools == 1 else f"{tools} tools"


def _update(
    before: ConnectionTool | None, definition: ToolDefinition, natures: Natures, *, accept: bool
) -> ConnectionTool:
    digest, nature = definition_digest(definition), natures(definition.name)
    if before is None:
        tool = ConnectionTool(definition=definition, digest=digest, nature=nature)
    else:
        tool = replace(before, definition=definition, digest=digest, nature=nature, gone=False)
    if not accept:
        return tool
    return replace(tool, accepted=digest, accepted_definition=definition)


def _without_yes(ticks: Ticks) -> Ticks:
    """Keep what the owner has ruled out."""
    return Ticks(
        read_only=None if ticks.read_only else ticks.read_only,
        repeatable=None if ticks.repeatable else ticks.repeatable,
        off=ticks.off,
    )


def _check_definition(tool: ToolDefinition) -> None:
    check_tool_name(tool.name)
    check_text("The description", tool.description, limit=MAX_DESCRIPTION_CHARS)
    check_json("The schema", dict(tool.parameters), limit=MAX_SCHEMA_BYTES)
