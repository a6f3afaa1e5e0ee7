"""What of the engines' libraries is installed here, found without loading any of it."""

from importlib.util import find_spec
from pathlib import Path

from backburner.core.errors import EngineFailed

#: What each engine needs to be importable; its extra has the engine's name.
LIBRARIES = {"claude": "claude_agent_sdk", "openai": "pydantic_ai"}


def need_library(engine: str) -> None:
    """Refuse an engine whose library is not installed."""
    library = LIBRARIES.get(engine)
    if library and find_spec(library) is None:
        raise EngineFailed(
            f"What the engine {engine} needs is not installed.",
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
        "Claude Code is not there, though its library is.",
        hint="Install it again: pip install --force-reinstall 'backburner[claude]'",
        permanent=True,
    )
