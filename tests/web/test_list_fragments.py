"""The list of conversations as the page loads it: filters, pages, and what live rows ask for."""

import re
from asyncio import Event
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update
from support.doubles.clock import SetClock
from support.doubles.engine import End, Fail, Wait
from support.stage.api_stage import Asker
from support.stage.make import NOON
from support.stage.stage import Stage

from backburner.core.conversation import Conversation
from backburner.core.errors import EngineFailed
from backburner.core.schedule import Cron, Scheduled
from backburner.store import tables
from backburner.web.views.list_filter import ListFilter

PATH = "/api/conversations"
DAILY = Cron("0 9 * * *", "UTC")
EVIL = '"><script>alert(1)</script>{{ 7*7 }}'


async def show(ask: Asker, path: str, **params: Any) -> str:
    answer = await ask("GET", f"/page/{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.text


def ids(html: str) -> list[str]:
    return re.findall(r'id="row-(\w+)"', html)


def headings(html: str) -> list[str]:
    return re.findall(r'id="group-(\w+)"', html)


async def listed(ask: Asker, **params: Any) -> set[str]:
    return set(ids(await show(ask, "list", **params)))


async def put_into_all_states(ask: Asker, stage: Stage) -> dict[str, str]:
    """Make a conversation for each filter, and a chat with a job that asks."""
    failed = await stage.task(DAILY)
    for _ in range(2):
        stage.engine.then(Fail(EngineFailed("The disk is full.", permanent=True)))
        await ask.do("POST", f"{PATH}/{failed.id}/run-now")
        await stage.work()
    paused = await stage.task(DAILY)
    await ask.do("POST", f"{PATH}/{paused.id}/pause")
    scheduled = await stage.task(DAILY)
    archived = await stage.chat()
    await ask.do("POST", f"{PATH}/{archived.id}/archive")
    chat = await stage.chat()
    asking = await stage.task(DAILY, parent_id=chat.id)
    question = {"type": "confirmation", "prompt": "Shall I go on?"}
    outcome = {"needs_input": True, "message": "One thing.", "question": question}
    stage.engine.then(End(outcome))
    await ask.do("POST", f"{PATH}/{asking.id}/run-now")
    await stage.work()
    return {
        "failed": failed.id,
        "paused": paused.id,
        "scheduled": scheduled.id,
        "archived": archived.id,
        "chat": chat.id,
        "needs_you": asking.id,
    }


async def test_the_list_shows_what_its_filter_says(ask: Asker, stage: Stage) -> None:
    made = await put_into_all_states(ask, stage)
    plain = set(made.values()) - {made["archived"], made["needs_you"]}

    assert await listed(ask) == await listed(ask, state="") == plain
    assert await listed(ask, state="failed") == {made["failed"]}
    assert await listed(ask, state="paused") == {made["paused"], made["failed"]}
    assert await listed(ask, state="scheduled") == {made["scheduled"]}
    assert await listed(ask, state="archived") == {made["archived"]}
    assert await listed(ask, state="working") == set()
    # A child is listed on its own where its parent may not be.
    assert await listed(ask, state="needs_you") == {made["needs_you"]}
    assert made["needs_you"] in await listed(ask, state="unread")
    await ask.do("POST", f"{PATH}/{made['needs_you']}/seen")
    assert made["needs_you"] not in await listed(ask, state="unread")
    for path in ("list", "rows", "sidebar"):
        refused = await ask("GET", f"/page/{path}", params={"state": "odd"})
        assert refused.status_code == 422, path


@pytest.mark.parametrize("state", ListFilter)
async def test_an_empty_filter_says_why_and_can_be_cleared(ask: Asker, state: ListFilter) -> None:
    html = await show(ask, "list", state=state.value)

    assert 'class="empty' in html
    assert f'data-state="{state}"' in html
    assert html.count('aria-pressed="true"') == 1
    assert re.search(r'class="chip[^>]*data-state-filter=""', html)
    assert 'data-said="No conversations"' in html


async def test_a_search_that_finds_nothing_offers_the_archive(ask: Asker) -> None:
    html = await show(ask, "list", q=EVIL)
    assert "Search in archived ones too?" in html
    assert "<script" not in html

    html = await show(ask, "list", q=EVIL, state="failed")
    assert "in “Failed”" in html
    assert "Search in all" in html
    assert "<script" not in html


async def test_live_rows_are_those_that_the_list_has(ask: Asker, stage: Stage) -> None:
    made = await put_into_all_states(ask, stage)
    every = ",".join(made.values())

    async def rows(**params: Any) -> set[str]:
        return set(ids(await show(ask, "rows", **params)))

    # A child stands for its parent, whose row shows it.
    assert await rows(ids=made["needs_you"]) == {made["chat"]}
    assert await rows(ids=every) == await listed(ask)
    assert await rows(ids=every, state="failed") == {made["failed"]}
    assert await rows(ids=made["scheduled"], state="failed") == set()
    assert await rows(ids="c_0123456789abcdefghjkmnpqrs") == set()


async def test_pages_go_on_under_the_same_heading(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    old = [await stage.chat() for _ in range(3)]
    clock.advance(timedelta(days=2))
    new = [await stage.chat() for _ in range(3)]
    await ask.do("PATCH", f"{PATH}/{old[0].id}", {"pinned": True})

    first = await show(ask, "list")
    assert headings(first) == ["pinned", "today", "earlier"]
    assert ids(first)[0] == old[0].id
    html = await show(ask, "rows", limit=2)
    assert headings(html) == ["today"]
    seen = ids(html)
    while more := re.search(r'data-more="/page/rows\?cursor=([^&]*)&amp;group=(\w+)&', html):
        html = await show(ask, "rows", limit=2, cursor=more[1], group=more[2])
        # A heading comes once, between the last of today and the first from before.
        assert headings(html) == (["earlier"] if set(ids(html)) & {new[0].id} else [])
        seen += ids(html)
    assert seen == ids(first)[1:]


async def test_an_open_page_gets_as_many_rows_as_it_shows(ask: Asker, stage: Stage) -> None:
    chats = await _many(stage, 130)
    await ask.do("PATCH", f"{PATH}/{chats[0].id}", {"pinned": True})

    assert len(ids(await show(ask, "list"))) == 51
    assert len(ids(await show(ask, "list", rows=101))) == 101
    assert len(ids(await show(ask, "list", rows=10_000))) == 130


async def test_a_search_goes_on_until_it_finds_something(ask: Asker, stage: Stage) -> None:
    chats = await _many(stage, 230)
    table = tables.conversations
    first = update(table).where(table.c.id == chats[0].id).values(title="The needle")
    stage.database.run(lambda tx: tx.connection.execute(first))

    assert await listed(ask, q="needle") == {chats[0].id}


async def _many(stage: Stage, number: int) -> list[Conversation]:
    return [await stage.chat() for _ in range(number)]


async def test_what_works_is_counted_beside_the_tasks(ask: Asker, stage: Stage) -> None:
    assert 'href="/running"' not in await show(ask, "nav")

    await stage.task()
    go_on = Event()
    stage.engine.then(Wait(go_on), End({"complete": True}))
    await stage.take_up()

    for path in ("nav", "more"):
        row = re.search(r'href="/running".*?</a>', await show(ask, path), re.DOTALL)
        assert row is not None
        assert ">1<" in row[0], path
        assert "burner working" in row[0]
    go_on.set()
    await stage.idle()
    assert 'href="/running"' not in await show(ask, "nav")


async def test_what_a_search_found_stands_near_the_beginning_of_its_line(
    ask: Asker, stage: Stage
) -> None:
    chat = await stage.chat()
    await stage.say(chat, f"{'Much was said before. ' * 4}Then the <b>ferry</b> leaves at 9:40.")

    html = await show(ask, "list", q="ferry")

    assert "<bdi>…Then the &lt;b&gt;<mark>ferry</mark>&lt;/b&gt; leaves" in html


async def test_a_row_says_what_it_does_next(ask: Asker, stage: Stage) -> None:
    await stage.task(Cron("12 12 * * *", "UTC"))
    await stage.task(Scheduled(NOON + timedelta(minutes=12)))

    html = await show(ask, "list")

    lines = [
        re.sub(r"<[^>]*>", "", one) for one in re.findall(r'class="state[^>]*>(.*?)</time>', html)
    ]
    assert {line.replace("\N{NO-BREAK SPACE}", " ") for line in lines} == {
        "Every day at 12:12 · next in 12 min",
        "Once · in 12 min",
    }


async def test_only_what_comes_back_whole_is_offered_to_be_undone(ask: Asker, stage: Stage) -> None:
    chat, task = await stage.chat(), await stage.task(DAILY)

    html = await show(ask, "list")

    assert f'data-undo="POST {PATH}/{chat.id}/reopen"' in html
    # Its work would stay stopped.
    assert f'data-undo="POST {PATH}/{task.id}/reopen"' not in html


def confirms(html: str, call: str) -> list[str]:
    """Return what the buttons ask first that make a call."""
    buttons = re.findall(rf'<button[^>]* data-call="{re.escape(call)}"[^>]*>', html)
    assert buttons, call
    asked = (re.search(r'data-confirm="([^"]*)"', button) for button in buttons)
    return [found[1] if found else "" for found in asked]


async def test_what_would_end_work_asks_first(ask: Asker, stage: Stage) -> None:
    chat, task, parent = await stage.chat(), await stage.task(DAILY), await stage.chat()
    await stage.task(DAILY, parent_id=parent.id)

    rows = await show(ask, "list")

    for one, text in ((chat, ""), (task, "stop its work"), (parent, "Its tasks and jobs")):
        for html in (rows, await show(ask, f"c/{one.id}/head")):
            archive, delete = f"POST {PATH}/{one.id}/archive", f"DELETE {PATH}/{one.id}"
            for question in (*confirms(html, archive), *confirms(html, delete)):
                assert (text in question) if text else not question
    # Typed after a slash, it is the same button.
    head = await show(ask, f"c/{task.id}/head")
    assert re.search(r'data-name="/archive" data-press="#menu-head [^"]*archive[^"]*"', head)


async def test_a_run_now_that_uses_up_the_only_time_says_so(ask: Asker, stage: Stage) -> None:
    once = await stage.task(Scheduled(NOON + timedelta(hours=2)))
    daily = await stage.task(DAILY)
    rows = await show(ask, "list")

    for one, text in ((once, "It runs now, and not again at 14:00."), (daily, "")):
        for html in (
            rows,
            await show(ask, f"c/{one.id}/head"),
            await show(ask, f"c/{one.id}/schedule"),
            await show(ask, f"t/{one.id}"),
        ):
            assert set(confirms(html, f"POST {PATH}/{one.id}/run-now")) == {text}


async def test_a_question_that_was_put_off_does_not_count_until_it_asks_again(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    first, second = [await stage.task() for _ in range(2)]
    for _ in range(2):
        question = {"type": "confirmation", "prompt": "Shall I go on?"}
        stage.engine.then(End({"needs_input": True, "message": "One.", "question": question}))
    await stage.work()
    later = stage.question(first).id

    async def shown() -> tuple[str, list[str]]:
        (count,) = re.findall(r'data-needs="(\d+)"', await show(ask, "nav"))
        html = await show(ask, "needs-you")
        lead = re.findall(r'class="lead">(\w+ questions?|Nothing)', html)
        return count, lead

    assert await shown() == ("2", ["2 questions"])
    for _ in range(2):
        await ask.do("POST", f"/api/questions/{later}/snooze", {"for": "1h"})

        assert await shown() == ("1", ["One question"])
        # The others come first.
        html = await show(ask, "needs-you")
        assert html.index(f'id="q-{stage.question(second).id}"') < html.index(f'id="p-{later}"')
        row = (await show(ask, "rows", ids=first.id)).replace("\N{NO-BREAK SPACE}", " ")
        assert re.search(r'class="state one-line "><bdi>Asks again today \d+:00<', row)
        assert "burner needs" not in row

        # Once more after its first reminder.
        clock.advance(timedelta(hours=1))
        assert await shown() == ("2", ["2 questions"])
        await stage.work()
        assert await shown() == ("2", ["2 questions"])


@pytest.mark.parametrize(
    ("hour", "offered"),
    [
        (12, {"evening": 6 * 60, "tomorrow": 20 * 60}),
        (16, {"evening": 2 * 60, "tomorrow": 16 * 60}),
        (17, {"tomorrow": 15 * 60}),
        (22, {"tomorrow": 10 * 60}),
    ],
)
async def test_later_is_a_moment_in_the_zone_of_the_user(
    ask: Asker, stage: Stage, clock: SetClock, hour: int, offered: dict[str, int]
) -> None:
    stage.engine.then(
        End(
            {
                "needs_input": True,
                "message": "One.",
                "question": {"type": "confirmation", "prompt": "Shall I go on?"},
            }
        )
    )
    asking = await stage.task()
    await stage.work()
    question = stage.question(asking).id
    await ask.do("PUT", "/api/me", {"zone": "Asia/Tokyo"})
    # It is nine hours later there.
    clock.advance(timedelta(hours=(hour - 12 - 9) % 24))

    html = await show(ask, f"q/{question}/later")

    waits = re.findall(r"for&#34;: ?&#34;(\d+)s&#34;", html)
    assert [round(int(wait) / 60) for wait in waits] == [60, *offered.values()]
    assert ("This evening" in html) == ("evening" in offered)
    assert (await ask("GET", "/page/q/q_0123456789abcdefghjkmnpqrs/later")).status_code == 404


async def test_a_refusal_has_no_tick(ask: Asker, stage: Stage) -> None:
    question = {"type": "confirmation", "prompt": "Shall I go on?"}
    asking = [await stage.task() for _ in range(2)]
    for _ in asking:
        stage.engine.then(End({"needs_input": True, "message": "One.", "question": question}))
    await stage.work()
    for one, answer, burner in zip(asking, ("yes", "no"), ("done", "rest"), strict=True):
        path = f"/api/questions/{stage.question(one).id}/answer"
        await ask.do("POST", path, {"answer": answer})

        html = await show(ask, f"c/{one.id}")

        (shown,) = re.findall(r'class="answered"[^>]*><svg class="burner (\w+)"', html)
        assert shown == burner


async def test_one_run_is_no_chart(ask: Asker, stage: Stage) -> None:
    task = await stage.task(DAILY)
    for charts in (0, 1):
        stage.engine.then(End({"message": "Done."}))
        await ask.do("POST", f"{PATH}/{task.id}/run-now")
        await stage.work()

        html = await show(ask, f"c/{task.id}/about")

        assert html.count('class="chart') == charts
        assert ("Today 12:00, took" in html) == (not charts)


async def test_the_bell_has_no_number_beside_that_of_questions(ask: Asker, stage: Stage) -> None:
    stage.engine.then(
        End(
            {
                "needs_input": True,
                "message": "One.",
                "question": {"type": "confirmation", "prompt": "Shall I go on?"},
            }
        )
    )
    await stage.task()
    await stage.work()

    html = await show(ask, "bell")

    assert html.count('aria-label="Notices, one new"') == 2
    assert html.count('class="news"') == 2
    assert 'class="count"' not in html


async def test_a_message_that_waits_for_the_model_is_shown_as_waiting(
    ask: Asker, stage: Stage
) -> None:
    chat = await stage.chat()
    await stage.say(chat, "Hello?")

    row = await show(ask, f"rows?ids={chat.id}")

    assert "Waits for the model" in row
    assert "burner waits" in row
    shown, tail = [await show(ask, f"c/{chat.id}{part}") for part in ("", "/tail")]
    for html in (shown, tail):
        assert "I answer as soon as the model is free." in html
        assert f'data-call="POST {PATH}/{chat.id}/stop"' in html

    stage.engine.then(Wait())
    await stage.take_up()
    for path in (f"rows?ids={chat.id}", f"c/{chat.id}", f"c/{chat.id}/tail"):
        html = await show(ask, path)
        assert not re.search("Waits for the model|as soon as the model is free", html)
    assert "Working" in await show(ask, f"rows?ids={chat.id}")


async def test_a_waiting_message_that_is_taken_back_waits_no_more(ask: Asker, stage: Stage) -> None:
    chat = await stage.chat()
    await stage.say(chat, "Hello?")

    await ask.do("POST", f"{PATH}/{chat.id}/stop")

    assert "Waits" not in await show(ask, f"rows?ids={chat.id}")


async def test_a_reply_that_failed_is_shown_until_it_is_seen_or_answered(
    ask: Asker, stage: Stage
) -> None:
    seen, again = await stage.chat(), await stage.chat()
    for chat in (seen, again):
        stage.engine.then(Fail(EngineFailed("The disk is full.", permanent=True)))
        await stage.say(chat, "Hello?")
        await stage.work()
        row = await show(ask, f"rows?ids={chat.id}")
        assert "The reply failed" in row
        assert "burner failed" in row

    await ask.do("POST", f"{PATH}/{seen.id}/seen")
    await stage.say(again, "And now?")
    await stage.work()

    for chat in (seen, again):
        assert "The reply failed" not in await show(ask, f"rows?ids={chat.id}")
