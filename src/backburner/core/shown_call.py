"""How a tool call is shown to the user who is to approve it: nothing of it is hidden unsaid."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never

from backburner.core.commands import NETWORK_ARGUMENT, Join, LineStep, Redirection
from backburner.core.signed_in import show_line
from backburner.core.tool_policy import GrantMatch, ToolCall, show_tool
from backburner.core.validation import canonical_json, escape_hidden

#: Of one call; a longer one is shown by its beginning and its end.
MAX_CALL_CHARS = 3_000
_END_CHARS = 1_000
_DESCRIPTORS = {"": "its output", "1": "its output (`1`)", "2": "its errors (`2`)"}
STEPS = "Step by step:"
UNREADABLE_LINE = "(The line could not be split into steps. It may do more than it seems to.)"
#: Of a program that uses its sign-in: shown as they would be typed.
_LINE_ARGUMENTS = frozenset({"program", "arguments"})


def show_call(call: ToolCall) -> str:
    """Show a command as it would be typed, and any other call by its arguments."""
    if call.tool.grant_match is GrantMatch.PROGRAM:
        return _show_program(call)
    arguments = dict(call.arguments)
    command = arguments.pop("command", None)
    if call.tool.grant_match is not GrantMatch.COMMAND or not isinstance(command, str):
        # Of a tool of others it matters whose it is.
        tool = call.tool
        name = show_tool(tool.server, tool.name) if tool.connection else tool.name
        return f"{name} {excerpt(escape_hidden(canonical_json(dict(call.arguments))))}"
    # Indented, so that no line of it can be taken for one of ours.
    lines = excerpt(escape_hidden(command)).replace("\n", "\n    ")
    network = " with network" if arguments.get(NETWORK_ARGUMENT) is True else ""
    if network:
        del arguments[NETWORK_ARGUMENT]
    more = f" {_show_rest(arguments)}" if arguments else ""
    why = f"\n({call.tool.cage_missing})" if call.tool.cage_missing else ""
    return f"{call.tool.name}{network}{more}:\n    {lines}{_show_steps(command, call.steps)}{why}"


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


def _show_steps(line: str, steps: Sequence[LineStep] | None) -> str:
    if steps is None or _is_told_by_line(line, steps):
        return ""
    if not steps:
        return f"\n{UNREADABLE_LINE}"
    shown = "".join(f"\n    {text}" for text in describe_steps(steps))
    return f"\n{STEPS}{excerpt(shown)}"


def _is_told_by_line(line: str, steps: Sequence[LineStep]) -> bool:
    """Return whether a line has one step, which is described in the words of the line."""
    words = " ".join(line.split())
    return [*describe_steps(steps)] == [f"1. Run `{words}`."]


def describe_steps(steps: Sequence[LineStep]) -> Iterator[str]:
    """Describe each step of a line, with all of its text between backquotes.

    No step has a backquote itself, so that nothing of it can be taken for words of ours.
    """
    for number, step in enumerate(steps, start=1):
        doing = "; ".join([_describe_program(step), *map(_describe_redirection, step.redirections)])
        text = f"{_describe_join(step.join, before=number - 1)}{doing}"
        yield f"{number}. {text[0].upper()}{text[1:]}."


def _describe_join(join: Join, *, before: int) -> str:
    match join:
        case Join.START:
            return ""
        case Join.THEN:
            return "then "
        case Join.IF_SUCCEEDED:
            return "if the last step that ran succeeded: "
        case Join.IF_FAILED:
            return "if the last step that ran failed: "
        case Join.PIPE:
            return f"with the output of step {before} as its input: "
        case Join.PIPE_WITH_ERRORS:
            return f"with the output and the errors of step {before} as its input: "
        case _:
            assert_never(join)


def _describe_program(step: LineStep) -> str:
    if not step.words:
        return f"set {_quote(step.assignments)}"
    during = f"with {_quote(step.assignments)} set, " if step.assignments else ""
    match step.words:
        case ("cd", folder) if not folder.startswith("-"):
            return f"{during}go to the folder with {_quote(['cd', folder])}"
        case ("export", *_):
            return f"{during}set for all programs after it: {_quote(step.words)}"
        case _:
            return f"{during}run {_quote(step.words)}"


def _describe_redirection(redirection: Redirection) -> str:
    target, operator = _quote([redirection.target]), redirection.operator
    named = _DESCRIPTORS.get(redirection.descriptor, f"descriptor {_quote(redirection.descriptor)}")
    match operator:
        case "<":
            given = f" as {named}" if redirection.descriptor else ""
            return f"read the file {target}{given}"
        case ">&":
            return f"send {named} to where descriptor {target} goes"
        case ">>":
            return f"append {named} to the file {target}"
        case "&>":
            return f"write its output and its errors to the file {target}"
        case "&>>":
            return f"append its output and its errors to the file {target}"
        case _:
            return f"write {named} to the file {target}"


def _quote(words: Sequence[str]) -> str:
    return f"`{' '.join(words)}`"
