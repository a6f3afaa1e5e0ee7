"""Where the parts meet: settings in, a running program out. The real clock is here too."""

import asyncio
import logging
import os
import signal
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import structlog
import uvicorn
from fastapi import FastAPI

from backburner.actions.deps import Deps, Limits
from backburner.api.app import build_api
from backburner.bus.local import LocalBus
from backburner.bus.postgres import PostgresBus
from backburner.core.allowance import Scope, parse_limit, parse_price
from backburner.core.conversation import Conversation
from backburner.core.errors import MachineFailed
from backburner.core.ids import UserId
from backburner.core.routing import NO_ROUTES, Routes
from backburner.core.run import Turn
from backburner.engine import installed, trial
from backburner.engine.trial import Target
from backburner.ports import Bus, Channel, Engine, Offer, Store, Toolbox
from backburner.ports.trial import Trial
from backburner.process import run as process
from backburner.process.command import Command
from backburner.settings import Profile, Settings
from backburner.store import opening
from backburner.store.db import Database
from backburner.store.dialect import is_sqlite
from backburner.store.opening import ask_for_an_answer, open_database
from backburner.tools.toolbox import Toolbox as Tools
from backburner.tools.toolbox import no_workspace
from backburner.worker.seats import Seats
from backburner.worker.service import Pace, Worker

#: How many seconds what is left has to end when the program has stopped.
LAST_WORDS = 1.0

_log = structlog.get_logger(__name__)


class Clock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def read(self) -> tuple[datetime, int]:
        """Give the time, and microseconds of a clock that stands still while the machine sleeps."""
        return self.now(), time.monotonic_ns() // 1000


class NoTools:
    """Until the actions are there that the tools are made of."""

    async def offers(self, turn: Turn, conversation: Conversation) -> Sequence[Offer]:
        del turn, conversation
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """What the actions reach the outside with, apart from the database."""

    engines: Mapping[str, Engine] = field(default_factory=dict)
    default_engine: str = ""
    #: The most runs at the same time, for each engine that has a limit of its own.
    seats: Mapping[str, int] = field(default_factory=dict)
    #: Which profile a new conversation gets; names of profiles are names of engines.
    routes: Routes = NO_ROUTES
    #: In place of the tools that agents are offered.
    toolbox: Toolbox | None = None
    #: The files and commands of a user, as tools.
    workspace: Callable[[UserId], Sequence[Offer]] = no_workspace
    channels: Mapping[str, Channel] = field(default_factory=dict)
    #: What the actions see of the database; something may stand in between.
    store: Callable[[Store], Store] = lambda store: store


@dataclass(frozen=True, slots=True)
class App:
    settings: Settings
    clock: Clock
    database: Database
    bus: Bus
    deps: Deps
    worker: Worker
    api: FastAPI


def run(
    settings: Settings,
    *,
    announce: Callable[[str], None],
    serves: bool = True,
    machines: Machines | None = None,
) -> None:
    """Run until a signal says stop; `announce` gets the address as soon as it is answered.

    Where it does not serve it only works, and `announce` gets the name of the worker.
    """
    prepare_data_folder(settings.data)
    clock = Clock()
    # Outside of the loop, which would not let an interrupt through while this takes its time.
    with closing(open_database(settings.database.get_secret_value(), clock.read)) as database:
        asyncio.run(
            _run(
                settings,
                clock,
                database,
                machines or build_machines(settings),
                announce,
                serves=serves,
            )
        )


async def _run(
    settings: Settings,
    clock: Clock,
    database: Database,
    machines: Machines,
    announce: Callable[[str], None],
    *,
    serves: bool,
) -> None:
    async with open_bus(database) as bus:
        app = build(settings, clock, database, bus, machines)
        if isinstance(bus, LocalBus):
            # Nobody else has this database: whatever somebody holds, they hold no longer.
            await app.worker.rescuer.settle_all()
        if serves:
            await serve(app, announce=announce)
        else:
            await work(app, announce=announce)
    await _leave()


async def _leave() -> None:
    """End whatever is left; what does not end must not keep the process."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    deaf = (await asyncio.wait(left, timeout=LAST_WORDS))[1] if left else set()
    if deaf:
        _log.error("something does not end, and is left behind", tasks=len(deaf))
        logging.shutdown()
        os._exit(0)


@asynccontextmanager
async def open_bus(database: Database) -> AsyncIterator[Bus]:
    if is_sqlite(database.engine):
        yield LocalBus()
    else:
        url = database.engine.url.set(drivername="postgresql")
        async with PostgresBus(url.render_as_string(hide_password=False)) as bus:
            yield bus


def build_machines(settings: Settings) -> Machines:
    """Make what the settings ask for: for each profile an engine, and who uses which."""
    return Machines(
        default_engine=settings.routes.chat, seats=settings.seats, routes=settings.routes
    )


def build(
    settings: Settings, clock: Clock, database: Database, bus: Bus, machines: Machines
) -> App:
    database.bus = bus
    deps = Deps(
        store=machines.store(database),
        engines=machines.engines,
        default_engine=machines.default_engine,
        toolbox=machines.toolbox or NoTools(),
        routes=machines.routes,
        channels=machines.channels,
        limits=Limits(run_timeout=settings.run_timeout),
        allowances=(
            parse_limit(settings.allowance_run, Scope.RUN),
            parse_limit(settings.allowance_conversation, Scope.CONVERSATION),
            parse_limit(settings.allowance_user, Scope.USER),
            parse_limit(settings.allowance_day, Scope.DAY),
        ),
        prices={name: parse_price(price) for name, price in settings.all_prices.items()},
    )
    if machines.toolbox is None:
        # Tools are made of actions, and a run is an action that needs the tools.
        deps = replace(deps, toolbox=Tools(deps, machines.workspace))
    return App(
        settings=settings,
        clock=clock,
        database=database,
        bus=bus,
        deps=deps,
        worker=_build_worker(settings, deps, bus, machines),
        api=_build_api(settings, database),
    )


def _build_worker(settings: Settings, deps: Deps, bus: Bus, machines: Machines) -> Worker:
    seats = Seats(
        total=settings.concurrency,
        of_engine=machines.seats,
        default_engine=machines.default_engine,
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


def _build_api(settings: Settings, database: Database) -> FastAPI:
    async def database_answers() -> None:
        await database.transact(ask_for_an_answer)

    async def data_folder_is_writable() -> None:
        await asyncio.to_thread(check_writable, settings.data)

    return build_api(
        hosts={"localhost", "127.0.0.1", "[::1]", _in_url(settings.host)},
        checks={"data folder": data_folder_is_writable, "database": database_answers},
    )


async def serve(app: App, *, announce: Callable[[str], None]) -> None:
    """Serve and work, until a signal says stop."""
    with closing(listen(app.settings.host, app.settings.port)) as listener:
        server, stopping = _Server(_server_config(app)), asyncio.Event()

        def stop() -> None:
            server.should_exit = True
            stopping.set()

        stop_on_signals(stop)
        async with asyncio.TaskGroup() as parts:
            parts.create_task(server.serve(sockets=[listener]))
            parts.create_task(app.worker.run(stopping))
            host, port = listener.getsockname()[:2]
            if await _answers(host, port):
                announce(f"http://{_in_url(host)}:{port}")
            elif not server.should_exit:
                raise MachineFailed("The server does not answer its own requests.")


async def work(app: App, *, announce: Callable[[str], None]) -> None:
    """Work without serving anybody, until a signal says stop."""
    stopping = asyncio.Event()
    stop_on_signals(stopping.set)
    announce(app.worker.name)
    await app.worker.run(stopping)


async def try_profile(profile: Profile) -> Trial:
    """See whether the model of a profile answers."""
    return await trial.try_model(
        Target(
            engine=profile.engine,
            model=profile.model,
            address=profile.address,
            key=profile.key.get_secret_value() if profile.key else None,
            token=profile.token.get_secret_value() if profile.token else None,
        )
    )


async def list_models(address: str, key: str | None) -> tuple[str, ...]:
    """List what a server that speaks OpenAI's protocol offers."""
    return await trial.list_models(Target(engine="openai", model="", address=address, key=key))


async def look_at_engine(engine: str) -> str:
    """Say what an engine works with here; what is missing is refused with what to install."""
    if engine != "claude":
        installed.need_library(engine)
        return ""
    program = await asyncio.to_thread(installed.find_claude_code)
    with tempfile.TemporaryDirectory() as home:
        command = Command(argv=(str(program), "--version"), env={"HOME": home}, cwd=Path(home))
        done = await process.run(command, within=timedelta(seconds=30))
    version = done.stdout.text.partition(" ")[0].strip()
    if not done.exit.ok or not version:
        raise MachineFailed(f"Claude Code does not start: {program}.", permanent=True)
    return f"Claude Code {version}"


def look_at_database(settings: Settings) -> str:
    """Say in what state the database is, without changing it."""
    found = opening.look_at_database(settings.database.get_secret_value())
    if found.in_use:
        return "in use by a Backburner that is running"
    if found.revision is None:
        return "empty; its tables are made at the first start"
    if found.revision == found.newest:
        return f"revision {found.revision}, up to date"
    return f"revision {found.revision}; brought to {found.newest} at the next start"


def further_checks(settings: Settings) -> Mapping[str, Callable[[], str | None]]:
    """Give what else can be missing on this machine: each says in a sentence what is, or None."""
    del settings
    return {}


def prepare_data_folder(folder: Path) -> None:
    """Make the folder, for its owner alone, and see that it can be used."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(folder, error) from error
    check_writable(folder)


def check_writable(folder: Path) -> None:
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _unusable(folder, error) from error


def listen(host: str, port: int) -> socket.socket:
    """Open the socket before anything else starts, so that a taken port stops the start."""
    address = "127.0.0.1" if host == "localhost" else host
    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    # A port that was used a moment ago is free.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise MachineFailed(
            f"Port {port} of {host} cannot be used: {(error.strerror or str(error)).lower()}.",
            hint="Stop what uses it, or choose another with --port; 0 takes any that is free.",
            permanent=True,
        ) from error
    return listener


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn would raise them again after a clean stop, and the exit code would be theirs.
        yield


def _server_config(app: App) -> uvicorn.Config:
    return uvicorn.Config(
        app.api,
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )


def stop_on_signals(stop: Callable[[], None]) -> None:
    """Let the first signal stop everything in peace, and any further one at once."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)

    def stop_once() -> None:
        stop()
        for number in signals:
            loop.remove_signal_handler(number)
            # Not through the loop: it may be what hangs.
            signal.signal(number, lambda *_: os._exit(130))

    for number in signals:
        loop.add_signal_handler(number, stop_once)


async def _answers(host: str, port: int) -> bool:
    """Wait until the server answers a request; False if it was stopped before."""
    request = f"GET /health HTTP/1.1\r\nHost: {_in_url(host)}\r\nConnection: close\r\n\r\n"
    try:
        # The socket listens already: the request waits there until somebody takes it.
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(request.encode())
        answer = await reader.readline()
        writer.close()
        await writer.wait_closed()
    except OSError:
        return False
    return b" 200 " in answer


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _unusable(folder: Path, error: OSError) -> MachineFailed:
    reason = (error.strerror or str(error)).lower()
    return MachineFailed(
        f"The data folder {folder} cannot be used: {reason}.",
        hint="Choose another with --data.",
        permanent=True,
    )
