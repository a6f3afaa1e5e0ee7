"""Tasks, the calendar, jobs and schedules on the page: for their owner only, texts as texts."""

import re
from datetime import timedelta
from typing import Any

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import Call, End, Fail, Wait
from support.requirements import requirement
from support.stage.api_stage import Asker
from support.stage.make import MATE, NOON, USER
from support.stage.stage import Stage

from backburner.actions.origin import Origin
from backburner.actions.schedules import Timing
from backburner.actions.work import control, jobs, preview
from backburner.actions.work.tasks import NewTask, add
from backburner.core.conversation import Conversation
from backburner.core.errors import EngineFailed
from backburner.core.schedule import Cron, Interval, Schedule

EVIL = '</title><script>alert(1)</script>"><img src=x onerror=alert(2)> {{ 7*7 }} \u202egnp.exe'
MONDAYS_AT_3 = "mondays at 3"
MONDAYS = Cron("33 3 * * 1", "UTC")


async def show(ask: Asker, path: str, **params: Any) -> str:
    answer = await ask("GET", f"/page{path}", **({"params": params} if params else {}))
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    return answer.text


def words_of(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).replace("\N{NO-BREAK SPACE}", " ").split())


async def make(stage: Stage, schedule: Schedule = MONDAYS, **brief: Any) -> Conversation:
    return await stage.task(schedule, **brief)


async def run(stage: Stage, task: Conversation, *steps: Any) -> None:
    stage.engine.then(*steps)
    await control.run_now(stage.deps, Origin.by_user(task.user_id), task.id)
    await stage.work()


async def propose(stage: Stage, **changes: Any) -> Conversation:
    chat = await stage.chat()
    usual: dict[str, Any] = {
        "name": "watch-ci",
        "prompt": "Look.",
        "timing": Timing("mondays at 3"),
    }
    made = await add(
        stage.deps, Origin(USER, chat.id), NewTask(**usual | changes), proposed_because="It broke."
    )
    return made.work


async def test_tasks_are_listed_by_what_becomes_of_them(ask: Asker, stage: Stage) -> None:
    late = await make(stage, title="Tail")
    await make(stage, Interval(timedelta(hours=2), NOON), title="Soon")
    paused = await make(stage, title="Paused one")
    await control.pause(stage.deps, Origin.by_user(USER), paused.id)
    ended = await make(stage, title="Over")
    await control.cancel_and_archive(stage.deps, Origin.by_user(USER), ended.id)
    proposal = await propose(stage)
    await run(stage, late, End({"complete": True, "message": "**14** mails."}))

    html = await show(ask, "/tasks")
    text = words_of(html)

    assert text.index("Proposed") < text.index("Active 2") < text.index("Paused 1")
    assert f'id="task-{late.id}"' in html
    # By the next time, not by the last change.
    assert text.index("Soon") < text.index("Tail")
    assert "14 mails." in text
    assert "Mondays at 3:33" in text
    assert "Start “watch-ci”?" in text
    assert "It runs Mondays at 3:00." in text
    assert f'href="/t/{proposal.id}"' in html
    assert "Over" not in text
    assert "Over" in words_of(await show(ask, "/tasks", show="ended"))


@requirement("B-task")
async def test_the_page_of_a_task_has_its_history_and_its_terms(ask: Asker, stage: Stage) -> None:
    task = await make(stage, title="Inbox", prompt="Summarise my inbox.")
    await ask.do("PUT", f"/api/conversations/{task.id}/allowance", {"limit": "$4"})
    await run(stage, task, End({"complete": True, "message": "**14** mails."}))
    await run(stage, task, End({"complete": True, "result": {"mails": 0}}))
    await run(stage, task, Fail(EngineFailed("Mail did not answer.")))

    html = await show(ask, f"/t/{task.id}")
    text = words_of(html)

    assert "Summarise my inbox." in text
    assert "Mondays at 3:33 UTC · missed times run once" in text
    assert "2 of 3 runs went well" in text
    assert "14 mails." in text
    assert "Nothing to report" in text
    assert "Mail did not answer." in text
    assert "you, Run now" in text
    assert "$0.00 of $4.00 so far" in text
    assert "Time per run, last 3" in text
    assert html.count("<tr id=") == 3
    # All that can be done with it is there.
    for path in ("pause", "run-now", "test-run", "allowance"):
        assert f"/{path}" in html


async def test_a_long_history_comes_in_pages_and_stays_whole_while_it_grows(
    ask: Asker, stage: Stage
) -> None:
    task = await make(stage)
    for number in range(27):
        await run(stage, task, End({"complete": True, "message": f"Number {number}."}))
    html = await show(ask, f"/t/{task.id}")
    (again,) = re.findall(r'data-src="/page(/t/[^"]*)"', html)
    (more,) = re.findall(r'data-more="/page(/t/[^"]*)"', html)
    assert html.count("<tr id=") == 25

    rest = await show(ask, more.replace("&amp;", "&"))
    assert "Number 1." in rest
    assert "Number 2." not in rest
    assert "data-more" not in rest
    await run(stage, task, End({"complete": True, "message": "Number 27."}))
    grown = await show(ask, again)
    assert grown.count("<tr id=") == 26
    assert re.findall(r'data-more="/page(/t/[^"]*)"', grown) == [more]


async def test_a_pause_after_failures_is_said_once(ask: Asker, stage: Stage) -> None:
    task = await make(stage)
    failure = EngineFailed("The disk is full.", permanent=True)
    await run(stage, task, Fail(failure))
    await run(stage, task, Fail(failure))

    for page in (f"/c/{task.id}/head", f"/t/{task.id}"):
        assert words_of(await show(ask, page)).count("Paused after 2 failures") == 1, page


async def test_slots_without_a_run_say_why(ask: Asker, stage: Stage, clock: SetClock) -> None:
    task = await make(stage, Interval(timedelta(hours=1), NOON))
    clock.advance(timedelta(hours=5, minutes=30))
    await stage.work()

    text = words_of(await show(ask, f"/t/{task.id}"))
    assert "Skipped: machine off or busy, or model unavailable" in text


async def test_a_proposal_shows_all_that_a_yes_binds_to(ask: Asker, stage: Stage) -> None:
    task = await propose(
        stage, name="Watch \u202egnp", prompt="Look at \u200bCI.", max_runs=3, tools=["look"]
    )

    for path in ("/tasks", f"/t/{task.id}", "/needs-you"):
        text = words_of(await show(ask, path))
        assert "Start “Watch \\u202egnp”?" in text, path
        assert "It broke." in text
        assert "It runs Mondays at 3:00. Mon 23 Nov, 3:00" in text
        assert "Look at \\u200bCI." in text
        assert "Only these tools look" in text
        assert "Ends after 3 runs" in text
        assert "Start it" in text
    # On its own page it needs no way there, and runs nothing.
    html = await show(ask, f"/t/{task.id}")
    assert "Change…" not in html
    assert "run-now" not in html


async def test_a_test_run_asks_on_the_page_of_its_task(ask: Asker, stage: Stage) -> None:
    task = await make(stage)
    stage.engine.then(Call("send"), End({"complete": True, "message": "Tried."}))
    await preview.start_test_run(stage.deps, USER, task.id)
    assert "A test run is at work" in words_of(await show(ask, f"/t/{task.id}"))
    await stage.work()

    text = words_of(await show(ask, f"/t/{task.id}"))
    assert "The test run asks" in text
    assert "May the task do this in its next runs?" in text


async def test_what_came_of_a_test_run_stands_on_the_page_for_a_day(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    task = await make(stage)
    stage.engine.then(End({"complete": True, "message": "**Tried** <it>."}))
    await preview.start_test_run(stage.deps, USER, task.id)
    await stage.work()
    text = words_of(await show(ask, f"/t/{task.id}"))
    assert "The test run went well Today 12:00 Tried &lt;it&gt;." in text

    clock.advance(timedelta(days=1, seconds=1))
    assert "The test run" not in words_of(await show(ask, f"/t/{task.id}"))


async def test_what_is_typed_is_explained_or_refused_with_examples(ask: Asker) -> None:
    good = await show(ask, "/schedule/preview", text="Every weekday at 8")
    assert words_of(good).startswith("Weekdays at 8:00 Tomorrow 8:00 in 20 h Wed 18 Nov, 8:00")
    often = words_of(await show(ask, "/schedule/preview", text="every 2 minutes"))
    assert "It runs every 2 minutes, up to 720 times a day." in often

    bad = await show(ask, "/schedule/preview", text="fridays")
    assert "lacks a time of day." in bad
    assert 'data-fill="every monday at 9"' in bad
    assert words_of(await show(ask, "/schedule/preview", text=" ")).startswith("Say it in words")
    evil = await show(ask, "/schedule/preview", text="<script>alert(1)</script>")
    assert "<script>" not in evil
    assert words_of(evil) == "This is not a time I know. Try weekdays at 8:00 ."
    assert 'data-fill="weekdays at 8:00"' in evil
    assert "at most 200 characters" in await show(ask, "/schedule/preview", text="x" * 300)
    assert (await ask("GET", "/page/schedule/preview?text=" + "x" * 900)).status_code == 422


async def test_the_editor_begins_with_what_is(ask: Asker, stage: Stage) -> None:
    first = await make(stage, title="First")
    html = await show(ask, f"/c/{first.id}/schedule")
    assert 'value="mondays at 3:33"' in html
    assert "Mondays at 3:33 Mon 23 Nov" in words_of(html)
    assert 'name="what"' not in html
    assert 'name="catch_up" value="once" data-submits checked' in html
    assert "Skip them It waits for the next time." in words_of(html)

    second = await make(stage, title="Second")
    await ask.do(
        "PUT",
        f"/api/conversations/{second.id}/schedule",
        {"schedule": {"type": "after", "conversation": first.id, "on": "any"}},
    )
    html = await show(ask, f"/c/{second.id}/schedule")
    assert "Now it is: After “First”, whatever comes of it." in words_of(html)
    assert f'<option value="{first.id}" selected>First</option>' in html
    assert "catch_up" not in html

    chat = await stage.chat()
    await stage.say(chat, "Watch the flats in Porto.")
    html = await show(ask, f"/c/{chat.id}/schedule")
    assert "It does not run by itself." in html
    assert 'name="what" rows="3" required dir="auto">Watch the flats in Porto.</textarea>' in html


async def test_the_calendar_has_a_column_for_each_day(ask: Asker, stage: Stage) -> None:
    await make(stage, Cron("0 8 * * 1-5", "UTC"), title="Inbox")
    await make(stage, Interval(timedelta(hours=2), NOON), title="Often")
    paused = await make(stage, Cron("0 15 * * *", "UTC"), title="Paused one")
    await control.pause(stage.deps, Origin.by_user(USER), paused.id)

    html = await show(ask, "/calendar")
    text = words_of(html)
    days = [words_of(day) for day in html.split('<section class="day')[1:]]
    assert len(days) == 7
    assert "Today 16 Nov Now, 12:00" in days[0]
    assert "Now Often" in days[0]
    assert "8:00 Inbox" in days[1]
    assert "0:00 to 22:00 Often every 2 hours, 12 times" in days[1]
    assert "Inbox" not in days[5]
    assert "Paused one" not in text
    assert "Paused one" in await show(ask, "/calendar", paused=True)

    later = words_of(await show(ask, "/calendar", week=1))
    assert "23 Nov to 29 Nov" in later
    assert "Now," not in later
    assert (await ask("GET", "/page/calendar?week=53")).status_code == 422
    assert (await ask("GET", "/page/calendar?week=-1")).status_code == 422


async def test_jobs_are_trees_with_what_each_does(ask: Asker, stage: Stage) -> None:
    chat = await stage.chat()
    wishes = [jobs.JobRequest(description=name, prompt="Do it.") for name in ("Good", "Bad")]
    stage.engine.then(End({"complete": True, "message": "Found **3**."}))
    stage.engine.then(End({"error": {"message": "No such file."}}))
    await jobs.start(stage.deps, Origin(USER, chat.id), wishes)
    await stage.work()
    (third,) = await jobs.start(
        stage.deps, Origin(USER, chat.id), [jobs.JobRequest(description="Slow", prompt="Wait.")]
    )
    stage.engine.then(Wait())
    await stage.take_up()

    text = words_of(await show(ask, "/jobs"))
    assert "of 3 done" in text
    assert text.index("Slow") < text.index("Good")
    assert "Found" in text
    one = await show(ask, f"/jobs/{third.id}")
    assert "Wait." in one
    assert f"/api/jobs/{third.id}/cancel" in one
    assert "of 3 done" in words_of(await show(ask, f"/jobs/{chat.id}"))
    stage.kill()


async def test_texts_of_others_stay_texts(ask: Asker, stage: Stage) -> None:
    task = await make(stage, title=EVIL, prompt=EVIL)
    await run(stage, task, End({"complete": True, "message": EVIL}))
    proposal = await propose(stage, name=f"Evil {EVIL}", prompt=EVIL)
    (job,) = await jobs.start(
        stage.deps, Origin(USER, task.id), [jobs.JobRequest(description=EVIL, prompt=EVIL)]
    )

    places = [f"/t/{task.id}", f"/t/{proposal.id}", f"/t/{task.id}/edit", f"/jobs/{job.id}"]
    places += [
        "/tasks",
        "/calendar",
        "/jobs",
        f"/c/{task.id}/schedule",
        f"/c/{proposal.id}/schedule",
    ]
    for path in places:
        html = await show(ask, path)
        assert "<script" not in html, path
        assert "<img" not in html, path
        assert "49 \u202e" not in html, path
        assert " style=" not in html, path


async def test_nobody_sees_what_is_anothers(ask: Asker, mate: Asker, stage: Stage) -> None:
    task = await stage.task(MONDAYS, user=MATE, title="Theirs")
    (job,) = await jobs.start(
        stage.deps, Origin(MATE, task.id), [jobs.JobRequest(description="Job", prompt="Do it.")]
    )
    paths = ["/t/{}", "/t/{}/runs", "/t/{}/edit", "/t/{}/uses", "/c/{}/schedule", "/jobs/{}"]
    for path in paths:
        for which in (task.id, job.id):
            theirs = await ask("GET", "/page" + path.format(which))
            nobodys = await ask("GET", "/page" + path.format("c_0123456789abcdefghjkmnpqrs"))
            assert (theirs.status_code, theirs.json()) == (404, nobodys.json()), path
    for path in ("/tasks", "/calendar", "/jobs"):
        assert "Theirs" not in await show(ask, path)
        # Mondays are not among the next seven days from a Monday noon.
        params = {"week": 1} if path == "/calendar" else {}
        assert "Theirs" in await show(mate, path, **params)
    for path in ("/tasks", "/tasks/new", "/calendar", "/jobs", f"/t/{task.id}"):
        anonymous = await ask.client.get(f"/page{path}")
        assert anonymous.status_code == 401, path


@pytest.mark.parametrize("path", ["/tasks", "/calendar", "/jobs"])
async def test_empty_pages_say_when_they_are_not(ask: Asker, path: str) -> None:
    html = await show(ask, path)
    assert 'class="empty"' in html
    assert "/tasks/new" in html
