"""Streams of replies that wait for their user: they end with the question, however it was asked."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import Call, Say, Spend
from support.doubles.tool_servers import FakeServers
from support.people.tokens import issue_token
from support.servers.live import Told, following, serving
from support.stage.stage import LEASE, Stage
from support.stage.stages import clock, database, set_up
from support.stage.until import until

from backburner.api.app import build_api
from backburner.core.accounts import Scope
from backburner.core.allowance import Allowance, AllowanceScope
from backburner.core.connections.inputs.input_request import InputField, InputNeeded, InputRequest
from backburner.core.conversation import Conversation
from backburner.core.errors import CallInDoubt, SignedOut
from backburner.core.tool_policy import ALWAYS_HERE
from backburner.ports import ToolResult
from backburner.tools.toolbox import Toolbox

__all__ = ["clock", "database", "set_up"]

SEARCH, SEND = Call("search", {"words": "tea"}), Call("send", {"words": "Hi"})
WHO = InputRequest(key="who", message="Who?", fields=(InputField(name="address"),))


@pytest.fixture
def servers() -> FakeServers:
    return FakeServers()


@pytest.fixture
def stage(set_up: Callable[..., Stage], servers: FakeServers) -> Stage:
    stage = set_up(toolbox=lambda deps: Toolbox(deps, open_session=servers.open_session))
    servers.add(stage)
    return stage


def refuse(_name: str, _arguments: Mapping[str, Any]) -> ToolResult:
    raise SignedOut("Mail does not accept the token any more.")


def lose(_name: str, _arguments: Mapping[str, Any]) -> ToolResult:
    raise CallInDoubt("The answer was lost.")


def ask(_name: str, _arguments: Mapping[str, Any]) -> InputNeeded:
    return InputNeeded(requests=(WHO,), state="state")


async def say(stage: Stage, here: Conversation, text: str) -> Told:
    """Send a message, let the worker answer it, and give what ends the stream."""
    async with sent(stage, here, text) as end:
        await stage.work()
        return await end()


@asynccontextmanager
async def sent(
    stage: Stage, here: Conversation, text: str
) -> AsyncIterator[Callable[[], Awaitable[Told]]]:
    api = build_api(stage.deps, hosts={"127.0.0.1"}, checks={})
    path = f"/api/conversations/{here.id}/messages"
    token = await issue_token(stage.deps, stage.user(), list(Scope), name="Test")
    async with (
        serving(api) as address,
        httpx2.AsyncClient(base_url=address) as client,
        following(client, token, method="POST", path=path, json={"content": text}) as stream,
    ):
        await stream.next("message")
        yield lambda: stream.next("done", "error")


def purposes(end: Told) -> list[str]:
    return [question["purpose"] for question in end.data["questions"]]


async def test_a_reply_that_waits_for_a_sign_in_ends_with_the_question(
    stage: Stage, servers: FakeServers
) -> None:
    servers["mail"].handler = refuse
    stage.engine.then(Say("I look."), SEARCH)
    here = await stage.chat()

    end = await say(stage, here, "Any mail?")

    assert (end.name, end.data["status"], purposes(end)) == ("done", "queued", ["reconnect"])
    assert [one["content"] for one in end.data["messages"]] == ["I look."]


async def test_a_sign_in_that_was_asked_for_elsewhere_is_shown_with_its_question(
    stage: Stage, servers: FakeServers
) -> None:
    servers["mail"].handler = refuse
    stage.engine.then(SEARCH)
    task = await stage.task(connections=("mail",))
    await stage.work()
    stage.engine.then(SEARCH)

    end = await say(stage, await stage.chat(), "Any mail?")

    (message,), (question,) = end.data["messages"], end.data["questions"]
    assert "This waits until you reconnect Mail" in message["content"]
    assert (question["purpose"], question["conversation_id"]) == ("reconnect", task.id)


async def test_a_reply_that_waits_again_shows_the_question_it_asked_before(
    stage: Stage, servers: FakeServers
) -> None:
    servers["mail"].handler = refuse
    stage.engine.then(SEARCH)
    stage.engine.then(SEARCH)
    here = await stage.chat()

    first = await say(stage, here, "Any mail?")
    second = await say(stage, here, "And now?")

    assert second.data["questions"] == first.data["questions"]
    assert "This waits until you reconnect Mail" in second.data["messages"][0]["content"]


@pytest.mark.parametrize(("handler", "purpose"), [(lose, "in_doubt"), (ask, "input")])
async def test_a_reply_that_waits_for_a_call_ends_with_its_question(
    stage: Stage, servers: FakeServers, handler: Any, purpose: str
) -> None:
    stage.engine.then(SEND)
    here = await stage.chat()
    await say(stage, here, "Send it.")
    stage.engine.then(SEND)
    await stage.answer(here, ALWAYS_HERE)
    await stage.work()
    servers["mail"].handler = handler
    stage.engine.then(Say("Once more."), SEND)

    end = await say(stage, here, "Send it again.")

    assert (end.name, end.data["status"], purposes(end)) == ("done", "queued", [purpose])


async def test_a_doubt_that_a_crash_left_is_shown_with_the_reply_after_it(
    stage: Stage, servers: FakeServers, clock: SetClock
) -> None:
    stage.engine.then(SEND)
    here = await stage.chat()
    await say(stage, here, "Send it.")
    stage.engine.then(SEND)
    await stage.answer(here, ALWAYS_HERE)
    await stage.work()
    servers["mail"].hangs = True
    count = len(servers["mail"].calls)
    stage.engine.then(SEND)
    stage.engine.then(Say("I do not know."))

    async with sent(stage, here, "Send it again.") as end:
        await stage.take_up()
        await until(lambda: len(servers["mail"].calls) > count)
        stage.kill()
        clock.advance(LEASE + timedelta(seconds=1))
        await stage.rescuer.run_once()
        await stage.work()
        done = await end()

    assert (done.data["status"], purposes(done)) == ("success", ["in_doubt"])


async def test_an_allowance_that_was_asked_about_elsewhere_is_shown_with_its_question(
    set_up: Callable[..., Stage],
) -> None:
    stage = set_up(allowances=(Allowance(AllowanceScope.USER, tokens=100),))
    stage.engine.then(Spend(120))
    first = await stage.chat()

    asked = await say(stage, first, "Hello?")
    other = await say(stage, await stage.chat(), "Hello?")

    assert (asked.name, purposes(asked)) == ("error", ["allowance"])
    assert other.name == "error"
    assert other.data["questions"] == asked.data["questions"]
