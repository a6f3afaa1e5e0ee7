"""Assembles the program: machines, actions and worker. `server` adds the API."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from backburner.actions.connections.sessions import open_session
from backburner.actions.deps import Deps, DiscoverySettings, Limits
from backburner.app.backup import back_up_to_unnamed_file
from backburner.app.clock import Clock
from backburner.app.folder import remove_folders
from backburner.app.folders import folder_rules
from backburner.app.machines import Machines, NoTools
from backburner.app.vault import build_vault
from backburner.bus.local import LocalBus
from backburner.channels.push.channel import PushChannel
from backburner.core.allowance import AllowanceScope, parse_limit
from backburner.core.channels.push import PUSH
from backburner.core.content.file import MEGABYTE, FileLimits
from backburner.core.errors import BadSetting
from backburner.live.drafts import Broadcast
from backburner.ports import Bus
from backburner.process.line_reader import read_line
from backburner.settings import PriceList, Settings
from backburner.store.db import Database
from backburner.store.dialect import is_pooled, is_sqlite
from backburner.tools.interrupted_commands import InterruptedCommands
from backburner.tools.toolbox import Toolbox as Tools
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


@asynccontextmanager
async def open_bus(settings: Settings, database: Database) -> AsyncIterator[Bus]:
    if is_sqlite(database.engine):
        yield LocalBus()
        return
    direct = settings.database_direct_url
    if direct is None and is_pooled(database.engine):
        raise BadSetting(
            "The database is behind a connection pooler in transaction mode, which does not pass"
            " on notifications.",
            hint="Set database_direct_url to the URL of the server itself,"
            " or use the pooler in session mode.",
        )
    # Not above: with SQLite, the PostgreSQL driver is not needed.
    from backburner.bus.postgres import PostgresBus  # noqa: PLC0415

    url = database.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    async with PostgresBus(direct.get_secret_value() if direct else url) as bus:
        yield bus


def build(
    settings: Settings, clock: Clock, database: Database, bus: Bus, machines: Machines
) -> App:
    database.bus = bus
    vault = build_vault(settings)
    deps = Deps(
        started_at=clock.now(),
        drafts=Broadcast(),
        store=machines.store(database),
        bus=bus,
        engines=machines.engines,
        default_profile=machines.default_profile,
        toolbox=NoTools(),
        routes=machines.routes,
        model_servers=machines.model_servers,
        agents=settings.agents,
        tool_servers=machines.tool_servers,
        oauth=machines.oauth,
        push=machines.push,
        mcp_programs=settings.mcp_programs,
        # Without it, a server knows its address when it listens, and a worker knows none.
        base_url=settings.public_url,
        injection_proof=machines.injection_proof,
        claude=machines.claude,
        limits=Limits(
            run_timeout=settings.run_timeout,
            job_timeout=settings.job_timeout,
            background_context=settings.context,
            chat_context=settings.context_chat,
            max_tasks=settings.max_active_tasks,
            min_interval=settings.min_interval,
            files=FileLimits(
                file=settings.max_file_mb * MEGABYTE, user=settings.max_files_mb * MEGABYTE
            ),
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
            quiet_period=settings.idle_threshold,
        ),
        folders=folder_rules(settings),
        vault=vault,
        own_model_keys=settings.own_model_keys,
        vault_keys=vault,
        describe_repository=machines.repository,
        remove_files=partial(remove_folders, (settings.workspaces, settings.kept_changes)),
        interrupted_commands=InterruptedCommands(settings.workspaces, settings.kept_changes).take,
        read_line=read_line,
        copy_database=lambda: back_up_to_unnamed_file(database, settings.data),
    )
    # A channel reads and notes what it needs to know of its targets.
    deps.channels = {PUSH: PushChannel(deps), **machines.channels}
    # Tools call actions, and the actions of a run need the tools.
    deps.toolbox = Tools(
        deps,
        machines.workspace,
        has_sign_ins=machines.has_sign_ins,
        make_folder=machines.attachments,
        open_session=partial(open_session, deps),
    )
    return App(
        settings=settings,
        clock=clock,
        database=database,
        bus=bus,
        deps=deps,
        worker=_build_worker(settings, deps, bus, machines),
    )


def _build_worker(settings: Settings, deps: Deps, bus: Bus, machines: Machines) -> Worker:
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
    return Worker(deps, bus, seats=make_seats(settings, machines), pace=pace)


def make_seats(settings: Settings, machines: Machines) -> Seats:
    return Seats(
        total=settings.concurrency,
        per_profile=machines.seats,
        default_profile=machines.default_profile,
        has_room=machines.has_room,
        chat_only=not settings.enabled,
    )
