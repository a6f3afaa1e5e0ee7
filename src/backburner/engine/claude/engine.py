"""The Claude engine: one turn of the agent, in a program of its own or one that is still warm."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path

from backburner.core.errors import SessionGone
from backburner.core.ids import UserId
from backburner.engine.claude import options, program, sessions
from backburner.engine.claude.homes import Homes
from backburner.engine.claude.program import Program
from backburner.engine.claude.relay import Line, Relay
from backburner.engine.claude.tools import digest
from backburner.engine.claude.warm import Warm
from backburner.engine.installed import find_claude_code
from backburner.ports import EngineEvent, Gate, Launcher, TurnRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Which model, and how it is reached."""

    name: str
    address: str
    #: What it is asked with.
    headers: Mapping[str, str] = field(repr=False)
    #: It is used with a subscription instead of a key.
    subscription: bool = False
    #: How long it may say nothing.
    stall: timedelta = timedelta(minutes=2)


class ClaudeEngine:
    def __init__(
        self,
        model: Model,
        *,
        launcher: Launcher,
        #: Where the programs have their homes, each its own.
        homes: Path,
        workspace: Callable[[UserId], Path],
        #: Claude Code's own tools that are switched on.
        builtins: tuple[str, ...] = (),
        #: How many chats keep their program after a reply, and how long.
        warm: int = 2,
        warm_for: timedelta = timedelta(minutes=5),
    ) -> None:
        self._model = model
        self._launcher = launcher
        self._base = homes
        self._workspace = workspace
        self._builtins = builtins
        self._relay = Relay(address=model.address, headers=model.headers, stall=model.stall)
        self._warm = Warm(warm, warm_for, self._end)
        #: How many turns have a program that has started, and so has taken its memory.
        self.at_work = 0

    @cached_property
    def _homes(self) -> Homes:
        return Homes(self._base)

    async def run(self, request: TurnRequest, gate: Gate) -> AsyncGenerator[EngineEvent, None]:
        found = self._warm.take(request, digest(request.tools)) or await self._start(request)
        self.at_work += 1
        try:
            async with aclosing(found.turn(request.prompt, request.tools, gate)) as events:
                async for event in events:
                    yield event
        finally:
            self.at_work -= 1
            if found.is_fit and request.schema is None:
                self._warm.keep(request.conversation.id, found)
            else:
                await asyncio.shield(self._end(found))

    async def close(self) -> None:
        """End every program, and leave nothing behind."""
        await self._warm.close()
        await self._relay.close()
        if homes := vars(self).pop("_homes", None):
            await asyncio.to_thread(homes.close)

    async def _start(self, request: TurnRequest) -> Program:
        if request.session_id is not None and not request.memory:
            raise SessionGone
        home = await asyncio.to_thread(self._make_home)
        line = await self._relay.open()
        try:
            how = await asyncio.to_thread(self._prepare, request, home, line)
            started = await program.start(how, line, request.tools)
        except BaseException:
            self._relay.close_line(line)
            await asyncio.shield(asyncio.to_thread(self._homes.remove, home))
            raise
        started.memory = list(request.memory)
        return started

    def _make_home(self) -> Path:
        return self._homes.make()

    def _prepare(self, request: TurnRequest, home: Path, line: Line) -> options.Start:
        workspace = self._workspace(request.conversation.user_id)
        workspace.mkdir(mode=0o700, parents=True, exist_ok=True)
        how = options.Start(
            model=self._model.name,
            subscription=self._model.subscription,
            builtins=self._builtins,
            launcher=home / "launch",
            home=home,
            workspace=workspace,
            session=request.session_id,
            schema=request.schema,
        )
        if request.session_id is not None:
            config = options.config_folder(home)
            sessions.write_transcripts(config, workspace, request.session_id, request.memory)
        wrapper = home / "wrapper"
        self._launcher.write(
            wrapper,
            program=find_claude_code(),
            keep=options.kept(how, line),
            writable=(home, workspace),
        )
        program.write_launcher(home, wrapper)
        return how

    async def _end(self, ended: Program) -> None:
        self._relay.close_line(ended.line)
        await ended.close()
        await asyncio.to_thread(self._homes.remove, ended.home)
