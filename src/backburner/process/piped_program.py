"""Programs that run in a cage for as long as somebody talks to them through pipes."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from backburner.core.errors import ProcessFailed
from backburner.ports import StdioProgram
from backburner.process.command import COMMAND_PATH, Command
from backburner.process.confinement import (
    ProcessLimits,
    cage_missing,
    confine_to,
    memory_limit,
)
from backburner.process.excerpt import Excerpt
from backburner.process.run import CHUNK_BYTES, read_streams
from backburner.process.shell import HOME, TEMPORARY, temporary_folder
from backburner.process.tree import ProcessTree, spawn

#: Between SIGTERM and SIGKILL.
GRACE = timedelta(seconds=2)
#: For exiting by itself when its stdin is closed, as such programs do.
EXIT_SECONDS = 0.5
#: Of what it writes to stderr.
MAX_ERROR_CHARS = 4_000
#: Shorter values of variables are part of other words.
MIN_SECRET_CHARS = 6
#: They live long, so they are looked at less often than commands.
LIMIT_POLL = timedelta(seconds=1)
MAX_PROCESSES = 1024


class PipedProgram:
    def __init__(self, tree: ProcessTree, errors: Excerpt) -> None:
        self._tree = tree
        self._errors = errors

    async def write(self, data: bytes) -> None:
        try:
            self._tree.stdin.write(data)
            await self._tree.stdin.drain()
        except (ConnectionError, RuntimeError):
            raise ProcessFailed("The program does not read any more.") from None

    async def read(self) -> bytes:
        return await self._tree.stdout.read(CHUNK_BYTES)

    def errors(self) -> str:
        return self._errors.text()

    async def end(self) -> str:
        """Give it time to exit, as its stdin is closed, before it is ended."""
        self._tree.stdin.close()
        try:
            async with asyncio.timeout(EXIT_SECONDS):
                exited = await self._tree.wait()
        except TimeoutError:
            await self._tree.end()
            return "was ended."
        if self._tree.exceeded:
            return f"was ended: it exceeded the limit of {self._tree.exceeded}."
        if exited.signal is not None:
            return f"was ended by signal {exited.signal}."
        return f"exited with code {exited.code}."


class PipedPrograms:
    """Starts programs confined to their folders; `unconfined` is for systems that cannot confine.

    One that could read `hidden` files or folders is not started. They are ended when the `disk` of
    the server is almost full.
    """

    def __init__(
        self,
        *,
        unconfined: bool = False,
        disk: Path | None = None,
        hidden: Iterable[Path] = (),
        missing: Callable[[], str | None] = cage_missing,
    ) -> None:
        self._unconfined = unconfined
        self._disk = disk
        self._hidden = tuple(hidden)
        #: Says why programs cannot be confined here.
        self._missing = missing

    @asynccontextmanager
    async def start(self, program: StdioProgram) -> AsyncIterator[PipedProgram]:
        async with temporary_folder() as temporary:
            # In a thread: the first one finds out what the system gives.
            command = await asyncio.to_thread(self._command, program, temporary)
            errors = Excerpt(MAX_ERROR_CHARS, _secrets(program))
            async with (
                spawn(command, stdin="pipe", grace=GRACE, max_line=CHUNK_BYTES) as tree,
                read_streams(_read(tree, errors)),
            ):
                running = PipedProgram(tree, errors)
                try:
                    yield running
                finally:
                    await running.end()

    def _command(self, program: StdioProgram, temporary: Path) -> Command:
        home = temporary / HOME
        environment = {
            "PATH": COMMAND_PATH,
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "TMPDIR": str(temporary / TEMPORARY),
        }
        confinement = None
        if not self._unconfined:
            if missing := self._missing():
                raise ProcessFailed(
                    f"{program.command[0]} was not run: it cannot be confined on this system."
                    f" {missing}",
                    hint="The operator can allow unconfined commands in the settings.",
                    permanent=True,
                )
            if (path := find_readable(program, self._hidden)) is not None:
                raise ProcessFailed(
                    f"{program.command[0]} was not run: it could read {path}.",
                    hint="Take that folder from it.",
                    permanent=True,
                )
            confinement = confine_to(
                temporary,
                *map(Path, program.writable),
                readable=map(Path, program.readable),
                network=program.network,
                sees_processes=False,
            )
        return Command(
            argv=program.command,
            env={**environment, **program.environment},
            cwd=home,
            confinement=confinement,
            limits=ProcessLimits(
                max_new_processes=MAX_PROCESSES,
                max_processes=MAX_PROCESSES,
                max_memory_bytes=memory_limit(),
                disk=self._disk,
                temporary=temporary,
                poll=LIMIT_POLL,
            ),
        )


def find_readable(program: StdioProgram, hidden: Iterable[Path]) -> Path | None:
    """Return one of these files and folders that a program could read, or read a part of."""
    folders = [Path(path).resolve() for path in (*program.readable, *program.writable)]
    confinement = confine_to(readable=folders)
    for path in hidden:
        real = path.resolve()
        if confinement.can_read(real) or any(folder.is_relative_to(real) for folder in folders):
            return path
    return None


async def _read(tree: ProcessTree, errors: Excerpt) -> None:
    while chunk := await tree.stderr.read(CHUNK_BYTES):
        errors.add(chunk)


def _secrets(program: StdioProgram) -> list[str]:
    return [value for value in program.environment.values() if len(value) >= MIN_SECRET_CHARS]
