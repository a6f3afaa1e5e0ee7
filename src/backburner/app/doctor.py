"""Looks at what is there, for those who set it up, and changes nothing."""

import asyncio
import tempfile
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

from backburner.core.errors import MachineFailed
from backburner.engine import installed, trial
from backburner.engine.trial import Target
from backburner.ports import Trial
from backburner.process import run as process
from backburner.process.command import Command
from backburner.process.confinement import confinement_missing
from backburner.process.memory import free_memory
from backburner.settings import Profile, Settings
from backburner.store.lifecycle import opening


async def try_profile(profile: Profile) -> Trial:
    """See whether the model of a profile answers."""
    return await trial.try_model(
        Target(
            engine=profile.engine,
            model=profile.model,
            address=profile.address,
            key=profile.key.get_secret_value() if profile.key else None,
            token=profile.token.get_secret_value() if profile.token else None,
        )
    )


async def list_models(address: str, key: str | None) -> tuple[str, ...]:
    """List what a server that speaks OpenAI's protocol offers."""
    return await trial.list_models(Target(engine="openai", model="", address=address, key=key))


async def look_at_engine(engine: str) -> str:
    """Say what an engine works with here; what is missing is refused with what to install."""
    if engine != "claude":
        installed.need_library(engine)
        return ""
    program = await asyncio.to_thread(installed.find_claude_code)
    with tempfile.TemporaryDirectory() as home:
        command = Command(argv=(str(program), "--version"), env={"HOME": home}, cwd=Path(home))
        done = await process.run(command, within=timedelta(seconds=30))
    version = done.stdout.text.partition(" ")[0].strip()
    if not done.exit.ok or not version:
        raise MachineFailed(f"Claude Code does not start: {program}.", permanent=True)
    return f"Claude Code {version}"


def look_at_database(settings: Settings) -> str:
    """Say in what state the database is, without changing it."""
    found = opening.look_at_database(settings.database.get_secret_value())
    if found.in_use:
        return "in use by a Backburner that is running"
    if found.revision is None:
        return "empty; its tables are made at the first start"
    if found.revision == found.newest:
        return f"revision {found.revision}, up to date"
    return f"revision {found.revision}; brought to {found.newest} at the next start"


def measure_memory() -> int | None:
    """Tell how many bytes there are to be had, where the system says so."""
    return free_memory()


def further_checks(settings: Settings) -> Mapping[str, Callable[[], str | None]]:
    """Give what else can be missing on this machine: each says in a sentence what is, or None."""
    return {"commands": confinement_missing} if settings.commands == "confined" else {}
