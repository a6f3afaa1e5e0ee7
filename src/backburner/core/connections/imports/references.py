"""References in the texts of a client's file: to variables, to what is typed in, and to places."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from backburner.core.errors import BadRequest

_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Variables that say where or who, and are no secrets.
PLAIN_VARIABLES = frozenset({"HOME", "LOGNAME", "USER"})
MAX_RESOLVED_CHARS = 100_000
#: Before the id of what is typed in.
INPUT = "input:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The values that references stand for."""

    #: The environment of the command line.
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: What was typed in, by id.
    inputs: Mapping[str, str] = field(default_factory=dict, repr=False)

    def resolve(self, text: str, label: str) -> str:
        """Replace the references in a text. Raises `BadRequest` if one has no value."""
        length = len(text)

        def value(match: re.Match[str]) -> str:
            nonlocal length
            found = self._value(match[1], label)
            length += len(found)
            # One long value may be referred to a thousand times.
            if length > MAX_RESOLVED_CHARS:
                raise BadRequest(f"{label} is too long with its values.")
            return found

        return _REFERENCE.sub(value, text)

    def _value(self, body: str, label: str) -> str:
        if body == "userHome":
            body = "HOME"
        if body.startswith(INPUT):
            typed = self.inputs.get(body.removeprefix(INPUT))
            if typed is None:
                raise BadRequest(f"{label} is to be typed in, and there is no terminal to ask.")
            return typed
        name, has_default, default = _name(body).partition(":-")
        if not _VARIABLE.fullmatch(name) or name in _CLIENT_PLACES:
            raise BadRequest(f"{label} refers to {_shown(name)}, which only its client knows.")
        found = self.variables.get(name)
        # As shells do: an empty variable has no value.
        if has_default:
            return found or default
        if not found:
            raise BadRequest(
                f"{label} refers to the variable {name}, which is not set.",
                hint="Set it, and import again with `backburner connections import`.",
            )
        return found


#: Known to clients only; `workspaceFolder` looks like a variable.
_CLIENT_PLACES = frozenset(
    {
        *("CLAUDE_PLUGIN_ROOT", "CLAUDE_PROJECT_DIR", "extensionInstallFolder", "pathSeparator"),
        *("workspaceFolder", "workspaceFolderBasename"),
    }
)


def resolve_plain(text: str, values: Values, label: str) -> str:
    """Replace references in a text that others can read; those to possible secrets are refused."""
    for body in _REFERENCE.findall(text):
        if body not in ("userHome", *_CLIENT_PLACES) and _name(body) not in PLAIN_VARIABLES:
            raise BadRequest(
                f"{label} has {_shown(body)} in it. Arguments of programs can be read by others on"
                " this machine.",
                hint="Give it to the program as a variable in `env`.",
            )
    return values.resolve(text, label)


def find_inputs(text: str) -> Sequence[str]:
    """Return the ids of what is to be typed in for a text."""
    bodies: list[str] = _REFERENCE.findall(text)
    return [body.removeprefix(INPUT) for body in bodies if body.startswith(INPUT)]


def find_variables(text: str) -> Sequence[str]:
    """Return the names of the variables that a text refers to."""
    bodies: list[str] = _REFERENCE.findall(text)
    names = [_name(body).partition(":-")[0] for body in bodies if not body.startswith(INPUT)]
    return [name for name in names if name not in (*PLAIN_VARIABLES, "userHome")]


def find_needed(text: str) -> Sequence[str]:
    """Return the variables of a text that it has no value for if they are not set."""
    bodies: list[str] = _REFERENCE.findall(text)
    return find_variables("".join(f"${{{body}}}" for body in bodies if ":-" not in body))


def describe_source(text: str) -> str:
    """Say where the value of a text comes from, without the value."""
    bodies: list[str] = _REFERENCE.findall(text)
    found = (
        "what you type in"
        if body.startswith(INPUT)
        else f"your variable {'HOME' if body == 'userHome' else _name(body).partition(':-')[0]}"
        for body in bodies
    )
    return " and ".join(dict.fromkeys(found)) or "the file"


def substitute(text: str, lookup: Callable[[str], str | None]) -> str:
    """Replace references that are found; others stay as they are."""
    return _REFERENCE.sub(lambda match: lookup(match[1]) or match[0], text)


def _name(body: str) -> str:
    return body.removeprefix("env:")


def _shown(body: str) -> str:
    return f"${{{body[:60]}}}"
