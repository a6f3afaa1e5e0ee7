"""Pages of runs, of what runs now, of spending and of absence, for their user and for others."""

import asyncio
import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import Call, End, Fail, Spend, Wait
from support.stage.api_stage import NOBODYS, Asker, ask, ask_as, client, mate
from support.stage.make import NOON
from support.stage.stage import Stage
from support.stage.stages import clock, database, set_up, stage
from support.stage.until import until

from backburner.core.conversation import Notify
from backburner.core.errors import EngineFailed
from backburner.core.schedule import Interval
from backburner.web.page_routes import add_pages

__all__ = ["ask", "ask_as", "client", "clock", "database", "mate", "set_up", "stage"]

HOUR = timedelta(hours=1)
EVERY_HOUR = Interval(HOUR, anchor=NOON)
HOSTILE = "<script>alert(1)</script>\u202e"
DONE = End({"complete": True, "message": f"All {HOSTILE} well."})


@pytest.fixture(autouse=True)
def pages(ask: Asker) -> None:
    add_pages(ask.api)


async def read(asker: Asker, path: str, **query: Any) -> str:
    answer = await asker("GET", f"/page{path}", params=query or None)
    assert answer.status_code == 200, answer.text
    assert "<script" not in answer.text
    assert "style=" not in answer.text
    return answer.text


def ids(html: str) -> list[str]:
    return re.findall(r' id="([^"]+)"', html)


def rows(html: str, prefix: str) -> list[str]:
    return re.findall(rf'<li class="[^"]*" id="({prefix}[^"]+)"', html)


def sources(html: str) -> list[str]:
    return [unescape(one) for one in re.findall(r'data-src="([^"]+)"', html)]


def attribute(html: str, name: str) -> str:
    """Read the first attribute of that name."""
    return unescape(html.partition(f'{name}="')[2].partition('"')[0])


async def test_the_page_of_a_run_opens_its_calls(ask: Asker, mate: Asker, stage: Stage) -> None:
    stage.engine.then(Spend(7), Call("look", {"at": HOSTILE}), Spend(5), DONE)
    task = await stage.task(EVERY_HOUR, title=HOSTILE, prompt=HOSTILE)
    await stage.work()
    (run,) = stage.history(task)

    html = await read(ask, f"/r/{run.id}")
    (call,) = (await ask.get(f"/api/runs/{run.id}"))["tool_calls"]
    opened = f"/r/{run.id}/call/{call['id']}"

    assert f'data-load="/page{opened}?in_row=true"' in html
    assert "&lt;script&gt;" in await read(ask, opened)
    assert "Steps" not in html
    assert await read(ask, f"/r/{run.id}/steps/0")
    for path in (f"/r/{run.id}", opened, f"/r/{run.id}/steps/0"):
        theirs = await mate("GET", f"/page{path}")
        nobodys = await mate("GET", f"/page{path.replace(run.id, f'r_{NOBODYS}')}")
        assert (theirs.status_code, theirs.json()) == (nobodys.status_code, nobodys.json())
        assert theirs.status_code == 404
    assert (await ask("GET", f"/page/r/{run.id}/call/t_{NOBODYS}")).status_code == 404
    assert (await ask("GET", f"/page/r/{run.id}/call/t_%00")).status_code == 404


async def test_lists_that_were_scrolled_are_shown_again_down_to_the_same_row(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    await stage.task(EVERY_HOUR, notify=Notify.ALWAYS)
    for number in range(52):
        stage.engine.then(End({"complete": True, "message": f"Number {number}."}))
        await stage.work()
        clock.advance(HOUR)
    first = await read(ask, "/running"), await read(ask, "/notices")
    stage.engine.then(End({"complete": True, "message": "Number 52."}))
    await stage.work()

    for html, row, kept in zip(first, ("recent-", "n_"), ("recent-", "notices-"), strict=True):
        (source,) = (one for one in sources(html) if "to=" in one)
        again = await read(ask, source.removeprefix("/page"))
        before, after = rows(html, row), rows(again, row)

        assert (len(before), len(after)) == (50, 51)
        assert after[1:] == before
        # Rows that were loaded after those are left as they are.
        (part,) = {one for one in ids(html) if one.startswith(kept)} - {*before}
        assert f'id="{part}" data-keep' in again
        assert source in sources(again)


async def test_what_runs_and_what_waits_is_listed_with_a_way_to_stop_it(
    ask: Asker, mate: Asker, stage: Stage
) -> None:
    go_on = asyncio.Event()
    stage.engine.then(Call("look"), Wait(go_on), DONE)
    task = await stage.task(EVERY_HOUR, title="Watch CI")
    stage.engine.then(Wait(go_on), End(text="Hello."))
    chat = await stage.chat()
    await stage.say(chat, "Hello?")
    await stage.take_up()
    await until(lambda: len(stage.engine.requests) == 2)

    html = await read(ask, "/running")

    assert "2 runs are at work." in html
    assert f'data-call="POST /api/conversations/{task.id}/cancel"' in html
    assert f'data-call="POST /api/conversations/{chat.id}/stop"' in html
    (run,) = stage.history(task)
    work = await read(ask, f"/r/{run.id}")
    assert f'data-call="POST /api/conversations/{task.id}/stop-run"' in work
    assert 'data-every="3"' in html
    assert "Watch CI" not in await read(mate, "/running")
    go_on.set()
    await stage.idle()
    ended = await read(ask, "/running")
    assert "Nothing runs now." in ended
    assert "data-every" not in ended
    assert ended.count('class="run-line"') == 2


async def test_failed_runs_are_filtered_and_more_are_on_the_next_page(
    ask: Asker, stage: Stage
) -> None:
    stage.engine.then(Fail(EngineFailed("Broken.")))
    await stage.task(EVERY_HOUR, title="Fails")
    await stage.work()
    chat = await stage.chat()
    for _ in range(60):
        await stage.say(chat, "Hello.")
        await stage.work()

    everything, failed = await read(ask, "/running"), await read(ask, "/running", which="failed")

    assert (everything.count('class="run-line"'), failed.count('class="run-line"')) == (50, 1)
    assert "Broken." in failed
    more = await read(ask, attribute(everything, "data-more").removeprefix("/page"))
    assert more.count('class="run-line"') == 11
    assert "data-more" not in more
    assert "No run has failed." not in failed
    assert (await ask("GET", "/page/running", params={"which": "odd"})).status_code == 422


async def test_the_summary_of_an_absence_stays_while_it_is_looked_at(
    ask: Asker, mate: Asker, stage: Stage, clock: SetClock
) -> None:
    clock.advance(HOUR)
    stage.engine.then(Spend(5), DONE)
    await stage.task(title="Watch CI")
    await stage.work()
    clock.advance(8 * HOUR)

    html = await read(ask, "/away")
    offer = await read(ask, "/away/offer", since=NOON.isoformat())
    source = attribute(html, "data-src").removeprefix("/page")
    await ask.do("POST", "/api/away/seen", {"until": attribute(html, "data-seen")})
    clock.advance(timedelta(minutes=1))

    assert "One conversation worked." in html
    assert "one run" in offer
    assert "Nothing happened." in await read(ask, "/away")
    assert "One conversation worked." in await read(ask, source)
    assert "One conversation worked." in await read(ask, "/away", period="day")
    assert (await read(ask, "/away/offer", since=NOON.isoformat())).strip() == ""
    assert "Watch CI" not in await read(mate, "/away", period="week")
    future = (NOON + 100 * HOUR).isoformat()
    assert (await ask("GET", "/page/away", params={"since": future})).status_code == 400


async def test_spending_is_the_users_own(ask: Asker, mate: Asker, stage: Stage) -> None:
    stage.engine.then(Spend(4_000), DONE)
    await stage.task(title="Watch CI")
    await stage.work()

    html = await read(ask, "/spending")

    assert "4k tokens" in html
    assert "Watch CI" in html
    assert "Nothing was spent yet." in await read(mate, "/spending")


async def test_work_is_counted_without_its_waits(ask: Asker, stage: Stage, clock: SetClock) -> None:
    go_on = asyncio.Event()
    stage.engine.then(Wait(go_on), DONE)
    await stage.task(title="Watch CI")
    await stage.take_up()
    await stage.engine.began.wait()
    clock.advance(timedelta(seconds=90))
    running = await ask.get("/api/away")
    go_on.set()
    await stage.idle()
    clock.advance(HOUR)

    ended = await ask.get("/api/away")
    later = await ask.get("/api/away", since=(NOON + timedelta(seconds=60)).isoformat())

    assert (running["worked_seconds"], ended["worked_seconds"]) == (90, 90)
    assert later["worked_seconds"] == 30
