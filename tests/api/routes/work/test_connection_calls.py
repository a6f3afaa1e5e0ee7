"""`/api/connections/calls`: what agents did on connections, for their owner only."""

from collections.abc import Callable

import pytest
from support.doubles.engine import Call, End
from support.doubles.tool_servers import FakeServers
from support.stage.api_stage import Asker
from support.stage.make import USER
from support.stage.stage import Stage

from backburner.tools.toolbox import Toolbox

PATH = "/api/connections/calls"
DONE = End({"complete": True})


@pytest.fixture
def servers() -> FakeServers:
    return FakeServers()


@pytest.fixture
def stage(set_up: Callable[..., Stage], servers: FakeServers) -> Stage:
    return set_up(toolbox=lambda deps: Toolbox(deps, open_session=servers.open_session))


async def test_the_owner_sees_the_calls_of_their_agents(
    ask: Asker, mate: Asker, stage: Stage, servers: FakeServers
) -> None:
    mail, news = servers.add(stage, user=USER), servers.add(stage, "news")
    stage.engine.then(Call("search", {"words": "a secret"}), Call("search"), DONE)
    await stage.task(connections=("mail",))
    await stage.work()
    stage.engine.then(Call("search"), DONE)
    await stage.task(connections=("news",))
    await stage.work()

    found = (await ask.get(PATH))["items"]
    assert [call["server"] for call in found] == ["news", "mail", "mail"]
    assert {call["outcome"] for call in found} == {"done"}
    assert "secret" not in str(found)
    first = await ask.get(PATH, limit=1)
    rest = await ask.get(PATH, cursor=first["next"])
    assert first["items"] + rest["items"] == found
    assert (await ask.get(PATH, connection=mail.id))["items"] == found[1:]
    assert (await ask.get(PATH, connection=news.id))["items"] == found[:1]
    assert (await mate.get(PATH))["items"] == []
    assert (await mate.get(PATH, connection=mail.id))["items"] == []


async def test_the_calls_of_a_day_are_counted(
    ask: Asker, stage: Stage, servers: FakeServers
) -> None:
    mail = servers.add(stage, user=USER)
    path = f"/api/connections/{mail.id}/health"
    before = await ask.get(path)
    stage.engine.then(Call("search"), Call("search"), DONE)
    await stage.task(connections=("mail",))
    await stage.work()

    day = await ask.get(path)

    assert (before["calls"], before["average_seconds"]) == (0, None)
    assert (day["calls"], day["failed"], day["average_seconds"]) == (2, 0, 0.0)
    assert [slot["calls"] for slot in day["slots"]] == [0] * 47 + [2]
