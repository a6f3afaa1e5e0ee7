"""The Claude engine: one turn of the agent, in a new program or one that is still warm."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path

from backburner.core.errors import EngineFailed, SessionGone
from backburner.core.ids import UserId
from backburner.engine.claude import options, sessions
from backburner.engine.claude.homes import ProgramFolder, ProgramHomes
from backburner.engine.claude.program import FolderIdentity, Program, start_program, write_launcher
from backburner.engine.claude.relay import Line, Relay
from backburner.engine.claude.tools import digest
from backburner.engine.claude.warm_programs import WarmPrograms
from backburner.engine.installed import find_claude_code
from backburner.ports import EngineEvent, Gate, Launcher, TurnRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeModel:
    """A model, and how to reach it."""

    name: str
    address: str
    #: Sent with every request, such as its key.
    headers: Mapping[str, str] = field(repr=False)
    #: Use a subscription instead of a key.
    subscription: bool = False
    #: Timeout for a silent model.
    stall: timedelta = timedelta(minutes=2)


class ClaudeEngine:
    def __init__(
        self,
        model: ClaudeModel,
        *,
        launcher: Launcher,
        #: The folder for the home folders of the programs.
        homes: Path,
        workspace: Callable[[UserId], Path],
        #: The tools of Claude Code itself that are switched on.
        builtins: tuple[str, ...] = (),
        #: The number of chats that keep their program after a reply, and the time they keep it.
        warm: int = 2,
        warm_for: timedelta = timedelta(minutes=5),
    ) -> None:
        self._model = model
        self._launcher = launcher
        self._base = homes
        self._workspace = workspace
        self._builtins = builtins
        self._relay = Relay(address=model.address, headers=model.headers, stall=model.stall)
        self._warm = WarmPrograms(warm, warm_for, self._end)
        #: Turns whose program has started, and so has allocated its memory.
        self.active_programs = 0

    @cached_property
    def _homes(self) -> ProgramHomes:
        return ProgramHomes(self._base)

    async def run(self, request: TurnRequest, gate: Gate) -> AsyncGenerator[EngineEvent, None]:
        place = await _identify_folder(request)
        program = self._warm.take(request, digest(request.tools), place)
        if program is None:
            program = await self._start(request)
            program.place = place
        # In each turn: a program that was kept may have had another key.
        program.line.own_headers = self._own_headers(request)
        self.active_programs += 1
        try:
            turn = program.turn(request.prompt, request.tools, gate, request.images)
            async with aclosing(turn) as events:
                async for event in events:
                    yield event
        finally:
            self.active_programs -= 1
            if program.is_reusable and request.schema is None:
                self._warm.keep(request.conversation.id, program)
            else:
                await asyncio.shield(self._end(program))

    async def close(self) -> None:
        """End every program, and remove their home folders."""
        await self._warm.close()
        await self._relay.close()
        if homes := vars(self).pop("_homes", None):
            await asyncio.to_thread(homes.close)

    async def _start(self, request: TurnRequest) -> Program:
        if request.session_id is not None and not request.memory:
            raise SessionGone
        folder = await asyncio.to_thread(self._make_folder)
        line = await self._relay.open()
        try:
            prepared = await asyncio.to_thread(self._prepare, request, folder, line)
            program = await start_program(prepared, folder, line, request.tools)
        except BaseException:
            self._relay.close_line(line)
            await asyncio.shield(asyncio.to_thread(self._homes.remove, folder))
            raise
        program.memory = list(request.memory)
        return program

    def _own_headers(self, request: TurnRequest) -> Mapping[str, str] | None:
        if request.own_key is None:
            return None
        if self._model.subscription:
            return {"authorization": f"Bearer {request.own_key}"}
        return {"x-api-key": request.own_key}

    def _make_folder(self) -> ProgramFolder:
        return self._homes.make()

    def _prepare(
        self, request: TurnRequest, folder: ProgramFolder, line: Line
    ) -> options.ProgramOptions:
        own = request.conversation.folder
        if own is not None:
            workspace = Path(own.path)
            # The program works there as long as it lives.
            if not workspace.is_dir() or os.path.realpath(workspace) != own.path:
                raise EngineFailed(
                    f"The folder {own.path} is gone, or was replaced by a link.", permanent=True
                )
        else:
            workspace = self._workspace(request.conversation.user_id)
            workspace.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_read_only = own is not None and own.read_only
        prepared = options.ProgramOptions(
            model=self._model.name,
            subscription=self._model.subscription,
            builtins=self._builtins,
            launcher=folder.launcher,
            home=folder.home,
            workspace=workspace,
            session=request.session_id,
            schema=request.schema,
        )
        if request.session_id is not None:
            config = options.config_folder(folder.home)
            sessions.write_transcripts(config, workspace, request.session_id, request.memory)
        self._launcher.write(
            folder.wrapper,
            program=find_claude_code(),
            keep=options.variable_names(prepared, line),
            writable=(folder.home,) if is_read_only else (folder.home, workspace),
            readable=(workspace,),
            direct=() if own is None else (workspace,),
            limit_report=folder.limit_report,
        )
        write_launcher(folder)
        return prepared

    async def _end(self, program: Program) -> None:
        self._relay.close_line(program.line)
        await program.close()
        await asyncio.to_thread(self._homes.remove, program.folder)


async def _identify_folder(request: TurnRequest) -> FolderIdentity | None:
    folder = request.conversation.folder
    if folder is None:
        return None
    try:
        found = await asyncio.to_thread(Path(folder.path).lstat)
    except OSError:
        inode = None
    else:
        inode = found.st_dev, found.st_ino
    return FolderIdentity(folder=folder, added_at=request.folder_added_at, inode=inode)
