"""Work that comes back every minute, on a stage whose engine asks a stand-in for a model.

In each run the model looks at something long, and adds one to what it finds counted in its state.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from backburner.actions.deps import Limits
from backburner.bus.local import LocalBus
from backburner.core.conversation import Conversation
from backburner.core.schedule import Interval
from backburner.core.work.summary import PARTS
from backburner.ports import Engine
from backburner.store.db import Database
from backburner.store.dialect import make_engine
from backburner.store.tables import metadata
from support.doubles.clock import SetClock
from support.model_api import CallTool, GiveOutcome, ModelApi, ModelRequest, Reply, Say
from support.stage.stage import Stage

MINUTE = timedelta(minutes=1)
SEEN = "Nothing new was seen. " * 100
#: A state as it stands in a prompt, which is JSON within JSON.
COUNTED = re.compile(rb'\{\\"count\\": ?(\d+)\}')


@contextmanager
def work_stage(engine: Engine, folder: Path, clock: SetClock, *, context: int) -> Iterator[Stage]:
    """Give a stage where sessions of work are begun anew once they are longer than `context`."""
    tables = make_engine(f"sqlite:///{folder / 'backburner.sqlite3'}")
    metadata.create_all(tables)
    limits = Limits(background_context=context, stop_timeout=timedelta(seconds=5))
    agent: Any = engine
    with closing(Database(tables, clock)) as database:
        stage = Stage(database, LocalBus(), agent, limits=limits)
        stage.tools.handlers["look"] = _see
        yield stage


@dataclass
class SteadyWork:
    stage: Stage
    api: ModelApi
    clock: SetClock
    #: The bytes of the largest request in each run.
    sizes: list[int] = field(default_factory=list)
    #: The sessions it was done in.
    sessions: set[str] = field(default_factory=set)

    async def run(self, count: int) -> Conversation:
        task = await self.stage.task(Interval(MINUTE, anchor=self.clock.now + MINUTE))
        for _ in range(count):
            await self.run_once(task)
        return task

    async def run_once(self, task: Conversation) -> None:
        before = len(self.api.requests)
        self.clock.advance(MINUTE)
        await self.stage.work()
        self.sizes.append(max(heard.size for heard in self.api.requests[before:]))
        session = self.stage.load(task).session
        self.sessions |= {session.id} if session else set()

    @property
    def growth(self) -> float:
        """How much larger the largest request of the second half is than that of the first."""
        half = len(self.sizes) // 2
        return max(self.sizes[half:]) / max(self.sizes[:half])


def look_and_count(heard: ModelRequest) -> Reply:
    """Look first; once there is a result, give an outcome that counts one more run."""
    if not heard.wants_outcome:
        return [Say("Hello.")]
    if b"This session has become too long" in heard.raw:
        return [GiveOutcome(dict.fromkeys(PARTS, "Count the runs."))]
    if not _has_looked(heard.body["messages"]):
        return [CallTool("look")]
    return [GiveOutcome({"complete": True, "state_update": {"count": counted(heard) + 1}})]


def counted(heard: ModelRequest) -> int:
    """Read the newest state that a request holds."""
    found = COUNTED.findall(heard.raw)
    return int(found[-1]) if found else 0


async def _see(arguments: Mapping[str, Any]) -> str:
    del arguments
    return SEEN


def _has_looked(messages: list[dict[str, Any]]) -> bool:
    last = messages[-1]
    blocks = last["content"] if isinstance(last.get("content"), list) else ()
    return last["role"] == "tool" or any(one.get("type") == "tool_result" for one in blocks)
