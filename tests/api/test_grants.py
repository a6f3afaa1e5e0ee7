"""`/api/grants`: what was allowed for good can be seen and taken back."""

from datetime import timedelta

from api_stage import Asker
from requirements import requirement

from backburner.core.policy import ALWAYS
from backburner.core.question import Purpose
from backburner.core.schedule import Interval
from backburner.testing.clock import SetClock
from backburner.testing.engine import Call
from backburner.testing.make import NOON
from backburner.testing.stage import Stage

HOUR = timedelta(hours=1)


@requirement("Z-grants", "A-api")
async def test_a_lasting_grant_is_seen_and_taken_back(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    for _ in range(3):
        stage.engine.then(Call("send", {"to": "Ann"}))
    task = await stage.task(Interval(HOUR, anchor=NOON))
    await stage.work()
    await stage.answer(task, ALWAYS)
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
