"""Tools of a connection: three choices for each, and what is new or has changed.

Their names, descriptions and arguments are the words of a server: they are shown as text, with
what cannot be seen made visible.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from backburner.core.connections.connection import ConnectionTool, ToolDefinition
from backburner.core.validation import escape_hidden
from backburner.web.off_loop import check_off_loop
from backburner.web.rendering import load_words
from backburner.web.views.connect.line_diff import DiffLine, compare_lines
from backburner.web.views.exact_text import ExactText, show_exact

MAX_LINE = 300
#: With more, each difference is loaded when it is asked for.
MAX_OPEN_CHANGES, MAX_OPEN_CHARS = 10, 50_000
#: With more tools, there is a field to find one.
FILTER_FROM = 13
#: What is sent for each choice.
CHOICES: Mapping[str, Mapping[str, bool]] = {
    "reads": {"read_only": True, "off": False},
    "ask": {"read_only": False, "off": False},
    "off": {"off": True},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionToolRow:
    #: Of its element; nothing in it is of the server.
    key: str
    name: str
    line: str
    chosen: str
    #: Who says so, and what follows from it.
    notes: Sequence[str]
    #: The catalogue knows it, and its owner has said something else.
    can_forget: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolChange:
    key: str
    name: str
    digest: str
    is_new: bool
    line: str
    #: None: loaded when it is asked for.
    difference: Sequence[DiffLine] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDetails:
    key: str
    name: str
    is_repeatable: bool
    description: ExactText
    arguments: ExactText
    says_read_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionToolList:
    usual: Sequence[ConnectionToolRow]
    changes: Sequence[ToolChange]
    gone: Sequence[str]
    total: int

    @property
    def has_filter(self) -> bool:
        return len(self.usual) >= FILTER_FROM

    @property
    def all_seen(self) -> Mapping[str, str]:
        """The request that accepts all changes at once, if all of them are shown."""
        if len(self.changes) < 2 or any(one.difference is None for one in self.changes):
            return {}
        return {one.name: one.digest for one in self.changes}


def show_tools(tools: Sequence[ConnectionTool]) -> ConnectionToolList:
    withheld = [tool for tool in tools if tool.is_withheld]
    is_open = len(withheld) <= MAX_OPEN_CHANGES and sum(map(_measure, withheld)) <= MAX_OPEN_CHARS
    return ConnectionToolList(
        usual=[_show_tool(tool) for tool in tools if not tool.gone and not tool.is_withheld],
        changes=[show_change(tool, is_open=is_open) for tool in withheld],
        gone=[tool.name for tool in tools if tool.gone],
        total=sum(not tool.gone for tool in tools),
    )


def show_change(tool: ConnectionTool, *, is_open: bool) -> ToolChange:
    return ToolChange(
        key=make_key(tool.name),
        name=tool.name,
        digest=tool.digest,
        is_new=not tool.accepted,
        line=_first_line(tool.definition.description),
        difference=list(compare(tool)) if is_open else None,
    )


def show_details(tool: ConnectionTool) -> ToolDetails:
    words = load_words().connections.tools
    definition = tool.definition
    return ToolDetails(
        key=make_key(tool.name),
        name=tool.name,
        is_repeatable=tool.repeatable,
        description=show_exact(definition.description or words.no_description),
        arguments=show_exact(_write_arguments(definition)),
        says_read_only=definition.says_read_only,
    )


def compare(tool: ConnectionTool) -> Iterator[DiffLine]:
    """Compare a definition with the accepted one; all of it is shown."""
    check_off_loop()
    yield from compare_lines(_write(tool.accepted_definition), _write(tool.definition))


def make_key(name: str) -> str:
    return sha256(name.encode()).hexdigest()[:16]


def find_by_key(tools: Sequence[ConnectionTool], key: str) -> ConnectionTool | None:
    return next((tool for tool in tools if make_key(tool.name) == key), None)


def _show_tool(tool: ConnectionTool) -> ConnectionToolRow:
    words, ticks = load_words().connections.tools, tool.ticks
    notes = list[str]()
    if not ticks.off and tool.nature.read_only and ticks.read_only is None:
        notes.append(words.catalogue)
    if ticks.off or ticks.read_only is not None:
        notes.append(words.own)
    if not ticks.off and ticks.repeatable and not tool.read_only:
        notes.append(words.repeats)
    if not ticks.off and tool.read_only and tool.discloses:
        notes.append(words.discloses)
    return ConnectionToolRow(
        key=make_key(tool.name),
        name=tool.name,
        line=_first_line(tool.definition.description),
        chosen="off" if ticks.off else "reads" if tool.read_only else "ask",
        notes=notes,
        can_forget=not ticks.off and tool.nature.read_only and ticks.read_only is False,
    )


def _first_line(description: str) -> str:
    text = escape_hidden(" ".join(description.split()))
    return text if len(text) <= MAX_LINE else f"{text[:MAX_LINE]}…"


def _measure(tool: ConnectionTool) -> int:
    """Count the characters of what a difference shows."""
    lines = [*_write(tool.accepted_definition), *_write(tool.definition)]
    return sum(map(len, lines))


def _write(definition: ToolDefinition | None) -> list[str]:
    if definition is None:
        return []
    return [*definition.description.splitlines(), *_write_arguments(definition).splitlines()]


def _write_arguments(definition: ToolDefinition) -> str:
    parameters: Mapping[str, Any] = definition.parameters
    return json.dumps(parameters, indent=2, sort_keys=True, ensure_ascii=False)
