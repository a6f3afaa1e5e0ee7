"""The shell of the agent: one line in a folder, confined to it, bounded in time and output."""

import asyncio
import getpass
import os
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from backburner.core.errors import ProcessFailed
from backburner.ports import MAX_SHOWN_CHARS, CommandResult
from backburner.process.command import COMMAND_PATH, Command
from backburner.process.confinement import ProcessLimits, confine_to
from backburner.process.excerpt import Excerpt
from backburner.process.removal import remove_tree
from backburner.process.run import CHUNK_BYTES, ExitReason, read_streams, wait_for_exit
from backburner.process.tree import ProcessTree, spawn, wait_despite_cancel

#: A command that writes more is ended.
MAX_COMMAND_OUTPUT_BYTES = 20 * 2**20
#: Between SIGTERM and SIGKILL, when a command has timed out.
COMMAND_GRACE = timedelta(seconds=2)
#: For removing the temporary folder of a command.
CLEANUP_TIMEOUT = timedelta(seconds=60)


class ConfinedShell:
    """Commands can use their folder, a temporary one, and the system's programs.

    They inherit no environment; `variables` and `readable` are the operator's additions.
    `unconfined` is for systems that cannot confine: commands can then use every file we can.
    """

    def __init__(
        self,
        *,
        readable: Iterable[Path] = (),
        variables: Mapping[str, str] | None = None,
        unconfined: bool = False,
        limits: ProcessLimits | None = None,
    ) -> None:
        self._readable = tuple(readable)
        self._variables = dict(variables or {})
        self._unconfined = unconfined
        self._limits = limits or ProcessLimits()

    async def run(self, line: str, *, folder: Path, within: timedelta) -> CommandResult:
        excerpt = Excerpt(MAX_SHOWN_CHARS)
        async with _temporary_folder() as temporary:
            command = self._command(line, folder, temporary)
            async with (
                spawn(command, stderr="join", grace=COMMAND_GRACE, max_line=CHUNK_BYTES) as tree,
                read_streams(_read(tree, excerpt)),
            ):
                reason, exited = await wait_for_exit(tree, within)
        return CommandResult(
            output=excerpt.text(),
            code=exited.code,
            signal=exited.signal,
            timed_out=reason is ExitReason.TIMED_OUT,
            output_exceeded=excerpt.size > MAX_COMMAND_OUTPUT_BYTES,
        )

    def _command(self, line: str, folder: Path, temporary: Path) -> Command:
        environment = {
            "PATH": COMMAND_PATH,
            "HOME": str(folder),
            "PWD": str(folder),
            "USER": _user(),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "TMPDIR": str(temporary),
        }
        return Command(
            argv=(_find_shell(), "-c", line),
            env=environment | self._variables,
            cwd=folder,
            confinement=None
            if self._unconfined
            else confine_to(folder, temporary, readable=self._readable),
            limits=self._limits,
        )


async def _read(tree: ProcessTree, excerpt: Excerpt) -> None:
    while chunk := await tree.stdout.read(CHUNK_BYTES):
        excerpt.add(chunk)
        if excerpt.size > MAX_COMMAND_OUTPUT_BYTES:
            await tree.end()
            return


@asynccontextmanager
async def _temporary_folder() -> AsyncIterator[Path]:
    # Not in a thread: a cancellation would leave the folder behind.
    folder = Path(tempfile.mkdtemp(prefix="backburner-"))
    try:
        yield folder
    finally:
        removing = asyncio.create_task(remove_tree(folder, within=CLEANUP_TIMEOUT))
        await wait_despite_cancel(removing, CLEANUP_TIMEOUT)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _find_shell() -> str:
    for program in ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/bin/sh"):
        if Path(program).exists():
            return program
    raise ProcessFailed(
        "No shell found on this system.", hint="Install bash or sh in /bin.", permanent=True
    )
