"""Notes on calls that are shown above in full: what they use, and what they mean."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from backburner.core.commands import NETWORK_ARGUMENT
from backburner.core.shown_call import STEPS, excerpt
from backburner.core.tool_policy import show_tool
from backburner.core.validation import canonical_json, escape_hidden
from backburner.web.rendering import load_words
from backburner.web.views.exact_text import find_line

STEP = re.compile(r"1\. ")
_INDENT = "    "
_INDENTED_STEP = re.compile(rf"^{_INDENT}(?=\d+\. )", re.MULTILINE)


def leave_out_calls(text: str, calls: Sequence[Mapping[str, Any]]) -> str:
    """Leave out of the words of a request what repeats its calls."""
    for call in calls:
        text = _leave_out(text, call)
    if len(calls) == 1:
        text = text.removeprefix(f"{STEPS}\n")
    return _INDENTED_STEP.sub("", text).strip("\n")


def list_uses(calls: Iterable[Mapping[str, Any]]) -> Sequence[tuple[str, str]]:
    """List the sign-ins that calls use, and whether they reach the network."""
    return list(dict.fromkeys(use for call in calls for use in _uses(call)))


def leave_out_uses(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Leave out of a call what `list_uses` says of it."""
    if call.get("connection") or not find_line(call["arguments"])[1]:
        return call
    arguments = dict(call["arguments"])
    if arguments.get(NETWORK_ARGUMENT) is True:
        del arguments[NETWORK_ARGUMENT]
    return {**call, "arguments": arguments}


def describe_request(call: Mapping[str, Any]) -> str:
    """Ask for one call, which stands below, by its kind; empty: no kind that we know."""
    words = load_words().question.may
    if call.get("connection"):
        return str(words.use.format(tool=escape_hidden(show_tool(call["server"], call["tool"]))))
    return str(words[call["tool"]]) if call["tool"] in words else ""


def describe_lasting(call: Mapping[str, Any]) -> str:
    """Say what "always here" would allow, which can be more than the call, or less."""
    words, granted = load_words().question.lasting, call.get("words")
    tool = show_tool(call["server"], call["tool"]) if call.get("connection") else call["tool"]
    line, kind = find_line(call["arguments"])
    if granted is None:
        return str(words.once.format(tool=tool))
    if not granted:
        return str(words.tool.format(tool=tool))
    if not kind:
        scheme, host, *port = granted
        place = f"{scheme}://{':'.join(filter(None, (host, *port)))}"
        return str(words.host.format(tool=tool, host=escape_hidden(place)))
    shown = escape_hidden(" ".join(granted))
    return str((words.line if line in granted else words.options).format(line=shown))


def _uses(call: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    words, arguments = load_words().question, call["arguments"]
    if call.get("connection"):
        return
    if find_line(arguments)[1] == "program":
        yield "key", words.uses_sign_in.format(program=escape_hidden(arguments["program"]))
    if arguments.get(NETWORK_ARGUMENT) is True:
        yield "globe", words.uses_network


def _leave_out(text: str, call: Mapping[str, Any]) -> str:
    line, kind = find_line(call["arguments"])
    if not kind or call.get("connection"):
        name = show_tool(call["server"], call["tool"]) if call.get("connection") else call["tool"]
        shown = f"{name} {excerpt(escape_hidden(canonical_json(call['arguments'])))}"
        return f"\n{text}\n".replace(f"\n{shown}\n", "\n", 1)[1:-1]
    # Its other arguments are in the line that it begins with.
    body = f":\n{_INDENT}" + excerpt(escape_hidden(line)).replace("\n", f"\n{_INDENT}")
    at = text.find(body)
    begin = text.rfind("\n", 0, at) + 1
    if at < 0 or not text.startswith(call["tool"], begin):
        return text
    return text[:begin] + text[at + len(body) :].removeprefix("\n")
