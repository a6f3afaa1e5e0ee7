"""Everything but the outside: actions and chores on a real database, with a scripted agent.

Nothing happens by itself: `work` lets the worker take up what there is, and waits until it is done.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from backburner.actions import chat, discovery, questions
from backburner.actions.deps import Deps, Limits
from backburner.core.conversation import Conversation, Message
from backburner.core.ids import ConversationId, UserId
from backburner.core.passwords import HashCost
from backburner.core.question import Question
from backburner.core.run import Run
from backburner.core.schedule import Immediate, Schedule
from backburner.core.transitions import Brief
from backburner.live.drafts import Broadcast
from backburner.ports import Bus, Claimer, Toolbox
from backburner.store import tables
from backburner.store.db import Database
from backburner.worker.active_runs import ActiveRun, ActiveRuns
from backburner.worker.claiming import Claiming
from backburner.worker.known_outages import KnownOutages
from backburner.worker.lease import Leases
from backburner.worker.notice_deliverer import Deliverer
from backburner.worker.outage_attempts import OutageAttempts
from backburner.worker.outage_reporter import OutageReporter
from backburner.worker.question_reminder import Reminder
from backburner.worker.rescuer import Rescuer
from backburner.worker.seats import Seats
from support.doubles.channel import RecordingChannel
from support.doubles.engine import ScriptedEngine
from support.doubles.tools import TestTools
from support.people.users import add_user
from support.stage.make import USER
from support.stage.vaults import ONE, given
from support.stage.work import start_work

LEASE = timedelta(seconds=30)
PLACE = "outside"
#: Enough for tests that are not about how long a guess takes.
QUICK = HashCost(rounds=1, memory_kib=8)
#: How long anything may take, in seconds; only what is broken takes as long.
BOUND = 20


class Stage:
    """`more` is whatever else the actions work with; `toolbox` makes their tools of all the rest.

    Without them the scripted agent works with `TestTools`.
    """

    def __init__(
        self,
        database: Database,
        bus: Bus,
        engine: ScriptedEngine,
        *,
        seats: Seats | None = None,
        toolbox: Callable[[Deps], Toolbox] | None = None,
        **more: Any,
    ) -> None:
        database.bus = bus
        self.database = database
        self.engine = engine
        self.tools = TestTools()
        self.channel = RecordingChannel()
        deps = self._make_deps(bus, more)
        self.deps = deps if toolbox is None else replace(deps, toolbox=toolbox(deps))
        self.underway = ActiveRuns()
        self._tasks = set[asyncio.Task[None]]()
        self._taken_up = 0
        self.claiming = self._make_claiming(seats or Seats(total=20))
        self.leases = Leases(self.deps, LEASE, self.underway)
        self.rescuer = Rescuer(self.deps)
        self.deliverer = Deliverer(self.deps, concurrency=1)
        self.reminder = Reminder(self.deps)
        self.outage_reporter = OutageReporter(self.deps)
        self.outage_attempts = OutageAttempts(self.deps, self.underway)
        self._known: set[UserId] = set()

    def _make_deps(self, bus: Bus, more: dict[str, Any]) -> Deps:
        vault = given(ONE)
        usual: dict[str, Any] = {
            "vault": vault,
            "vault_keys": vault,
            "engines": {"scripted": self.engine},
            "default_profile": "scripted",
            "channels": {PLACE: self.channel},
            "limits": Limits(
                yield_timeout=timedelta(milliseconds=200), stop_timeout=timedelta(seconds=2)
            ),
            "password_cost": QUICK,
        }
        return Deps(
            store=self.database, bus=bus, toolbox=self.tools, drafts=Broadcast(), **(usual | more)
        )

    def _make_claiming(self, seats: Seats) -> Claiming:
        claimer = Claimer(
            worker="stage",
            lease=LEASE,
            per_user_limit=20,
            discovery_quiet_period=self.deps.discovery.required_idle,
            default_profile=self.deps.default_profile,
            machine=self.deps.folders.machine,
            shares_folders=self.deps.folders.is_shared,
        )
        return Claiming(
            self.deps,
            claimer,
            seats,
            20,
            self.underway,
            spawn=self._spawn,
            # By the clock of the stage, and at once when an outage is over.
            outages=KnownOutages(self._seconds, lambda soonest, _latest: soonest),
        )

    def user(self, user: UserId = USER) -> UserId:
        if user not in self._known:
            self._known.add(user)
            self.database.run(lambda tx: add_user(tx, user))
        return user

    def switch_discovery(self, user: UserId = USER, *, on: bool) -> None:
        self.database.run(lambda tx: discovery.switch(self.deps, tx, user, on=on))

    async def chat(self, user: UserId = USER) -> Conversation:
        return await chat.start(self.deps, self.user(user))

    async def say(self, conversation: Conversation, text: str) -> None:
        await chat.send(self.deps, conversation.user_id, conversation.id, text)

    async def task(
        self, schedule: Schedule | None = None, *, user: UserId = USER, **brief: Any
    ) -> Conversation:
        self.user(user)
        what = Brief(title="Work", prompt="Do it.", schedule=schedule or Immediate())
        return await start_work(self.deps, user, replace(what, **brief))

    async def answer(self, conversation: Conversation, text: str) -> None:
        question = self.question(conversation)
        await questions.answer(self.deps, conversation.user_id, question.id, text)

    async def take_up(self) -> None:
        """Let the worker take up what there is, and do not wait for it."""
        await self.claiming.run_once()

    async def work(self) -> None:
        """Let the worker take up what there is, until nothing is left."""
        taken_up = -1
        while taken_up != self._taken_up:
            taken_up = self._taken_up
            await self.claiming.run_once()
            await self.idle()

    async def idle(self) -> None:
        """Wait until nothing is under way."""
        async with asyncio.timeout(BOUND):
            while self._tasks:
                await asyncio.wait(self._tasks)

    async def renew(self) -> None:
        await self.leases.run_once()
        await self.outage_attempts.run_once()

    def only_run(self) -> ActiveRun:
        (run,) = self.underway
        return run

    def kill(self) -> None:
        """Let this process vanish: whatever is under way is never heard of again."""
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()
        self.underway = self.claiming.underway = self.leases.active_runs = ActiveRuns()
        self.outage_attempts.active_runs = self.underway

    def load(self, conversation: Conversation) -> Conversation:
        user, which = conversation.user_id, conversation.id
        return self.database.run(lambda tx: tx.conversations.load(user, which))

    def question(self, conversation: Conversation) -> Question:
        return self.load(conversation).questions[0]

    def messages(self, conversation: Conversation) -> Sequence[Message]:
        user, which = conversation.user_id, conversation.id
        return self.database.run(lambda tx: tx.messages.recent(user, which, limit=100))

    def said(self, conversation: Conversation) -> list[str]:
        return [message.content for message in self.messages(conversation)]

    def history(self, conversation: Conversation) -> Sequence[Run]:
        """Read all runs, newest first."""
        user, which = conversation.user_id, conversation.id
        return self.database.run(lambda tx: tx.runs.history(user, which, limit=100))

    def notices(self) -> list[str]:
        rows = self.database.run(
            lambda tx: tx.connection.execute(
                tables.notices.select().order_by(tables.notices.c.number)
            ).all()
        )
        return [row.text for row in rows]

    def _seconds(self) -> float:
        return self.database.clock()[1] / 10**6

    def _spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        self._taken_up += 1
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def prompts(engine: ScriptedEngine, conversation_id: ConversationId) -> list[str]:
    """Tell what the agent was asked in a conversation."""
    return [
        request.prompt for request in engine.requests if request.conversation.id == conversation_id
    ]
