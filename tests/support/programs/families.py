"""Commands for tests to start: short scripts, and a family that does not want to end."""

import asyncio
import sys
from datetime import timedelta
from pathlib import Path

from backburner.process.command import Command

PATH = "/usr/local/bin:/usr/bin:/bin"
#: Long enough for a program to end, short enough to wait for one that will not.
GRACE = timedelta(seconds=0.1)
#: More than anything here takes.
SOON = timedelta(seconds=20)

#: How many members say that they are there.
MEMBERS = 8
FAMILY = Path(__file__).with_name("family.py")


def command(*argv: str, cwd: Path = Path("/"), **env: str) -> Command:
    return Command(argv=argv, env={"PATH": PATH, **env}, cwd=cwd)


def script(text: str, *arguments: str, cwd: Path = Path("/")) -> Command:
    """Give a command for the shell; the first argument is its $0."""
    return command("sh", "-c", text, *arguments, cwd=cwd)


def family(word: str) -> Command:
    return command(*family_argv(word))


def family_argv(word: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", str(FAMILY), word)


async def assembled(stdout: asyncio.StreamReader | None) -> list[str]:
    """Wait until every member has said that it is there."""
    assert stdout
    async with asyncio.timeout(SOON.total_seconds()):
        return sorted([(await stdout.readline()).decode().strip() for _ in range(MEMBERS)])
