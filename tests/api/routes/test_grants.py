"""`/api/grants`: what was allowed for good can be seen and taken back."""

from datetime import timedelta

from support.doubles.clock import SetClock
from support.doubles.engine import Call
from support.requirements import requirement
from support.stage.api_stage import Asker
from support.stage.make import NOON
from support.stage.stage import Stage

from backburner.core.question import Purpose
from backburner.core.schedule import Interval
from backburner.core.tool_policy import ALWAYS_HERE

HOUR = timedelta(hours=1)


@requirement("Z-grants", "A-api")
async def test_a_lasting_grant_is_seen_and_taken_back(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    for _ in range(3):
        stage.engine.then(Call("send", {"to": "Ann"}))
    task = await stage.task(Interval(HOUR, anchor=NOON))
    await stage.work()
    await stage.answer(task, ALWAYS_HERE)
    await stage.work()
    assert stage.tools.count("send") == 1

    (grant,) = (await ask.get(f"/api/conversations/{task.id}/grants"))["items"]
    assert (grant["server"], grant["tool"], grant["lasting"]) == ("test", "send", True)
    assert grant["given_at"] == "2026-11-16T12:00:00Z"
    assert (await ask("DELETE", f"/api/grants/{grant['id']}")).status_code == 204

    assert (await ask.get(f"/api/conversations/{task.id}/grants"))["items"] == []
    clock.advance(HOUR)
    await stage.work()
    assert stage.tools.count("send") == 1
    assert stage.question(task).purpose is Purpose.APPROVAL
    assert (await ask("DELETE", f"/api/grants/{grant['id']}")).status_code == 404


@requirement("Z-grants")
async def test_a_lasting_grant_for_a_command_is_for_its_exact_line(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    task = await stage.task(Interval(HOUR, anchor=NOON))
    for command in ("curl a.org", "curl a.org", "curl a.org", "curl a.org/other"):
        stage.engine.then(Call("command", {"command": command}))
    await stage.work()
    await stage.answer(task, ALWAYS_HERE)
    await stage.work()
    (grant,) = (await ask.get("/api/grants"))["items"]
    assert grant["words"] == ["curl a.org"]
    clock.advance(HOUR)
    await stage.work()
    assert stage.tools.count("command") == 2

    clock.advance(HOUR)
    await stage.work()
    assert stage.tools.count("command") == 2
    assert stage.question(task).purpose is Purpose.APPROVAL


async def test_all_grants_are_listed_a_page_at_a_time(ask: Asker, stage: Stage) -> None:
    for number in range(3):
        task = await stage.task(Interval(HOUR, anchor=NOON))
        for _ in range(2):
            stage.engine.then(Call("send", {"to": f"Ann {number}"}))
        await stage.work()
        await stage.answer(task, ALWAYS_HERE)
        await stage.work()
    everything = (await ask.get("/api/grants"))["items"]
    assert len({grant["conversation_id"] for grant in everything}) == 3

    first = await ask.get("/api/grants", limit=2)
    rest = await ask.get("/api/grants", limit=2, cursor=first["next"])

    assert first["items"] + rest["items"] == everything
    assert rest["next"] is None
