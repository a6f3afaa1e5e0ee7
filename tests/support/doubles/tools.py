"""Tools to be called in tests: they count their calls, and do what they are told to do."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from backburner.core.commands import Cage
from backburner.core.conversation import Conversation
from backburner.core.ids import ConversationId
from backburner.core.run import Item, RunKind, Turn
from backburner.core.tool_policy import GrantMatch, Tool
from backburner.ports import NO_CONNECTIONS, Connected, Offer, ToolResult
from backburner.tools.workspace import CommandTerms
from support.stage.make import RUN, USER

Handler = Callable[[Mapping[str, Any]], Awaitable[str | ToolResult]]


async def nobody_else() -> bool:
    return False


#: Of commands that may write, where there is one user.
ALONE = CommandTerms(
    Turn(USER, ConversationId("c_place"), RUN, 1, RunKind.REPLY), Cage.WORK, nobody_else
)


class TestTools:
    """`look` only reads; `send` and `command` need consent; `slow` waits to be let go.

    `shell` is held in a cage, unless it is to have the network.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        #: By the name of the tool.
        self.started = defaultdict[str, asyncio.Event](asyncio.Event)
        self.let_go = asyncio.Event()
        self.handlers: dict[str, Handler] = {}
        self.cage = Cage.WORK

    def connect(
        self, turn: Turn, conversation: Conversation, items: Sequence[Item]
    ) -> AbstractAsyncContextManager[Connected]:
        del turn, conversation, items
        return nullcontext(NO_CONNECTIONS)

    async def offers(self, turn: Turn, conversation: Conversation) -> Sequence[Offer]:
        del turn, conversation
        return [
            self.offer("look", free=True, read_only=True),
            self.offer("send"),
            self.offer("command", grant_match=GrantMatch.COMMAND),
            self.offer("slow", free=True),
            self.offer("shell", cage=self.cage),
        ]

    async def check_folder(self, conversation: Conversation) -> None:
        pass

    async def end_run(self, turn: Turn) -> None:
        pass

    def offer(
        self,
        name: str,
        *,
        free: bool = False,
        read_only: bool = False,
        grant_match: GrantMatch = GrantMatch.TOOL,
        cage: Cage | None = None,
    ) -> Offer:
        async def run(arguments: Mapping[str, Any]) -> ToolResult:
            self.calls.append((name, arguments))
            self.started[name].set()
            if name in self.handlers:
                result = await self.handlers[name](arguments)
                return result if isinstance(result, ToolResult) else ToolResult(result)
            if name == "slow":
                await self.let_go.wait()
            return ToolResult(f"{name} is done.")

        return Offer(
            tool=Tool(
                server="test",
                name=name,
                definition="d",
                free=free,
                grant_match=grant_match,
                cage=cage,
            ),
            description=name,
            parameters={"type": "object"},
            read_only=read_only,
            run=run,
        )

    def count(self, name: str) -> int:
        return sum(1 for called, _ in self.calls if called == name)
