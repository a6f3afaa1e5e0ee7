"""Checks for the libraries of the engines, without importing them."""

from importlib.util import find_spec
from pathlib import Path

from backburner.core.errors import EngineFailed

#: The library of each engine; its extra has the name of the engine.
LIBRARIES = {"claude": "claude_agent_sdk", "openai": "pydantic_ai"}


def need_library(engine: str) -> None:
    """Refuse an engine whose library is not installed."""
    library = LIBRARIES.get(engine)
    if library and find_spec(library) is None:
        raise EngineFailed(
            f"The library of the engine {engine} is not installed.",
            hint=f"Install it: pip install 'backburner[{engine}]'",
            permanent=True,
        )


def find_claude_code() -> Path:
    """Find the program that comes with Claude's library."""
    need_library("claude")
    spec = find_spec(LIBRARIES["claude"])
    folders = (spec and spec.submodule_search_locations) or ()
    for folder in folders:
        program = Path(folder) / "_bundled" / "claude"
        if program.is_file():
            return program
    raise EngineFailed(
        "Claude Code is missing from its library.",
        hint="Reinstall it: pip install --force-reinstall 'backburner[claude]'",
        permanent=True,
    )
