"""The stage of the showcase: a set clock, an agent that acts what is written for it, its tools.

Time passes only where a story says so, also while the agent works, so that runs have lengths.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any

from sqlalchemy import func, select

from backburner.actions import chat, conversations, schedules
from backburner.actions.accounts import users
from backburner.actions.chat import NewChat
from backburner.actions.conversations import Changes
from backburner.actions.deps import FolderRules, Limits, PushParts
from backburner.actions.origin import Origin
from backburner.actions.schedules import Timing
from backburner.actions.work import tasks
from backburner.actions.work.tasks import NewTask
from backburner.bus.local import LocalBus
from backburner.core.accounts import Role
from backburner.core.allowance import Price
from backburner.core.conversation import Conversation
from backburner.core.ids import ConnectionId, ConversationId, UserId
from backburner.core.tool_policy import OWN_SERVER, GrantMatch, Tool
from backburner.core.work.views import TaskKind
from backburner.gateway.push_service import CheckedPushService
from backburner.ports import FolderContent, Offer, ToolResult, TurnRequest
from backburner.store import tables
from backburner.store.db import Database
from backburner.tools.toolbox import Toolbox
from backburner.tools.workspace import CommandTerms
from backburner.vault import web_push
from support.doubles.clock import SetClock
from support.doubles.engine import End, Script, ScriptedEngine, Step, Wait
from support.doubles.tool_servers import FakeServers
from support.stage.make import OPERATOR
from support.stage.stage import BOUND, Stage

#: A Tuesday morning; the stories begin four weeks before.
NOW = datetime(2026, 11, 17, 7, 48, tzinfo=UTC)
FIRST = NOW - timedelta(days=28)
MODEL = "Claude Sonnet"
MACHINE = "showcase"
PRICE = Price(input=3_000_000, output=15_000_000)


@dataclass(frozen=True, slots=True)
class Pass:
    """Let time pass within a run."""

    seconds: float


async def read_folder(path: str) -> FolderContent:
    """Find any folder; that of the shop has other instructions than were accepted."""
    rules = "Run the tests first.\nAsk before you publish." if path.endswith("shop") else ""
    return FolderContent(path=path, instructions={"AGENTS.md": rules} if rules else {})


Act = Step | Pass
QUIET = End({"complete": True})
Tell = Callable[["Showcase"], Awaitable[None]]


def before_the_end(**ago: float) -> Callable[[Tell], "Story"]:
    """Have a story told at some time."""
    return lambda tell: Story(timedelta(**ago), tell)


@dataclass(frozen=True, slots=True)
class Story:
    ago: timedelta
    tell: Tell


class Showcase(Stage):
    def __init__(self, database: Database, clock: SetClock, servers: FakeServers) -> None:
        self.clock = clock
        self.servers = servers
        #: How long each tool takes, and what it gives.
        self.results: dict[str, tuple[float, str]] = {}
        self._plays: dict[ConversationId, deque[Sequence[Act] | Script]] = {}
        engine = ScriptedEngine(otherwise=self._act)
        engine.model = MODEL
        folders = FolderRules(machine=MACHINE, machine_name="workshop", read=read_folder)
        super().__init__(
            database,
            LocalBus(),
            engine,
            toolbox=lambda deps: Toolbox(
                deps, workspace=self._offers, open_session=servers.open_session
            ),
            engines={MODEL: engine},
            default_profile=MODEL,
            price_of=lambda _: PRICE,
            folders=folders,
            push=PushParts(service=CheckedPushService(allow=[]), crypto=web_push),
            limits=Limits(yield_timeout=timedelta(milliseconds=200), max_tasks=60),
        )
        #: Runs that go on to the end of the story and beyond.
        self._hanging = 0
        self.me = UserId("")
        #: The conversations of the stories, by name.
        self.places: dict[str, ConversationId] = {}
        self.connections: dict[str, ConnectionId] = {}

    # ---- People ---------------------------------------------------------------------------------

    async def move_in(self, login: str, name: str, role: Role = Role.MEMBER) -> UserId:
        user, _ = await users.add(self.deps, actor=OPERATOR, login=login, name=name, role=role)
        self._known.add(user.id)
        return user.id

    # ---- Time -----------------------------------------------------------------------------------

    async def until(self, then: datetime) -> None:
        """Go on to some time, and let what is due on the way run at its time."""
        while (due := self._next_due()) is not None and due <= then:
            self.clock.advance(due - self.clock.now)
            await self.work()
        # Runs take time, so it may be later already.
        self.clock.advance(max(then - self.clock.now, timedelta()))

    async def tell_all(self, *books: ModuleType) -> None:
        """Tell the stories of some modules, in their order of time."""
        told = [one for book in books for one in vars(book).values() if isinstance(one, Story)]
        for story in sorted(told, key=lambda story: story.ago, reverse=True):
            await self.until(NOW - story.ago)
            await story.tell(self)
            await self.work()
        await self.until(NOW)

    def _next_due(self) -> datetime | None:
        all_work = tables.conversations.c
        soonest = select(func.min(all_work.next_run_at))
        soonest = soonest.where(all_work.next_run_at > self.clock.now)
        due: datetime | None = self.database.run(lambda tx: tx.connection.execute(soonest).scalar())
        return due

    # ---- What happens ---------------------------------------------------------------------------

    def plays(self, conversation: ConversationId, *acts: Sequence[Act] | Script) -> None:
        """Tell the agent what to do in the next runs of a conversation."""
        self._plays.setdefault(conversation, deque()).extend(acts)

    async def begin(self, name: str, title: str, text: str, *reply: Act) -> ConversationId:
        """Begin a chat, and let the agent reply."""
        made = await chat.start(self.deps, self.me, NewChat(text=text))
        self.plays(made.id, reply)
        await self.work()
        await conversations.update(self.deps, self.me, made.id, Changes(title=title))
        self.places[name] = made.id
        return made.id

    async def tell(self, conversation: ConversationId, text: str, *reply: Act) -> None:
        self.plays(conversation, reply)
        await chat.send(self.deps, self.me, conversation, text)
        await self.work()

    async def idle(self) -> None:
        """Wait until nothing is under way but what goes on to the end."""
        async with asyncio.timeout(BOUND):
            while len(self._tasks) > self._hanging:
                await asyncio.wait(self._tasks, timeout=0.002, return_when=asyncio.FIRST_COMPLETED)

    async def schedule(self, conversation: ConversationId, when: str, prompt: str) -> None:
        await schedules.set_schedule(
            self.deps, self.me, conversation, Timing(phrase=when), prompt=prompt
        )

    async def set_task(
        self, name: str, title: str, prompt: str, when: str | None = None, **more: Any
    ) -> ConversationId:
        timing = Timing(phrase=when, kind=None if when else TaskKind.ONESHOT)
        new = NewTask(name=title, prompt=prompt, timing=timing, **more)
        report = await tasks.add(self.deps, Origin.by_user(self.me), new)
        self.places[name] = report.work.id
        return report.work.id

    async def look(self, conversation: ConversationId) -> None:
        """See the newest message."""
        await conversations.see(self.deps, self.me, conversation, None)

    def by_id(self, conversation: ConversationId) -> Conversation:
        return self.database.run(lambda tx: tx.conversations.load(self.me, conversation))

    # ---- The agent and its tools ----------------------------------------------------------------

    def _act(self, request: TurnRequest) -> Iterable[Step]:
        waiting = self._plays.get(request.conversation.id)
        acts = waiting.popleft() if waiting else (QUIET,)
        return self._pace(acts(request) if callable(acts) else acts)

    def _pace(self, acts: Iterable[Act]) -> Iterator[Step]:
        for act in acts:
            if isinstance(act, Pass):
                self.clock.advance(timedelta(seconds=act.seconds))
            else:
                self._hanging += isinstance(act, Wait)
                yield act

    def _offers(self, _user: UserId, _terms: CommandTerms) -> Sequence[Offer]:
        return [
            self._offer("run_command", grant_match=GrantMatch.COMMAND),
            self._offer("read_file", free=True),
            self._offer("write_file", free=True),
            self._offer("list_files", free=True),
            self._offer("fetch_url", free=True),
            self._offer("run_tests", free=True),
        ]

    def _offer(self, name: str, **policy: Any) -> Offer:
        async def run(arguments: Mapping[str, Any]) -> ToolResult:
            del arguments
            return self.give(name)

        tool = Tool(server=OWN_SERVER, name=name, definition="d", **policy)
        return Offer(
            tool=tool,
            description=name,
            parameters={"type": "object"},
            read_only=tool.free,
            run=run,
        )

    def give(self, name: str) -> ToolResult:
        seconds, text = self.results.get(name, (0.4, f"{name} is done."))
        self.clock.advance(timedelta(seconds=seconds))
        return ToolResult(text, failed=text.startswith("Failed"))
