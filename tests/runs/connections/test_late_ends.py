"""The end of a call that only reads is recorded while its agent goes on; that of others before."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

import pytest
from support.doubles.engine import Call
from support.doubles.tool_servers import TOOLS, FakeServers
from support.stage.make import USER
from support.stage.stage import Stage
from support.stage.until import until

from backburner.core.connections.call import CallOutcome
from backburner.core.errors import Fenced
from backburner.core.ids import GrantId
from backburner.core.run import RunStatus
from backburner.core.tool_policy import Grant
from backburner.ports import Store, ToolResult, Tx

T = TypeVar("T")
SEARCHES = [Call("search", {"words": f"{number}"}) for number in range(3)]


@dataclass
class SlowStore:
    """Records the ends of calls once it may."""

    store: Store
    events: list[str]
    may: asyncio.Event = field(default_factory=asyncio.Event)
    is_lost: bool = False

    async def transact(self, work: Callable[[Tx], T], *, single: bool = False, **limits: Any) -> T:
        if single:
            await self.may.wait()
            if self.is_lost:
                raise Fenced
        result = await self.store.transact(work, single=single, **limits)
        if single:
            self.events.append("recorded")
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


@pytest.fixture
def events() -> list[str]:
    return []


@pytest.fixture
def slow(connected: Stage, servers: FakeServers, events: list[str]) -> SlowStore:
    servers.add(connected)
    slow = SlowStore(connected.deps.store, events)
    connected.claiming.deps = replace(connected.claiming.deps, store=cast("Store", slow))

    def answer(name: str, arguments: Mapping[str, Any]) -> ToolResult:
        events.append(name)
        if events.count("search") == len(SEARCHES):
            slow.may.set()
        return ToolResult(f"found {arguments['words']}")

    servers["mail"].handler = answer
    return slow


async def test_an_agent_goes_on_while_the_end_of_a_call_that_only_reads_is_recorded(
    connected: Stage, slow: SlowStore, events: list[str]
) -> None:
    connected.engine.then(*SEARCHES)
    task = await connected.task(connections=("mail",))

    await connected.work()

    # Of the first call alone, if the others came late; but not each by itself.
    assert events[:3] == ["search"] * 3
    assert events[3:] in (["recorded"], ["recorded"] * 2)
    (run,) = connected.history(task)
    assert run.status is RunStatus.SUCCESS
    calls = connected.database.run(lambda tx: tx.connection_calls.page(USER, limit=9))
    assert [call.outcome for call in calls] == [CallOutcome.DONE] * 3
    assert slow.may.is_set()


async def test_a_run_whose_calls_could_not_be_recorded_by_its_holder_commits_nothing(
    connected: Stage, slow: SlowStore
) -> None:
    slow.is_lost = True
    connected.engine.then(*SEARCHES)
    task = await connected.task(connections=("mail",))

    await connected.work()

    (run,) = connected.history(task)
    assert run.status is RunStatus.RUNNING
    assert connected.said(task) == []


async def test_the_end_of_a_call_that_may_change_something_is_recorded_first(
    connected: Stage, slow: SlowStore, events: list[str]
) -> None:
    connected.engine.then(Call("send", {"words": "Hi"}), *SEARCHES[:1])
    task = await connected.task(connections=("mail",))
    (mail,) = connected.database.run(lambda tx: tx.connections.list(USER))
    (send,) = (one for one in TOOLS if one.name == "send")
    grant = Grant(
        id=GrantId("g_1"),
        server="mail",
        tool="send",
        definition=send.accepted,
        connection=mail.id,
    )
    connected.database.run(lambda tx: tx.grants.give(USER, task.id, [grant]))

    working = asyncio.create_task(connected.work())
    await until(lambda: events == ["send"])
    for _ in range(3):
        await slow.store.transact(lambda tx: tx.now)
    # The agent has no result yet.
    assert connected.engine.results == []
    slow.may.set()
    await working

    assert events == ["send", "recorded", "search", "recorded"]
