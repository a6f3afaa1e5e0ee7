"""Agents in the settings, and their validation."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator

from backburner.core.work.agents import BUILT_IN, Agent
from backburner.settings.values import Takes

MAX_INSTRUCTIONS_CHARS = 8_000
_KEYS = ("instructions", "tools", "profile")


def read_agents(tables: object) -> dict[str, Agent]:
    """Validate all agents, and add the built-in ones that they do not replace."""
    if not isinstance(tables, Mapping):
        raise ValueError  # noqa: TRY004 (only this becomes a line about the setting)
    agents = {str(name): _read_agent(str(name), table) for name, table in tables.items()}
    return {**BUILT_IN, **agents}


def _read_agent(name: str, table: object) -> Agent:
    if isinstance(table, Agent):
        return table
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,39}", name):
        raise ValueError(f"{name[:40]!r} is not a name such as reviewer")
    if not isinstance(table, Mapping):
        raise ValueError(f'{name} is not a table such as {{instructions = "..."}}')  # noqa: TRY004
    for key in table:
        if key not in _KEYS:
            raise ValueError(f"{name} has {str(key)[:40]!r}; the keys are {', '.join(_KEYS)}")
    profile = table.get("profile")
    if profile is not None and (not isinstance(profile, str) or not profile.strip()):
        raise ValueError(f"{name} has a profile that is not a name")
    return Agent(
        name=name,
        instructions=_read_instructions(name, table),
        tools=_read_tools(name, table.get("tools")),
        profile=profile,
    )


def _read_instructions(name: str, table: Mapping[str, Any]) -> str:
    text = table.get("instructions", "")
    if not isinstance(text, str) or len(text) > MAX_INSTRUCTIONS_CHARS:
        raise ValueError(
            f"{name} has instructions that are not text of at most"
            f" {MAX_INSTRUCTIONS_CHARS} characters"
        )
    return text.strip()


def _read_tools(name: str, tools: object) -> tuple[str, ...] | None:
    if tools is None:
        return None
    names = tools if isinstance(tools, list | tuple) else [None]
    if not all(
        isinstance(tool, str) and re.fullmatch(r"[\w.-]+(/[\w.-]+)?", tool) for tool in names
    ):
        raise ValueError(f"{name} has tools that are not a list of names such as read_file")
    return tuple(dict.fromkeys(names))


Agents = Annotated[
    dict[str, Agent],
    BeforeValidator(read_agents),
    Takes("a table of agents: instructions, tools, profile"),
]
