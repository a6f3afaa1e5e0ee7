"""The program: what it imports for what it does."""

import pkgutil
import subprocess
import sys

import pytest

from backburner.cli import commands

#: `mcp` speaks a protocol whose library imports the other two.
COMMANDS = [
    f"backburner.cli.commands.{module.name}" for module in pkgutil.iter_modules(commands.__path__)
]


@pytest.mark.parametrize("module", ["backburner.app.program", "backburner.app.owner"])
def test_a_worker_does_without_the_web_framework(module: str) -> None:
    assert imported_with(module) == set()


def test_commands_do_without_the_web_framework() -> None:
    assert "backburner.cli.commands.tasks" in COMMANDS
    assert imported_with(*COMMANDS) & {"fastapi", "backburner.api"} == set()


def imported_with(*modules: str) -> set[str]:
    heavy = ("fastapi", "starlette", "uvicorn", "backburner.api")
    code = f"import sys, {', '.join(modules)}; print(*(sys.modules.keys() & {set(heavy)}))"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, timeout=60, capture_output=True, text=True
    )
    return set(done.stdout.split())
