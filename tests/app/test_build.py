"""The program as it is assembled: every setting reaches what it is for."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.doubles.engine import ScriptedEngine, Wait
from support.people.users import add_user
from support.requirements import requirement
from support.stage.make import USER
from support.stage.until import until
from support.stage.work import start_work

from backburner.actions import chat
from backburner.actions.deps import DiscoverySettings, Limits
from backburner.actions.origin import Origin
from backburner.actions.work import jobs
from backburner.actions.work.jobs import JobRequest
from backburner.app.build import App, build
from backburner.app.clock import Clock
from backburner.app.machines import Machines
from backburner.bus.local import LocalBus
from backburner.core.ids import UserId
from backburner.core.routing import Routes
from backburner.core.run import RunKind
from backburner.core.schedule import Immediate
from backburner.core.transitions import Brief
from backburner.ports import Offer
from backburner.settings import load
from backburner.store.lifecycle.opening import open_database
from backburner.tools.toolbox import Toolbox
from backburner.tools.workspace import CommandTerms
from backburner.worker.pruner import Pruner
from backburner.worker.service import Pace

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
Build = Callable[..., App]


@pytest.fixture
async def assemble(tmp_path: Path) -> AsyncIterator[Build]:
    """Build the program with some settings, and with other machines than a model and a shell."""
    clock, data = Clock(), tmp_path / "data"
    data.mkdir()
    url = load(data=data).database.get_secret_value()
    with closing(open_database(url, clock.read)) as database:

        def assemble(machines: Machines | None = None, **settings: Any) -> App:
            loaded = load(data=data, **settings)
            return build(loaded, clock, database, LocalBus(), machines or Machines())

        yield assemble


@requirement("B-config", "B-tick", "B-timeout", "C-long")
def test_settings_reach_the_actions(assemble: Build) -> None:
    deps = assemble(
        run_timeout="7m",
        job_timeout="2h",
        context=17,
        context_chat=18,
        max_active_tasks=19,
        min_interval="20m",
        discovery_enabled=True,
        discovery_interval="21m",
        idle_threshold="22m",
        allowance_run="1 USD",
        allowance_conversation="2 USD",
        allowance_user="3 USD",
        allowance_day="4 USD",
    ).deps

    assert deps.limits == Limits(
        run_timeout=7 * MINUTE,
        job_timeout=120 * MINUTE,
        background_context=17,
        chat_context=18,
        max_tasks=19,
        min_interval=20 * MINUTE,
    )
    assert deps.discovery == DiscoverySettings(
        allowed=True, every=21 * MINUTE, quiet_period=22 * MINUTE
    )
    limits = [(one.scope.value, one.micros) for one in deps.allowances]
    scopes = ("run", "conversation", "user", "day")
    assert limits == [(scope, dollars * 10**6) for dollars, scope in enumerate(scopes, 1)]
    assert not assemble(discovery_enabled=False).deps.discovery.allowed


@requirement("B-config", "B-tick", "A-batch", "A-cap", "B-compact")
def test_settings_reach_the_worker(assemble: Build) -> None:
    worker = assemble(
        poll_interval="7s",
        batch=8,
        concurrency=9,
        per_user_concurrency=4,
        lease="40s",
        heartbeat="11s",
        drain="12s",
        delivery_lease="13s",
        keep_runs_days=14,
    ).worker

    assert worker._pace == Pace(
        poll=7 * SECOND,
        batch=8,
        per_user=4,
        lease=40 * SECOND,
        heartbeat=11 * SECOND,
        drain=12 * SECOND,
        delivery_lease=13 * SECOND,
        keep_runs=timedelta(days=14),
    )
    claiming, pruner = worker._claiming, worker._kept["pruning"].chore
    assert (claiming.batch, claiming.seats.total, claiming.claimer.per_user_limit) == (8, 9, 4)
    assert claiming.claimer.lease == 40 * SECOND
    assert isinstance(pruner, Pruner)
    assert pruner.keep == timedelta(days=14)
    assert worker._deliverer.lease == 13 * SECOND
    off = assemble(enabled=False).worker
    assert not off._claiming.seats.free(RunKind.BACKGROUND, [])
    assert off._claiming.seats.free(RunKind.REPLY, []) == 5


def test_machines_reach_the_actions_and_the_tools(assemble: Build) -> None:
    def offer_nothing(_user: UserId, _terms: CommandTerms) -> Sequence[Offer]:
        return ()

    async def describe(*_arguments: object, **_more: object) -> str:
        return ""

    machines = Machines(
        engines={"local": ScriptedEngine()},
        default_profile="local",
        routes=Routes(names=("local",), chat="local"),
        workspace=offer_nothing,
        has_sign_ins=True,
        repository=describe,
    )
    deps = assemble(machines).deps

    assert (deps.engines, deps.default_profile) == (machines.engines, "local")
    assert (deps.routes, deps.describe_repository) == (machines.routes, describe)
    assert isinstance(deps.toolbox, Toolbox)
    assert (deps.toolbox.workspace, deps.toolbox.has_sign_ins) == (offer_nothing, True)


@requirement("B-preempt", "A-batch", "B-timeout")
def test_without_settings_all_limits_are_as_required(assemble: Build) -> None:
    app = assemble()

    assert app.deps.limits == Limits(
        run_timeout=5 * MINUTE,
        job_timeout=60 * MINUTE,
        yield_timeout=3 * SECOND,
        stop_timeout=10 * SECOND,
        shutdown_timeout=2 * SECOND,
        background_context=16_000,
        chat_context=100_000,
        max_tasks=20,
        min_interval=MINUTE,
    )
    assert (app.worker._pace.poll, app.worker._pace.batch) == (5 * SECOND, 5)


@asynccontextmanager
async def working(app: App) -> AsyncIterator[None]:
    stopping = asyncio.Event()
    task = asyncio.create_task(app.worker.run(stopping))
    try:
        yield
    finally:
        stopping.set()
        async with asyncio.timeout(10):
            await task


@requirement("A-cap", "Z-first")
async def test_the_only_user_has_all_seats_but_one_for_chat_and_one_for_short_runs(
    assemble: Build,
) -> None:
    engine, go_on = ScriptedEngine(), asyncio.Event()
    for _ in range(20):
        engine.then(Wait(go_on))
    app = assemble(Machines(engines={"scripted": engine}, default_profile="scripted"))
    deps, worker = app.deps, app.worker
    app.database.run(lambda tx: add_user(tx, USER))
    parent = await chat.start(deps, USER)
    ten = [JobRequest(description=f"{number}", prompt="Look.") for number in range(10)]

    async def has_seats(count: int) -> None:
        await until(lambda: engine.underway == count)
        await worker._claim_now()
        assert engine.underway == len(worker.underway) == count

    async with working(app):
        await jobs.start(deps, Origin(USER, parent.id), ten)
        await has_seats(3)
        for name in ("one", "two"):
            brief = Brief(title=name, prompt="Look.", schedule=Immediate())
            await start_work(deps, USER, brief)
        await has_seats(4)
        await chat.send(deps, USER, parent.id, "Hello?")
        await has_seats(5)
        go_on.set()
