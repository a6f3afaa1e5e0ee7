"""Tools and a channel that leave traces which outlive their process."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from backburner.core.ids import UserId
from backburner.core.tool_policy import Tool
from backburner.ports import ChannelMessage, Offer, ToolResult
from backburner.process.command import Command
from backburner.process.tree import spawn
from backburner.tools.workspace import CommandTerms
from support.faults.traces import Traces

SERVER, DEFINITION = "test", "d"
GRACE = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class LastingTools:
    """`send` has an effect and needs consent; `slow` has one too, and `look` only reads.

    Both take as long as they are told. `spawn` starts a program, says when that has written some
    lines, and waits for its end.
    """

    traces: Traces

    def __call__(self, user: UserId, terms: CommandTerms) -> Sequence[Offer]:
        del user, terms
        return [
            self._offer("send"),
            self._offer("slow", free=True),
            self._offer("look", free=True, read_only=True),
            self._offer("spawn", free=True),
        ]

    def _offer(self, name: str, *, free: bool = False, read_only: bool = False) -> Offer:
        async def run(arguments: Mapping[str, Any]) -> ToolResult:
            self.traces.leave(name, text=str(arguments.get("text", "")))
            if name == "spawn":
                await self._spawn(arguments["argv"], arguments["lines"])
            await asyncio.sleep(arguments.get("seconds", 0))
            return ToolResult(f"{name} is done.")

        return Offer(
            tool=Tool(server=SERVER, name=name, definition=DEFINITION, free=free),
            description=name,
            parameters={"type": "object"},
            read_only=read_only,
            run=run,
        )

    async def _spawn(self, argv: Sequence[str], lines: int) -> None:
        command = Command(argv=tuple(argv), env={}, cwd=Path("/"))
        async with spawn(command, stderr="drop", grace=GRACE) as tree:
            for _ in range(lines):
                await tree.stdout.readline()
            self.traces.leave("spawned")
            await tree.wait()


@dataclass(frozen=True, slots=True)
class LastingChannel:
    traces: Traces

    async def send(self, message: ChannelMessage) -> str | None:
        self.traces.leave(
            "delivery", target=message.target, text=message.as_text(), key=message.key
        )
        return None

    async def close(self) -> None:
        """Nothing is open."""
