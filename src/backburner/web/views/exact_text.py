"""Text that somebody agrees to: whole, in words that never break inside, with nothing unseen."""

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from backburner.core.signed_in import show_line
from backburner.core.validation import hidden_characters

_PARTS = re.compile(r"(\s+)")
#: Scripts whose letters look like Latin ones.
_LOOK_ALIKE_SCRIPTS = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "FULLWIDTH", "MATHEMATICAL")
#: Arguments that are the line of a command, by the first of them.
_LINES = {"command": ("command",), "program": ("program", "arguments")}


@dataclass(frozen=True, slots=True)
class ExactText:
    """A text as it is shown, and how many of its characters were made visible."""

    html: Markup
    hidden: int
    look_alike: int


def show_exact(text: str) -> ExactText:
    hidden = hidden_characters(text)
    marked = [0, 0]

    def show_character(char: str, *, is_mixed: bool) -> str:
        if char in hidden:
            marked[0] += 1
            return f'<span class="char">U+{ord(char):04X}</span>'
        if is_mixed and _is_look_alike(char):
            marked[1] += 1
            return f'{Markup.escape(char)}<span class="char">U+{ord(char):04X}</span>'
        return str(Markup.escape(char))

    def show_word(word: str) -> str:
        # A word all in one script is that language; a stranger among Latin letters is a trick.
        is_mixed = any("a" <= char.lower() <= "z" for char in word)
        if word.isascii() and word.isprintable():
            return str(Markup.escape(word))
        return "".join(show_character(char, is_mixed=is_mixed) for char in word)

    parts = [
        part if part.isspace() and not set(part) & hidden else _in_block(show_word(part))
        for part in _PARTS.split(text)
        if part
    ]
    if text.startswith("$ "):
        parts[0] = '<span class="prompt">$</span>'
    html = Markup("".join(parts))  # noqa: S704 (each part is escaped)
    return ExactText(html, *marked)


def write_call(call: Mapping[str, Any]) -> str:
    """Write a call as it would be typed, with all of its arguments."""
    arguments = dict(call["arguments"])
    line, kind = find_line(arguments)
    if kind and not call.get("connection"):
        rest = {name: value for name, value in arguments.items() if name not in _LINES[kind]}
        return f"$ {line}" + (f"\n{_to_json(rest)}" if rest else "")
    name = f"{call['server']}/{call['tool']}" if call.get("connection") else call["tool"]
    return f"{name} {_to_json(arguments)}"


def find_line(arguments: Mapping[str, Any]) -> tuple[str, str]:
    """Find the line that a call of our own types, and the argument that begins it."""
    if isinstance(command := arguments.get("command"), str):
        return command, "command"
    if isinstance(arguments.get("program"), str) and isinstance(arguments.get("arguments"), list):
        return show_line(arguments), "program"
    return "", ""


def _in_block(html: str) -> str:
    return f'<span class="word">{html}</span>'


def _is_look_alike(char: str) -> bool:
    return char > "\x7f" and unicodedata.name(char, "").startswith(_LOOK_ALIKE_SCRIPTS)


def _to_json(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, ensure_ascii=False, indent=2)
