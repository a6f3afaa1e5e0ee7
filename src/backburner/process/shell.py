"""The shell of the agent: one line in a folder, confined to it, bounded in time and output."""

import asyncio
import errno
import getpass
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from backburner.core.commands import Cage
from backburner.core.errors import ProcessFailed
from backburner.ports import MAX_SHOWN_CHARS, CommandBounds, CommandResult
from backburner.process.command import COMMAND_PATH, Command
from backburner.process.confinement import (
    Confinement,
    ProcessLimits,
    cage_missing,
    confine_to,
    control_groups,
    memory_limit,
)
from backburner.process.excerpt import Excerpt
from backburner.process.removal import remove_tree
from backburner.process.run import CHUNK_BYTES, ExitReason, read_streams, wait_for_exit
from backburner.process.tree import ProcessTree, spawn, wait_despite_cancel

#: A command that writes more is ended.
MAX_COMMAND_OUTPUT_BYTES = 20 * 2**20
#: Of a command and its descendants.
#: Between SIGTERM and SIGKILL, when a command has timed out.
COMMAND_GRACE = timedelta(seconds=2)
#: The line is not among the arguments, which everybody on the machine can read.
LINE = "BACKBURNER_LINE"
RUN_LINE = f'eval "unset {LINE}; ${LINE}"'
#: Where attached files are.
ATTACHMENTS = "ATTACHMENTS"
#: Folders of each command.
HOME, TEMPORARY = "home", "tmp"
#: For removing the temporary folder of a command.
CLEANUP_TIMEOUT = timedelta(seconds=60)


UNCONFINED = "Commands are not confined here, by the setting `commands`."
#: Of a home folder: a repository's own settings come before these.
GIT_SETTINGS = """\
[user]
    name = Agent
    email = agent@localhost
[init]
    defaultBranch = main
"""


class ConfinedShell:
    """Commands can use their folder, one for themselves alone, and the system's programs.

    They inherit no environment; `variables` and `readable` are the operator's additions. They are
    ended when the `disk` of the server is almost full. `unconfined` is for systems that cannot
    confine: commands can then use every file we can.
    """

    def __init__(
        self,
        *,
        readable: Iterable[Path] = (),
        variables: Mapping[str, str] | None = None,
        unconfined: bool = False,
        disk: Path | None = None,
        limits: ProcessLimits | None = None,
    ) -> None:
        self._readable = tuple(readable)
        self._variables = dict(variables or {})
        self._unconfined = unconfined
        self._limits = limits or ProcessLimits(max_memory_bytes=memory_limit(), disk=disk)
        #: Given limits say themselves whether there is a control group.
        self._finds_group = limits is None
        self.cage_missing = UNCONFINED if unconfined else cage_missing()

    async def run(
        self, line: str, *, folder: Path, within: timedelta, bounds: CommandBounds
    ) -> CommandResult:
        async with temporary_folder() as temporary:
            # In a thread: the first one finds out what the system gives.
            command = await asyncio.to_thread(self._command, line, folder, temporary, bounds)
            return await run_bounded(command, within)

    def _confinement(
        self, folder: Path, temporary: Path, bounds: CommandBounds
    ) -> Confinement | None:
        if self._unconfined:
            return None
        writable, readable = [temporary], [*self._readable]
        if bounds.attachments is not None:
            readable.append(bounds.attachments)
        (readable if bounds.cage is Cage.LOOK else writable).append(folder)
        return confine_to(
            *writable,
            readable=readable,
            direct=[folder],
            # Without a filter commands are approved one by one, and can use the network.
            network=bounds.network or self.cage_missing is not None,
            sees_processes=bounds.sees_processes,
        )

    def _all_limits(self, temporary: Path) -> ProcessLimits:
        limits = replace(self._limits, temporary=temporary)
        return replace(limits, groups=control_groups()) if self._finds_group else limits

    def _command(self, line: str, folder: Path, temporary: Path, bounds: CommandBounds) -> Command:
        environment = {
            "PATH": COMMAND_PATH,
            "HOME": str(temporary / HOME),
            "PWD": str(folder),
            "USER": user_name(),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "TMPDIR": str(temporary / TEMPORARY),
        }
        if bounds.attachments is not None:
            environment[ATTACHMENTS] = str(bounds.attachments)
        return Command(
            argv=(_find_shell(), "-c", RUN_LINE),
            env=environment | self._variables | {LINE: line},
            cwd=folder,
            confinement=self._confinement(folder, temporary, bounds),
            limits=self._all_limits(temporary),
        )


async def run_bounded(
    command: Command, within: timedelta, secrets: Iterable[str] = ()
) -> CommandResult:
    """Run a command, bounded in time and output; its output shows none of the secrets."""
    excerpt = Excerpt(MAX_SHOWN_CHARS, secrets)
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
        exceeded=_describe_limit(tree.exceeded, command.limits or ProcessLimits()),
    )


def _describe_limit(limit: str, limits: ProcessLimits) -> str:
    match limit:
        case "memory":
            size = limits.max_memory_bytes / 2**30
            return f"its processes used more than {size:.1f} GB of memory"
        case "processes":
            return f"it had more than {limits.max_processes} processes"
        case "disk":
            size = limits.min_free_bytes / 2**30
            return f"the disk of the server has less than {size:.1f} GB left"
        case "files":
            return "the disk of the server can hold hardly any more files"
        case "temporary":
            return "the disk for temporary files is almost full"
        case _:
            return ""


async def _read(tree: ProcessTree, excerpt: Excerpt) -> None:
    while chunk := await tree.stdout.read(CHUNK_BYTES):
        excerpt.add(chunk)
        if excerpt.size > MAX_COMMAND_OUTPUT_BYTES:
            await tree.end()
            return


@asynccontextmanager
async def temporary_folder() -> AsyncIterator[Path]:
    # Not in a thread: a cancellation would leave the folder behind.
    folder = _make_temporary_folder()
    try:
        yield folder
    finally:
        removing = asyncio.create_task(remove_tree(folder, within=CLEANUP_TIMEOUT))
        await wait_despite_cancel(removing, CLEANUP_TIMEOUT)


def _make_temporary_folder() -> Path:
    folder = None
    try:
        folder = Path(tempfile.mkdtemp(prefix="backburner-"))
        (folder / TEMPORARY).mkdir()
        (folder / HOME).mkdir()
        (folder / HOME / ".gitconfig").write_text(GIT_SETTINGS, encoding="ascii")
    except OSError as error:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise ProcessFailed(
                f"The command was not run: no temporary folder for it: {error.strerror}."
            ) from None
        raise ProcessFailed(
            "The command was not run: the disk for temporary files is full.",
            hint="Try again when other commands have ended, or ask the operator to free space.",
        ) from None
    return folder


def user_name() -> str:
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
