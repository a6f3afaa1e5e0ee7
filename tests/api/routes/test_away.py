"""While you were away."""

import re
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import End, Fail, Spend, Wait
from support.people.tokens import issue_token
from support.requirements import requirement
from support.stage.make import NOON, STRANGER, USER
from support.stage.stage import Stage
from support.stage.stages import clock, database, set_up, stage
from support.stage.until import until
from support.statements import watched

from backburner.actions import away
from backburner.actions.deps import Limits
from backburner.api.app import build_api
from backburner.core.accounts import Scope
from backburner.core.conversation import EndedAs
from backburner.core.errors import EngineFailed
from backburner.core.ids import UserId
from backburner.core.schedule import Interval
from backburner.store import tables

__all__ = ["clock", "database", "set_up", "stage"]

HOUR = timedelta(hours=1)
ASKS = {
    "needs_input": True,
    "message": "I need to know.",
    "question": {"type": "confirmation", "prompt": "Go on?"},
}


@pytest.fixture
async def client(stage: Stage) -> AsyncIterator[httpx2.AsyncClient]:
    api = build_api(stage.deps, hosts={"localhost"}, checks={})
    transport = httpx2.ASGITransport(app=api)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


async def header(stage: Stage, user: UserId = USER, *scopes: Scope) -> dict[str, str]:
    given = scopes or (Scope.READ, Scope.WRITE)
    token = await issue_token(stage.deps, stage.user(user), given, name="Test")
    return {"authorization": f"Bearer {token}"}


async def look(client: httpx2.AsyncClient, headers: dict[str, str], **query: str) -> Any:
    answer = await client.get("/api/away", headers=headers, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def let_things_happen(stage: Stage, clock: SetClock) -> None:
    """Let one thing succeed twice, one fail, and one ask."""
    done = End({"complete": True, "message": "All is well."})
    every = Interval(HOUR, anchor=clock.now)
    await stage.task(every, title="Succeeds")
    stage.engine.then(Spend(100), done)
    await stage.work()
    await stage.task(title="Fails")
    stage.engine.then(Fail(EngineFailed("The model is gone.", permanent=True)))
    await stage.work()
    await stage.task(title="Asks")
    stage.engine.then(End(ASKS))
    await stage.work()
    clock.advance(HOUR)
    stage.engine.then(Spend(20), done)
    await stage.work()


async def test_every_conversation_has_a_lane_with_its_runs_and_what_it_asked(
    stage: Stage, client: httpx2.AsyncClient, clock: SetClock
) -> None:
    headers = await header(stage)
    await let_things_happen(stage, clock)
    stage.engine.then(End({"complete": True}))
    await stage.task(title="Quiet")
    await stage.work()
    stage.engine.then(Wait())
    running = await stage.task(title="Runs")
    await stage.take_up()
    await until(lambda: len(stage.engine.requests) == 6)

    found = await look(client, headers, since=(NOON - HOUR).isoformat())

    lanes = {lane["title"]: lane for lane in found["lanes"]}
    assert [(lane["title"], lane["state"]) for lane in found["lanes"]][:3] == [
        ("Asks", "needs_you"),
        ("Fails", "broke"),
        ("Succeeds", "done"),
    ]
    assert {lanes["Quiet"]["state"], lanes["Runs"]["state"]} == {"quiet"}
    assert found["lane_counts"] == {"needs_you": 1, "broke": 1, "done": 1, "quiet": 2}
    bars = [(bar["started_at"], bar["status"]) for bar in lanes["Succeeds"]["bars"]]
    assert bars == [("2026-11-16T12:00:00Z", "success"), ("2026-11-16T13:00:00Z", "success")]
    assert [one["prompt"] for one in lanes["Asks"]["asked"]] == ["Go on?"]
    (bar,) = lanes["Runs"]["bars"]
    assert (bar["status"], bar["ended_at"]) == ("running", None)
    assert found["is_cut"] is False
    assert stage.load(running).title == "Runs"
    stage.kill()


@requirement("Z-away")
async def test_whoever_comes_back_sees_what_ran_what_needs_them_and_what_it_cost(
    stage: Stage, client: httpx2.AsyncClient, clock: SetClock
) -> None:
    headers = await header(stage)
    await let_things_happen(stage, clock)

    found = await look(client, headers, since=(NOON - HOUR).isoformat())

    assert found["totals"] == {"succeeded": 3, "failed": 1, "skipped": 0, "cancelled": 0}
    ran = {one["title"]: one for one in found["ran"]}
    assert found["ran"][0]["title"] == "Fails"
    assert ran["Fails"]["failure"] == "The model is gone."
    assert ran["Succeeds"]["counts"]["succeeded"] == 2
    assert ran["Succeeds"]["failure"] is None
    assert "Go on?" in [one["prompt"] for one in found["needs"]]
    assert found["spent"]["tokens"] == 120
    assert ("Succeeds", "All is well.") in [(one["title"], one["text"]) for one in found["told"]]
    assert found["until"].endswith("Z")


async def test_what_recovered_or_was_answered_is_not_told_again(
    stage: Stage, client: httpx2.AsyncClient, clock: SetClock
) -> None:
    headers = await header(stage)
    recovers = await stage.task(title="Recovers")
    stage.engine.then(Fail(EngineFailed("The model is busy.")))
    stage.engine.then(End({"complete": True, "message": "All is well."}))
    await stage.work()
    clock.advance(HOUR)
    await stage.work()
    asks = await stage.task(title="Asks")
    stage.engine.then(End(ASKS))
    await stage.work()
    before = await look(client, headers, since=(NOON - HOUR).isoformat())
    await stage.answer(asks, "yes")
    await stage.work()
    after = await look(client, headers, since=(NOON - HOUR).isoformat())

    assert stage.load(recovers).ended_as is EndedAs.COMPLETED
    (row,) = [one for one in after["ran"] if one["title"] == "Recovers"]
    assert (row["counts"]["failed"], row["failure"]) == (1, None)
    assert "question" in {one["kind"] for one in before["told"]}
    assert "question" not in {one["kind"] for one in after["told"]}


async def test_a_summary_begins_where_the_last_one_was_seen(
    stage: Stage, client: httpx2.AsyncClient, clock: SetClock
) -> None:
    headers = await header(stage)
    clock.advance(HOUR)
    await let_things_happen(stage, clock)
    first = await look(client, headers)
    seen = await client.post("/api/away/seen", headers=headers, json={"until": first["until"]})
    clock.advance(HOUR)
    then = await look(client, headers)

    assert sum(first["totals"].values()) == 4
    assert seen.json() == {"since": first["until"]}
    assert then["since"] == first["until"]
    assert sum(then["totals"].values()) == 0
    assert (then["spent"]["tokens"], then["told"]) == (0, [])
    # It still waits for an answer, however long ago it was asked.
    assert len(then["needs"]) == len(first["needs"])


async def test_what_was_seen_never_goes_back_nor_beyond_now(
    stage: Stage, client: httpx2.AsyncClient, clock: SetClock
) -> None:
    headers = await header(stage)
    clock.advance(HOUR)
    for moment in (NOON + HOUR, NOON - HOUR, NOON + 9 * HOUR):
        body = {"until": moment.isoformat()}
        answer = await client.post("/api/away/seen", headers=headers, json=body)
        found = await look(client, headers)

        assert answer.json() == {"since": found["since"]}
        assert found["since"] == found["until"]


async def test_nobody_sees_what_happened_to_another(
    stage: Stage, client: httpx2.AsyncClient, clock: SetClock
) -> None:
    stranger = await header(stage, STRANGER)
    await let_things_happen(stage, clock)

    found = await look(client, stranger, since=(NOON - HOUR).isoformat())

    assert sum(found["totals"].values()) == 0
    assert (found["ran"], found["needs"], found["told"], found["lanes"]) == ([], [], [], [])
    assert found["spent"]["tokens"] == 0


@pytest.mark.parametrize(
    ("since", "status"),
    [("tomorrow", 422), ("2026-03-02T12:00:00", 422), ("2999-01-01T00:00:00Z", 400)],
)
async def test_a_time_that_is_none_or_yet_to_come_is_refused(
    stage: Stage, client: httpx2.AsyncClient, since: str, status: int
) -> None:
    headers = await header(stage)
    answer = await client.get("/api/away", headers=headers, params={"since": since})

    assert answer.status_code == status


async def test_what_is_unknown_or_not_allowed_is_refused(
    stage: Stage, client: httpx2.AsyncClient
) -> None:
    headers = await header(stage)
    reads = await header(stage, USER, Scope.READ)
    unknown = await client.post("/api/away/seen", headers=headers, json={"until": None, "x": 1})

    assert unknown.status_code == 422
    assert (await client.post("/api/away/seen", headers=reads)).status_code == 403
    assert (await client.get("/api/away")).status_code == 401


async def test_a_summary_stays_short_however_much_happened(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(limits=Limits(max_tasks=100))
    stage.user()
    for number in range(away.MAX_AWAY_ROWS + 3):
        await stage.task(title=f"Task {number}")
        await stage.work()
    found = await away.summarise(stage.deps, USER, since=clock.now - HOUR)

    assert found.totals.succeeded == away.MAX_AWAY_ROWS + 3
    assert len(found.conversations) == len(found.lanes) == away.MAX_AWAY_ROWS
    assert found.is_cut


async def test_results_are_told_however_many_notices_came_after_them(
    stage: Stage, clock: SetClock
) -> None:
    stage.user()
    reminds = (await stage.task(title="Reminds")).id
    stage.engine.then(End({"complete": True, "message": "Time to stretch."}))
    await stage.work()
    await stage.task(title="Quiet")
    stage.engine.then(End({"complete": True}))
    await stage.work()
    await stage.task(Interval(HOUR, anchor=clock.now), title="Ticks")
    for number in range(away.MAX_AWAY_ROWS):
        stage.engine.then(End({"complete": True, "message": f"Tick {number}."}))
        await stage.work()
        clock.advance(HOUR)

    found = await away.summarise(stage.deps, USER, since=NOON - HOUR)

    assert {lane.title: lane.state.value for lane in found.lanes} == {
        "Reminds": "done",
        "Ticks": "done",
        "Quiet": "quiet",
    }
    assert reminds not in {notice.conversation for notice in found.notices}
    said = {report.conversation: report.text for report in found.reports}
    assert said[reminds] == "Time to stretch."


async def test_a_summary_is_read_through_indexes(
    stage: Stage, client: httpx2.AsyncClient, clock: SetClock
) -> None:
    headers = await header(stage)
    await let_things_happen(stage, clock)
    with watched(stage.database) as queries:
        await look(client, headers)
    steps = [
        step
        for query, values in queries
        if query.startswith("SELECT")
        for step in explain(stage, query, values)
    ]

    scans = re.compile(rf"SCAN ({'|'.join(tables.metadata.tables)})\b")
    assert [step for step in steps if scans.match(step)] == []
    assert sum("ix_runs_of_user (user_id=? AND ended_at>?" in step for step in steps) == 3
    asked = "ix_questions_of_conversation (user_id=? AND conversation_id=? AND asked_at>?"
    assert any(asked in step for step in steps)


def explain(stage: Stage, query: str, values: Any) -> list[str]:
    rows = stage.database.run(
        lambda tx: tx.connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", values).all()
    )
    return [row[3] for row in rows]
