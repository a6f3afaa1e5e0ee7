"""Reads the YAML that programs write into their own settings: mappings, lists and one-line texts.

Everything else is refused. Each scalar is a text, and nothing is guessed from it.
"""

import json
import re
from typing import Any

#: With `- ` before it, the first key of a mapping in a list.
_ITEM = re.compile(r"-(?: +(?=\S)|$)")
_KEY = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s"'#&*!|>%@`{}\[\],?-][^#]*?)\s*:(?: +|$)"""
)
#: Plain texts do not begin with these.
_SIGNS = frozenset("&*!|>%@`{}[],?\"'")
_EMPTY: dict[str, Any] = {"{}": {}, "[]": [], "": None, "null": None, "~": None}
_MAX_DEPTH = 20


def read_yaml(text: str) -> Any:
    """Return mappings, lists, texts and None. Raises `ValueError` for anything else."""
    if text.lstrip().startswith("{"):
        return json.loads(text)
    lines = [_Line.of(line) for line in text.splitlines()]
    reader = _Reader([line for line in lines if line is not None])
    value = reader.read(0, 0) if reader.lines else None
    if reader.lines:
        raise ValueError("A line has an unexpected indent.")
    return value


class _Line:
    def __init__(self, indent: int, text: str) -> None:
        self.indent = indent
        self.text = text

    @classmethod
    def of(cls, line: str) -> "_Line | None":
        text = line.strip(" ")
        if not text or text.startswith("#") or text == "---":
            return None
        if "\t" in line:
            raise ValueError("A line has a tab.")
        return cls(len(line) - len(line.lstrip(" ")), text)


class _Reader:
    def __init__(self, lines: list[_Line]) -> None:
        self.lines = lines

    def read(self, indent: int, depth: int) -> Any:
        """Read the value that begins with the next line, which is indented at least so far."""
        if depth > _MAX_DEPTH:
            raise ValueError("It is nested too deeply.")
        if not self.lines or self.lines[0].indent < indent:
            return None
        first = self.lines[0]
        read = self._list if _ITEM.match(first.text) else self._mapping
        return read(first.indent, depth)

    def _list(self, indent: int, depth: int) -> list[Any]:
        found = []
        while self.lines and self.lines[0].indent == indent:
            mark = _ITEM.match(self.lines[0].text)
            if mark is None:
                break
            line = self.lines.pop(0)
            rest = line.text[mark.end() :]
            if rest and (_KEY.match(rest) or _ITEM.match(rest)):
                self.lines.insert(0, _Line(indent + mark.end(), rest))
                found.append(self.read(indent + 1, depth + 1))
            elif rest:
                found.append(_scalar(rest))
            else:
                found.append(self.read(indent + 1, depth + 1))
        return found

    def _mapping(self, indent: int, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self.lines and self.lines[0].indent == indent:
            key = _KEY.match(self.lines[0].text)
            if key is None:
                break
            rest = self.lines.pop(0).text[key.end() :]
            name = str(_scalar(key[1]))
            if name in found:
                raise ValueError("A key is there twice.")
            found[name] = self._value(rest, indent, depth)
        if not found:
            raise ValueError("A line is neither a key nor an item.")
        return found

    def _value(self, rest: str, indent: int, depth: int) -> Any:
        if rest and not rest.startswith("#"):
            return _scalar(rest)
        # Items of a list may stand as far left as its key.
        is_list = bool(self.lines) and _ITEM.match(self.lines[0].text) is not None
        return self.read(indent if is_list else indent + 1, depth + 1)


def _scalar(text: str) -> Any:
    if text.startswith('"'):
        value, end = json.JSONDecoder().raw_decode(text)
        rest = text[end:]
    elif quoted := re.match(r"'((?:[^']|'')*)'", text):
        value, rest = quoted[1].replace("''", "'"), text[quoted.end() :]
    else:
        plain, sign, comment = text.partition(" #")
        value, rest = plain.strip(), sign + comment
        if value in _EMPTY:
            value = _EMPTY[value]
        elif value[0] in _SIGNS or ": " in value or value.endswith(":"):
            raise ValueError("A value is no plain text on one line.")
    if rest.strip() and not rest.lstrip().startswith("#"):
        raise ValueError("Something follows a quoted text.")
    return value
