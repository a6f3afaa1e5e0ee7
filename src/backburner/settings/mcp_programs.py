"""Programs as MCP servers in the settings, and their validation."""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import BeforeValidator

from backburner.core.connections.program import StdioProgram
from backburner.settings.values import Takes

_KEYS = ("command", "environment", "network", "readable", "writable")
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASS|AUTH|CREDENTIAL", re.IGNORECASE)


def read_programs(tables: object) -> dict[str, StdioProgram]:
    if not isinstance(tables, Mapping):
        raise ValueError  # noqa: TRY004 (only this becomes a line about the setting)
    return {str(name): _read_program(str(name), table) for name, table in tables.items()}


def secret_values(program: StdioProgram) -> Iterator[str]:
    """Yield the values of variables that are secret by their names."""
    return (value for name, value in program.environment.items() if _SECRET_NAME.search(name))


def _read_program(name: str, table: object) -> StdioProgram:
    if isinstance(table, StdioProgram):
        return table
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,39}", name):
        raise ValueError(f"{name[:40]!r} is not a name such as git-server")
    if not isinstance(table, Mapping):
        raise ValueError(f'{name} is not a table such as {{command = ["..."]}}')  # noqa: TRY004
    for key in table:
        if key not in _KEYS:
            raise ValueError(f"{name} has {str(key)[:40]!r}; the keys are {', '.join(_KEYS)}")
    network = table.get("network", False)
    if not isinstance(network, bool):
        raise ValueError(f"{name} has a network that is not true or false")  # noqa: TRY004
    return StdioProgram(
        command=_read_command(name, table.get("command")),
        environment=_read_environment(name, table.get("environment", {})),
        network=network,
        readable=_read_folders(name, "readable", table.get("readable", [])),
        writable=_read_folders(name, "writable", table.get("writable", [])),
    )


def _read_command(name: str, command: object) -> tuple[str, ...]:
    words = _texts(command)
    if not words or not words[0]:
        raise ValueError(f'{name} needs a command, a list such as ["/usr/bin/server", "--stdio"]')
    return words


def _read_environment(name: str, variables: object) -> dict[str, str]:
    """Read variables; errors quote no value, because it may be secret."""
    if not isinstance(variables, Mapping):
        raise ValueError(f"{name} has an environment that is not a table")  # noqa: TRY004
    for variable, value in variables.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", str(variable)):
            raise ValueError(f"{name} has {str(variable)[:40]!r}, which is not a variable name")
        if not isinstance(value, str) or "\0" in value:
            raise ValueError(f"{name} has a {variable} that is not text")
    return dict(variables)


def _read_folders(name: str, key: str, folders: object) -> tuple[str, ...]:
    paths = _texts(folders)
    if paths is None or not all(PurePosixPath(path).is_absolute() for path in paths):
        raise ValueError(f"{name} has {key} that is not a list of absolute paths")
    return paths


def _texts(value: Any) -> tuple[str, ...] | None:
    """Return a list of texts; None: it is none."""
    if not isinstance(value, list | tuple):
        return None
    is_text = all(isinstance(each, str) and "\0" not in each for each in value)
    return tuple(value) if is_text else None


McpPrograms = Annotated[
    dict[str, StdioProgram],
    BeforeValidator(read_programs),
    Takes("a table of programs: command, environment, network, readable, writable"),
]
