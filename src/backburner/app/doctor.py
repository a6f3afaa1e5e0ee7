"""Checks for `backburner doctor`; they change nothing."""

import asyncio
import tempfile
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from backburner.app.clock import Clock
from backburner.app.machines import build_sign_ins
from backburner.core.errors import MachineFailed
from backburner.engine import installed
from backburner.ports import SignInState
from backburner.process import run as process
from backburner.process.command import Command
from backburner.process.confinement import (
    confinement_gaps,
    confinement_missing,
    control_groups,
    gives_process_namespace,
)
from backburner.process.memory import free_memory
from backburner.settings import Settings
from backburner.store.lifecycle import opening

__all__ = [
    "check_engine",
    "confinement_gaps",
    "confinement_missing",
    "control_groups",
    "describe_database",
    "describe_sign_ins",
    "find_later_change",
    "free_memory",
    "gives_process_namespace",
]

#: Clocks of two machines may differ this much.
MAX_CLOCK_LEAD = timedelta(minutes=1)


async def check_engine(engine: str) -> str:
    """Return the version of the engine's program, if it has one; raise if it is not installed."""
    if engine != "claude":
        installed.need_library(engine)
        return ""
    program = await asyncio.to_thread(installed.find_claude_code)
    with tempfile.TemporaryDirectory() as home:
        command = Command(argv=(str(program), "--version"), env={"HOME": home}, cwd=Path(home))
        result = await process.run(command, within=timedelta(seconds=30))
    version = result.stdout.text.partition(" ")[0].strip()
    if not result.exit.ok or not version:
        raise MachineFailed(f"Claude Code does not start: {program}.", permanent=True)
    return f"Claude Code {version}"


def describe_database(settings: Settings) -> str:
    """Describe the state of the database without changing it."""
    state = opening.look_at_database(settings.database.get_secret_value())
    if state.in_use:
        return "in use by a running server"
    if state.revision is None:
        return "empty; the first start creates its tables"
    if state.revision == state.newest:
        return f"revision {state.revision}, up to date"
    return f"revision {state.revision}; the next start migrates it to {state.newest}"


def describe_sign_ins(settings: Settings) -> Sequence[SignInState]:
    """Describe the sign-ins that programs of agents could use here; empty if none could."""
    sign_ins = build_sign_ins(settings)
    return () if sign_ins is None else sign_ins.states()


def find_later_change(settings: Settings) -> datetime | None:
    """Return the time of the last change in the database, if it is later than now."""
    changed_at = opening.look_at_database(settings.database.get_secret_value()).changed_at
    is_later = changed_at is not None and changed_at - Clock().now() > MAX_CLOCK_LEAD
    return changed_at if is_later else None
