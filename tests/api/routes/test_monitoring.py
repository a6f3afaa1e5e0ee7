"""`/health`, `/ready` and `/metrics`."""

import asyncio
import re
from datetime import timedelta
from typing import cast

import httpx2
from fastapi import FastAPI
from support.doubles.clock import SetClock
from support.doubles.engine import End, Wait
from support.requirements import requirement
from support.stage.api_stage import AskAs, Asker
from support.stage.make import MATE, NOON, USER
from support.stage.stage import Stage

from backburner import __version__
from backburner.actions import conversations
from backburner.actions.deps import Deps
from backburner.api.app import build_api
from backburner.api.routes.monitoring import Check, Readiness
from backburner.app.machines import NoTools
from backburner.core.accounts import Role, Scope
from backburner.core.schedule import Scheduled
from backburner.ports import Store

MINUTE = timedelta(minutes=1)


async def passes() -> None:
    pass


async def fails() -> None:
    raise OSError("a path nobody else should see")


def build(**checks: Check) -> FastAPI:
    no_deps = Deps(store=cast("Store", None), engines={}, default_profile="", toolbox=NoTools())
    return build_api(no_deps, hosts={"localhost"}, checks=checks)


async def get(api: FastAPI, path: str) -> httpx2.Response:
    transport = httpx2.ASGITransport(app=api)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        return await client.get(path)


async def test_health_is_ok_while_the_server_is_not_ready() -> None:
    answer = await get(build(database=fails), "/health")

    assert answer.status_code == 200
    assert answer.json() == {"status": "ok", "version": __version__}


async def test_the_server_is_ready_when_every_check_passes() -> None:
    answer = await get(build(database=passes, disk=passes), "/ready")

    assert answer.status_code == 200
    assert answer.json() == {"status": "ready", "checks": {"database": "ok", "disk": "ok"}}


async def test_readiness_names_the_failed_check_but_not_the_reason() -> None:
    answer = await get(build(database=fails, disk=passes), "/ready")

    assert answer.status_code == 503
    assert answer.json() == {"status": "not ready", "checks": {"database": "failed", "disk": "ok"}}


async def test_checks_run_once_however_many_ask() -> None:
    asked = []

    async def count() -> None:
        asked.append(1)

    api = build(database=count)
    await asyncio.gather(*(get(api, "/ready") for _ in range(5)))
    await get(api, "/ready")

    assert len(asked) == 1


async def test_a_check_that_hangs_fails_and_is_not_started_again() -> None:
    asked = []
    ends = asyncio.Event()

    async def hang() -> None:
        asked.append(1)
        await ends.wait()

    quick = timedelta(milliseconds=10)
    readiness = Readiness({"database": hang}, timeout=quick, keep=timedelta())
    for _ in range(3):
        assert await readiness.check() == {"database": False}
    assert len(asked) == 1
    ends.set()
    assert await readiness.check() == {"database": True}


async def test_openapi_is_served_without_pages_that_load_scripts() -> None:
    api = build()

    assert "/ready" in (await get(api, "/api/openapi.json")).json()["paths"]
    assert (await get(api, "/docs")).status_code == 404
    assert (await get(api, "/redoc")).status_code == 404


async def numbers(ask: Asker) -> dict[str, float]:
    answer = await ask("GET", "/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


async def operator(ask_as: AskAs) -> Asker:
    return await ask_as(USER, Scope.METRICS, role=Role.OPERATOR)


@requirement("A-starvation")
async def test_metrics_show_the_length_and_age_of_the_queue(
    ask_as: AskAs, stage: Stage, clock: SetClock
) -> None:
    ask = await operator(ask_as)
    await stage.task()
    await stage.task(user=MATE)
    await stage.task(Scheduled(NOON + 60 * MINUTE))
    clock.advance(2 * MINUTE)
    await stage.say(await stage.chat(MATE), "Hello?")

    waiting = await numbers(ask)
    assert waiting["backburner_queue_depth"] == 3
    assert waiting["backburner_queue_oldest_seconds"] == 120
    assert waiting["backburner_people_waiting"] == 1

    await stage.work()
    done = await numbers(ask)
    assert (done["backburner_queue_depth"], done["backburner_queue_oldest_seconds"]) == (0, 0)
    assert done['backburner_runs_ended_last_hour{status="success"}'] == 3
    assert done["backburner_users"] == 2
    clock.advance(80 * MINUTE)
    later = await numbers(ask)
    assert later['backburner_responses_total{status="2xx"}'] > 0
    assert later["backburner_queue_depth"] == 1
    assert later["backburner_queue_oldest_seconds"] == 22 * 60
    assert later['backburner_runs_ended_last_hour{status="success"}'] == 0


async def test_metrics_count_running_runs_and_open_questions(ask_as: AskAs, stage: Stage) -> None:
    ask = await operator(ask_as)
    question = {"type": "confirmation", "prompt": "Well?"}
    stage.engine.then(End({"needs_input": True, "message": "Hm.", "question": question}))
    await stage.task()
    await stage.work()
    stage.engine.then(Wait())
    await stage.task()
    await stage.take_up()

    shown = await numbers(ask)

    assert shown["backburner_questions_open"] == 1
    assert shown['backburner_runs{status="running"}'] == 1
    assert shown["backburner_deliveries_waiting"] == 0
    stage.kill()


async def test_paused_work_is_not_in_the_queue(ask_as: AskAs, stage: Stage) -> None:
    ask = await operator(ask_as)
    await stage.task()
    await conversations.pause_everything(stage.deps, USER, paused=True)
    assert (await numbers(ask))["backburner_queue_depth"] == 0

    await conversations.pause_everything(stage.deps, None, paused=True)
    assert (await numbers(ask))["backburner_paused"] == 1


async def test_only_operators_get_metrics(ask_as: AskAs, stage: Stage) -> None:
    member = await ask_as(MATE)
    stage.user()

    assert (await member("GET", "/metrics")).status_code == 403
    assert (await member.client.get("/metrics")).status_code == 401


async def test_every_line_is_in_the_prometheus_text_format(ask_as: AskAs) -> None:
    text = (await (await operator(ask_as))("GET", "/metrics")).text

    for line in text.splitlines():
        assert re.fullmatch(
            r'# (HELP|TYPE) backburner_\w+ .+|backburner_\w+(\{\w+="\w+"\})? \d+(\.\d+)?', line
        ), line
    assert text.endswith("\n")


async def test_a_full_disk_is_named_in_the_response(ask: Asker, stage: Stage) -> None:
    here = await stage.chat()
    pages = stage.database.run(
        lambda tx: tx.connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    )
    limit = f"PRAGMA max_page_count = {pages}"
    stage.database.run(lambda tx: tx.connection.exec_driver_sql(limit).all())

    body = {"content": "x" * 50_000}
    answer = await ask("POST", f"/api/conversations/{here.id}/messages", json=body)

    assert answer.status_code == 503
    problem = answer.json()
    assert problem["detail"] == "The disk is full."
    assert problem["hint"].startswith("Free some space")
