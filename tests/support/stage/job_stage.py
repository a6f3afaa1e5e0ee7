"""A stage with the agent's real toolbox on each database, and an agent whose jobs say what they do.

The prompt of a job is a word and the rest: `say`, `find`, `look`, `ask`, `fail`, `hang`.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import select, update

from backburner.actions.origin import Origin
from backburner.actions.work import jobs
from backburner.actions.work.jobs import JobRequest
from backburner.bus.local import LocalBus
from backburner.core.conversation import Conversation, Kind
from backburner.core.errors import EngineFailed
from backburner.core.ids import ConversationId
from backburner.core.run import RunStatus
from backburner.core.work.jobs import is_settled
from backburner.core.work.views import JobView
from backburner.ports import TurnRequest
from backburner.store import tables
from backburner.store.db import Database
from backburner.tools.toolbox import Toolbox
from support.doubles.engine import Call, End, Fail, Say, Script, ScriptedEngine, Step, Wait
from support.stage.stage import BOUND, Stage

ASKS = {
    "needs_input": True,
    "message": "I cannot go on.",
    "question": {"type": "input", "prompt": "Which one?"},
}


@pytest.fixture
def house(either: Database) -> "House":
    return House(either)


class House(Stage):
    """`chats` is what the agent does in conversations that are no jobs, turn by turn."""

    def __init__(self, database: Database, **more: Any) -> None:
        engine = ScriptedEngine(otherwise=self._act)
        self.bus = LocalBus()
        super().__init__(database, self.bus, engine, toolbox=Toolbox, **more)
        self.chats = deque[Script]()
        #: Set once a job that looks around has done so.
        self.looked = asyncio.Event()
        self._aside: asyncio.Task[None] | None = None

    def _act(self, request: TurnRequest) -> Iterable[Step]:
        if request.conversation.kind is not Kind.JOB:
            return self.chats.popleft()(request) if self.chats else [Say("I see.")]
        said = [item.content["text"] for item in request.items if "text" in item.content]
        wanted = str([request.conversation.state.context["prompt"], *said][-1])
        return self._look_around() if wanted.startswith("look") else _do(wanted)

    def _look_around(self) -> Iterable[Step]:
        yield Call("list_work")
        yield Call("background_list")
        self.looked.set()
        yield Wait()

    async def start(self, chat: Conversation, *prompts: str, **more: Any) -> list[ConversationId]:
        """Hand out jobs from outside."""
        wishes = [JobRequest(description=prompt[:60], prompt=prompt) for prompt in prompts]
        return [job.id for job in await jobs.start(self.deps, outside(chat), wishes, **more)]

    async def job(self, chat: Conversation, which: str) -> JobView:
        (found,) = (await jobs.list_jobs(self.deps, outside(chat), ids=[which])).jobs
        return found

    async def ask(self, chat: Conversation, script: Script, *, said: str = "Please.") -> None:
        """Say something, to which the agent does this."""
        self.chats.append(script)
        await self.say(chat, said)
        await self.work()

    async def take_one(self) -> None:
        """Let the worker take up one run, and nothing that this one hands out."""
        usual, self.claiming.batch = self.claiming.batch, 1
        await self.claiming.run_once()
        self.claiming.batch = usual

    async def until(self, truth: Callable[[], bool]) -> None:
        """Wait until something is so."""
        with self.bus.listen() as hints:
            async with asyncio.timeout(BOUND):
                while not truth():
                    await hints.take()

    async def until_settled(self, chat: Conversation, which: str) -> JobView:
        user, job = chat.user_id, ConversationId(which)
        await self.until(
            lambda: is_settled(self.database.run(lambda tx: tx.conversations.load(user, job)))
        )
        return await self.job(chat, which)

    def once_settled(self, chat: Conversation, which: str) -> asyncio.Event:
        """Give what is set once a job has been taken up and has settled."""
        done = asyncio.Event()

        async def wait() -> None:
            await self.take_up()
            await self.until_settled(chat, which)
            done.set()

        self._aside = asyncio.create_task(wait())
        return done

    def prompts(self, chat: Conversation) -> list[str]:
        """Tell what the agent was asked in a conversation."""
        return [one.prompt for one in self.engine.requests if one.conversation.id == chat.id]

    def results(self) -> list[str]:
        return [result.text for result in self.engine.results]

    def waiting(self) -> list[str]:
        """Tell which kinds of runs have been handed back."""
        queued = select(tables.runs.c.kind).where(tables.runs.c.status == RunStatus.QUEUED.value)
        return list(self.database.run(lambda tx: tx.connection.execute(queued).scalars()))

    def let_time_pass(self) -> None:
        """Let the time of all that waits until a time have come, whoever's clock counts."""
        past = datetime(2020, 1, 1).astimezone()
        waits = tables.runs.c.wait_until.is_not(None)
        self.database.run(
            lambda tx: tx.connection.execute(
                update(tables.runs).where(waits).values(wait_until=past)
            )
        )

    def lose_turns(self) -> None:
        """Let every lease have run out."""
        held = tables.conversations.c.turn_run.is_not(None)
        self.database.run(
            lambda tx: tx.connection.execute(
                update(tables.conversations).where(held).values(turn_until=tx.tick - 1)
            )
        )

    def items(self, chat: Conversation) -> Sequence[dict[str, Any]]:
        """Read what was put into an inbox, and whether it was served."""
        found = select(tables.inbox).where(tables.inbox.c.conversation_id == chat.id)
        rows = self.database.run(lambda tx: tx.connection.execute(found).mappings().all())
        return [{**row, "content": json.loads(row["content"])} for row in rows]


def outside(chat: Conversation) -> Origin:
    return Origin(chat.user_id, chat.id)


def started(results: Sequence[str]) -> list[str]:
    """Find the ids of jobs in what background_task gave."""
    return [text.split()[1] for text in results if text.startswith("Started ")]


def hand_out(*prompts: str) -> list[Call]:
    return [Call("background_task", {"description": one, "prompt": one}) for one in prompts]


def _do(prompt: str) -> Iterable[Step]:
    word, _, rest = prompt.partition(" ")
    match word:
        case "say":
            return [End({"complete": True, "message": rest})]
        case "find":
            return [End({"complete": True, "message": f"Found {rest}.", "result": {"it": rest}})]
        case "ask":
            return [End(ASKS)]
        case "fail":
            return [Fail(EngineFailed(rest, permanent=True))]
        case "hang":
            return [Wait()]
        case _:
            return [End({"complete": True})]
