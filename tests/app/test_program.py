"""The program: what it imports for what it does."""

import pkgutil
import subprocess
import sys

from backburner.cli import commands

#: `mcp` speaks a protocol whose library imports the other two.
COMMANDS = [
    f"backburner.cli.commands.{module.name}" for module in pkgutil.iter_modules(commands.__path__)
]


def test_a_worker_does_without_the_web_framework_and_the_driver_of_postgresql() -> None:
    assert imported_with("backburner.app.program", "backburner.app.owner") == set()


def test_commands_do_without_the_web_framework() -> None:
    assert "backburner.cli.commands.tasks" in COMMANDS
    assert imported_with(*COMMANDS) & {"fastapi", "backburner.api"} == set()


def imported_with(*modules: str) -> set[str]:
    heavy = ("fastapi", "starlette", "uvicorn", "backburner.api", "psycopg")
    code = f"import sys, {', '.join(modules)}; print(*(sys.modules.keys() & {set(heavy)}))"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, timeout=60, capture_output=True, text=True
    )
    return set(done.stdout.split())
