"""What nobody knows is asked about, and only that: a call is not tried again before the answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

import pytest
from support.doubles.engine import Call, End
from support.doubles.tool_servers import FakeServers, say_done, tool
from support.stage.make import USER
from support.stage.stage import Stage

from backburner.core.connections.call import CallOutcome
from backburner.core.connections.connection import Ticks
from backburner.core.connections.inputs.input_request import (
    InputField,
    InputNeeded,
    InputRequest,
)
from backburner.core.errors import BadRequest, CallInDoubt, StoreFailed
from backburner.core.question import Purpose
from backburner.core.run import FailureKind, RunStatus
from backburner.core.tool_policy import ALWAYS_HERE
from backburner.ports import Store, ToolResult, Tx
from backburner.tools.toolbox import Toolbox

T = TypeVar("T")
SEND, ODD = Call("send", {"words": "Hi"}), Call("odd", {"words": "tea"})
SEARCH, DONE = Call("search", {"words": "tea"}), End({"complete": True, "message": "Done."})


@dataclass
class BrokenStore:
    """Refuses what it is told to refuse, once."""

    store: Store
    #: The name of a function that a transaction is made of.
    refuses: str
    refused: list[str] = field(default_factory=list)

    async def transact(self, work: Callable[[Tx], T], **limits: Any) -> T:
        made_by = f"{work.__module__} {work.__qualname__}"
        if self.refuses in made_by and not self.refused:
            self.refused.append(made_by)
            raise StoreFailed("The database is broken.", permanent=True)
        return await self.store.transact(work, **limits)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


def break_store(stage: Stage, refuses: str) -> BrokenStore:
    broken = BrokenStore(stage.deps.store, refuses)
    stage.claiming.deps = replace(stage.claiming.deps, store=cast("Store", broken))
    return broken


def sent(servers: FakeServers) -> int:
    return [name for name, _ in servers["mail"].calls].count("send")


async def send_freely(stage: Stage, servers: FakeServers) -> Any:
    """Let a task ask whether it may send, and allow it for good."""
    servers.add(stage)
    stage.engine.then(SEND)
    task = await stage.task(connections=("mail",))
    await stage.work()
    await stage.answer(task, ALWAYS_HERE)
    return task


async def test_a_call_that_confuses_us_may_have_been_made(
    connected: Stage, servers: FakeServers
) -> None:
    task = await send_freely(connected, servers)

    def confuse(_name: str, _arguments: Mapping[str, Any]) -> ToolResult:
        raise KeyError("surprise")

    servers["mail"].handler = confuse
    connected.engine.then(SEND, SEND, DONE)
    await connected.work()

    assert sent(servers) == 1
    assert connected.question(task).purpose is Purpose.IN_DOUBT
    told = connected.engine.results[-1].text
    assert told.startswith("Something unexpected went wrong in a call of mail/send.")
    assert "surprise" not in told


async def test_a_call_that_only_reads_is_not_in_doubt_because_it_confuses_us(
    connected: Stage, servers: FakeServers
) -> None:
    servers.add(connected)

    def confuse(_name: str, _arguments: Mapping[str, Any]) -> ToolResult:
        raise KeyError("surprise")

    servers["mail"].handler = confuse
    connected.engine.then(SEARCH, DONE)
    task = await connected.task(connections=("mail",))
    await connected.work()

    assert connected.load(task).questions == ()
    assert "search failed" in connected.engine.results[-1].text


async def test_what_was_refused_before_it_was_made_is_not_in_doubt(
    connected: Stage, servers: FakeServers
) -> None:
    task = await send_freely(connected, servers)

    def refuse(_name: str, _arguments: Mapping[str, Any]) -> ToolResult:
        raise BadRequest("There is no such folder.")

    servers["mail"].handler = refuse
    connected.engine.then(SEND, DONE)
    await connected.work()

    assert connected.load(task).questions == ()


async def test_a_call_whose_result_cannot_be_recorded_is_not_tried_again(
    connected: Stage, servers: FakeServers
) -> None:
    task = await send_freely(connected, servers)
    broken = break_store(connected, "CallEnds.record")
    tries = list[Call]()

    async def insist(gate: Any, offers: Any, step: Any) -> list[ToolResult]:
        # An engine tells its model of an error, and the model tries again.
        tries.append(step)
        try:
            return [await gate.call(offers[step.tool], step.arguments)]
        except StoreFailed:
            return [ToolResult("It did not work.", failed=True)]

    connected.engine._call = insist  # type: ignore[method-assign]
    connected.engine.then(SEND, SEND, DONE)
    await connected.work()

    assert broken.refused
    assert len(tries) == 2
    assert sent(servers) == 1
    assert connected.question(task).purpose is Purpose.IN_DOUBT


async def test_work_is_done_although_the_end_of_a_call_that_only_reads_was_not_recorded(
    connected: Stage, servers: FakeServers, capsys: pytest.CaptureFixture[str]
) -> None:
    servers.add(connected)
    broken = break_store(connected, "CallEnds._record_together")
    connected.engine.then(SEARCH, DONE)
    task = await connected.task(connections=("mail",))
    await connected.work()

    assert broken.refused
    (run,) = connected.history(task)
    assert (run.status, run.failure) == (RunStatus.SUCCESS, None)
    (call,) = connected.database.run(lambda tx: tx.connection_calls.page(USER, limit=9))
    assert call.outcome is CallOutcome.UNKNOWN
    assert "run.agent_failed" not in capsys.readouterr().out


async def test_a_call_that_was_made_stays_made_if_the_answer_to_its_server_is_not_forgotten(
    connected: Stage, servers: FakeServers
) -> None:
    task = await send_freely(connected, servers)
    who = InputRequest(key="k", message="Whom?", fields=(InputField(name="to", required=True),))

    def ask(name: str, arguments: Mapping[str, Any]) -> ToolResult | InputNeeded:
        answered = servers["mail"].answers
        return say_done(name, arguments) if answered else InputNeeded(requests=(who,))

    servers["mail"].handler = ask
    connected.engine.then(SEND)
    await connected.work()
    await connected.answer(task, "bob")
    broken = break_store(connected, "RunConnections._forget")
    toolbox = cast("Toolbox", connected.deps.toolbox)
    toolbox.deps = connected.claiming.deps
    connected.engine.then(SEND, DONE)
    await connected.work()

    assert broken.refused
    assert connected.engine.results[-1].text == "send is done."


@pytest.mark.parametrize("ticks", [Ticks(read_only=True), Ticks(read_only=True, repeatable=False)])
async def test_doubt_about_a_call_that_only_reads_leaves_no_work_waiting_for_nobody(
    connected: Stage,
    servers: FakeServers,
    ticks: Ticks,
) -> None:
    servers.add(connected, tools=[tool("odd", ticks=ticks)])

    def lose(_name: str, _arguments: Mapping[str, Any]) -> ToolResult:
        raise CallInDoubt("The answer was lost.")

    servers["mail"].handler = lose
    connected.engine.then(ODD, DONE)
    task = await connected.task(connections=("mail",))
    await connected.work()

    question = connected.question(task)
    assert question.purpose is Purpose.FAILURE
    (run,) = connected.history(task)
    assert run.failure is not None
    assert run.failure.kind is FailureKind.TOOL
