"""A shell for the agent: one line in a folder, confined to it, bounded in time and output."""

import asyncio
import getpass
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

from backburner.core.errors import ProcessFailed
from backburner.ports import MAX_SHOWN_CHARS, CommandResult
from backburner.process.command import Command
from backburner.process.confinement import Limits, confine_to
from backburner.process.excerpt import Excerpt
from backburner.process.run import CHUNK, Ending, reading, run, wait
from backburner.process.tree import Tree, outwait, started

#: A command that writes more than this is ended.
FLOOD = 20 * 2**20
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: How long a command has to end when its time is over.
GRACE = timedelta(seconds=2)
#: How long it may take to remove what a command left in its temporary folder.
CLEANING = timedelta(seconds=60)


class ConfinedShell:
    """Commands see their folder, a temporary one, and of the system what programs need.

    The environment is made from nothing; `variables` are all that the operator adds, and
    `readable` the folders. `unconfined` is for systems that cannot confine: then commands see
    all that we do.
    """

    def __init__(
        self,
        *,
        readable: Iterable[Path] = (),
        variables: Mapping[str, str] | None = None,
        unconfined: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self._readable = tuple(readable)
        self._variables = dict(variables or {})
        self._unconfined = unconfined
        self._limits = limits or Limits()

    async def run(self, line: str, *, folder: Path, within: timedelta) -> CommandResult:
        """Run one line in a folder; everything it started has ended when this does."""
        excerpt = Excerpt(MAX_SHOWN_CHARS)
        async with _temporary_folder() as temporary:
            command = self._command(line, folder, temporary)
            async with (
                started(command, stderr="join", grace=GRACE, longest_line=CHUNK) as tree,
                reading(_take(tree, excerpt)),
            ):
                ending, exited = await wait(tree, within)
        return CommandResult(
            output=excerpt.text(),
            code=exited.code,
            signal=exited.signal,
            timed_out=ending is Ending.TIMED_OUT,
            flooded=excerpt.size > FLOOD,
        )

    def _command(self, line: str, folder: Path, temporary: Path) -> Command:
        environment = {
            "PATH": PATH,
            "HOME": str(folder),
            "PWD": str(folder),
            "USER": _user(),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "TMPDIR": str(temporary),
        }
        return Command(
            argv=(_shell(), "-c", line),
            env=environment | self._variables,
            cwd=folder,
            confined=None
            if self._unconfined
            else confine_to(folder, temporary, readable=self._readable),
            limits=self._limits,
        )


async def _take(tree: Tree, excerpt: Excerpt) -> None:
    while chunk := await tree.stdout.read(CHUNK):
        excerpt.add(chunk)
        if excerpt.size > FLOOD:
            await tree.end()
            return


@asynccontextmanager
async def _temporary_folder() -> AsyncIterator[Path]:
    # Not in a thread: a cancel would leave it behind.
    folder = Path(tempfile.mkdtemp(prefix="backburner-"))
    try:
        yield folder
    finally:
        removing = asyncio.create_task(_remove(folder))
        await outwait(removing, CLEANING)


async def _remove(folder: Path) -> None:
    # For what is deeper than Python goes, and for folders that a command has closed to us.
    if not await asyncio.to_thread(_remove_tree, folder):
        thorough = 'chmod -R u+rwx -- "$0"; rm -rf -- "$0"'
        argv = ("/bin/sh", "-c", thorough, str(folder))
        await run(Command(argv=argv, env={"PATH": PATH}, cwd=Path("/")), within=CLEANING)


def _remove_tree(folder: Path) -> bool:
    with suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _shell() -> str:
    for program in ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/bin/sh"):
        if Path(program).exists():
            return program
    raise ProcessFailed("There is no shell on this system.", permanent=True)
