"""Assembles the program: machines, actions, API and worker."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI

from backburner.actions.deps import Deps, DiscoverySettings, Limits
from backburner.api.app import build_api
from backburner.api.routes.mcp import ServeTools
from backburner.app.backup import back_up_to_unnamed_file
from backburner.app.clock import Clock
from backburner.app.folder import check_writable, remove_folder
from backburner.app.http_server import host_in_url
from backburner.app.machines import Machines, NoTools
from backburner.bus.local import LocalBus
from backburner.bus.postgres import PostgresBus
from backburner.core.allowance import AllowanceScope, parse_limit
from backburner.live.drafts import Broadcast
from backburner.ports import Bus
from backburner.settings import PriceList, Settings
from backburner.store.db import Database
from backburner.store.dialect import is_sqlite
from backburner.store.lifecycle.opening import ask_for_an_answer
from backburner.tools.toolbox import Toolbox as Tools
from backburner.web import pages
from backburner.worker.seats import Seats
from backburner.worker.service import Pace, Worker


@dataclass(frozen=True, slots=True)
class App:
    settings: Settings
    clock: Clock
    database: Database
    bus: Bus
    deps: Deps
    worker: Worker
    api: FastAPI


@asynccontextmanager
async def open_bus(database: Database) -> AsyncIterator[Bus]:
    if is_sqlite(database.engine):
        yield LocalBus()
    else:
        url = database.engine.url.set(drivername="postgresql")
        async with PostgresBus(url.render_as_string(hide_password=False)) as bus:
            yield bus


def build(
    settings: Settings, clock: Clock, database: Database, bus: Bus, machines: Machines
) -> App:
    database.bus = bus
    deps = Deps(
        drafts=Broadcast(),
        store=machines.store(database),
        bus=bus,
        engines=machines.engines,
        default_profile=machines.default_profile,
        toolbox=NoTools(),
        routes=machines.routes,
        channels=machines.channels,
        injection_proof=machines.injection_proof,
        claude=machines.claude,
        limits=Limits(
            run_timeout=settings.run_timeout,
            context=settings.context,
            context_chat=settings.context_chat,
            most_tasks=settings.max_active_tasks,
        ),
        allowances=(
            parse_limit(settings.allowance_run, AllowanceScope.RUN),
            parse_limit(settings.allowance_conversation, AllowanceScope.CONVERSATION),
            parse_limit(settings.allowance_user, AllowanceScope.USER),
            parse_limit(settings.allowance_day, AllowanceScope.DAY),
        ),
        price_of=PriceList(settings.prices, settings.profiles.values(), now=clock.now).find,
        discovery=DiscoverySettings(
            allowed=settings.discovery_enabled,
            every=settings.discovery_interval,
            after=settings.idle_threshold,
        ),
        look_at_repository=machines.repository,
        remove_files=lambda user: remove_folder(settings.workspaces, user),
        copy_database=lambda: back_up_to_unnamed_file(database, settings.data),
    )
    # Tools call actions, and the actions of a run need the tools.
    deps = replace(deps, toolbox=Tools(deps, machines.workspace))
    return App(
        settings=settings,
        clock=clock,
        database=database,
        bus=bus,
        deps=deps,
        worker=_build_worker(settings, deps, bus, machines),
        api=_build_api(settings, deps, database),
    )


def _build_worker(settings: Settings, deps: Deps, bus: Bus, machines: Machines) -> Worker:
    seats = Seats(
        total=settings.concurrency,
        per_profile=machines.seats,
        default_profile=machines.default_profile,
        has_room=machines.has_room,
        only_chat=not settings.enabled,
    )
    pace = Pace(
        poll=settings.poll_interval,
        batch=settings.batch,
        per_user=settings.per_user_concurrency,
        lease=settings.lease,
        heartbeat=settings.heartbeat,
        keep_runs=timedelta(days=settings.keep_runs_days),
        drain=settings.drain,
        delivery_lease=settings.delivery_lease,
    )
    return Worker(deps, bus, seats=seats, pace=pace)


def _build_api(settings: Settings, deps: Deps, database: Database) -> FastAPI:
    async def check_database() -> None:
        await database.transact(ask_for_an_answer)

    async def check_data_folder() -> None:
        await asyncio.to_thread(check_writable, settings.data)

    api = build_api(
        deps,
        hosts={
            *("localhost", "127.0.0.1", "[::1]"),
            host_in_url(settings.host),
            *_public_host(settings),
        },
        checks={"data folder": check_data_folder, "database": check_database},
        public_url=settings.public_url,
        tools=serve_tools(deps),
    )
    api.routes.extend(pages.build_routes())
    return api


def _public_host(settings: Settings) -> Iterator[str]:
    if name := urlsplit(settings.public_url).hostname:
        yield host_in_url(name)


def serve_tools(deps: Deps) -> ServeTools:
    """Serve our tools to MCP clients, loaded at the first request: the MCP library is slow."""
    loading: asyncio.Task[ServeTools] | None = None

    async def serve(*call: Any) -> None:
        nonlocal loading
        if loading is None:
            # In a thread, so that other requests continue meanwhile.
            loading = asyncio.create_task(asyncio.to_thread(_load_tools, deps))
        await (await asyncio.shield(loading))(*call)

    return serve


def _load_tools(deps: Deps) -> Callable[..., Awaitable[None]]:
    from backburner.tools.mcp_server import McpServer  # noqa: PLC0415

    return McpServer(deps)
