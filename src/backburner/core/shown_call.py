"""How a tool call is shown to the user who is to approve it: nothing of it is hidden unsaid."""

from collections.abc import Mapping
from typing import Any

from backburner.core.commands import NETWORK_ARGUMENT
from backburner.core.signed_in import show_line
from backburner.core.tool_policy import GrantMatch, ToolCall
from backburner.core.validation import canonical_json, escape_hidden

#: Of one call; a longer one is shown by its beginning and its end.
MAX_CALL_CHARS = 3_000
_END_CHARS = 1_000
#: Of a program that uses its sign-in: shown as they would be typed.
_LINE_ARGUMENTS = frozenset({"program", "arguments"})


def show_call(call: ToolCall) -> str:
    """Show a command as it would be typed, and any other call by its arguments."""
    if call.tool.grant_match is GrantMatch.PROGRAM:
        return _show_program(call)
    arguments = dict(call.arguments)
    command = arguments.pop("command", None)
    if call.tool.grant_match is not GrantMatch.COMMAND or not isinstance(command, str):
        return f"{call.tool.name} {excerpt(escape_hidden(canonical_json(dict(call.arguments))))}"
    # Indented, so that no line of it can be taken for one of ours.
    lines = excerpt(escape_hidden(command)).replace("\n", "\n    ")
    network = " with network" if arguments.get(NETWORK_ARGUMENT) is True else ""
    if network:
        del arguments[NETWORK_ARGUMENT]
    more = f" {_show_rest(arguments)}" if arguments else ""
    why = f"\n({call.tool.cage_missing})" if call.tool.cage_missing else ""
    return f"{call.tool.name}{network}{more}:\n    {lines}{why}"


def _show_program(call: ToolCall) -> str:
    rest = {name: call.arguments[name] for name in call.arguments if name not in _LINE_ARGUMENTS}
    lines = excerpt(escape_hidden(show_line(call.arguments))).replace("\n", "\n    ")
    more = f" {_show_rest(rest)}" if rest else ""
    return f"{call.tool.name}{more}:\n    {lines}"


def excerpt(text: str) -> str:
    """Shorten a long text to its beginning and its end, and say how much is hidden."""
    hidden = len(text) - MAX_CALL_CHARS
    if hidden <= 0:
        return text
    begin = text[: MAX_CALL_CHARS - _END_CHARS]
    return f"{begin}\n[{hidden:,} characters are hidden here]\n{text[-_END_CHARS:]}"


def _show_rest(arguments: Mapping[str, Any]) -> str:
    return excerpt(escape_hidden(canonical_json(dict(arguments))))
