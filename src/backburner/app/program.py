"""The program from its start to its end."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass

import structlog

from backburner import __version__, log
from backburner.actions.connections.token_renewal import finish_renewals
from backburner.app.build import App, build, open_bus
from backburner.app.clock import Clock
from backburner.app.folder import prepare_data_folder
from backburner.app.machines import Machines, build_machines
from backburner.app.model_reload import ModelReloader
from backburner.app.models.stored import StoredModels
from backburner.app.signals import stop_on_signals
from backburner.bus.local import LocalBus
from backburner.core.errors import VaultLocked
from backburner.data_folder import LOG_FOLDER
from backburner.garbage import without_collection
from backburner.private_file import remove_abandoned
from backburner.process.confinement import RUNS_AS_ROOT
from backburner.settings import Settings
from backburner.store.db import Database
from backburner.store.lifecycle.backup import UNNAMED_COPY
from backburner.store.lifecycle.opening import open_database

#: Grace period for asyncio tasks that are left when the program has stopped.
EXIT_GRACE_SECONDS = 1.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """How this program was started."""

    #: How the user calls it.
    command: str = "backburner"
    #: Reads the settings again, with the same options; None: models are not reloaded.
    load_settings: Callable[[], Settings] | None = None

    @property
    def shown_command(self) -> str:
        """How the page names it: where it is on the disk is not for everybody."""
        return DEFAULT_INVOCATION.command if "/" in self.command else self.command


DEFAULT_INVOCATION = Invocation()


def run(
    settings: Settings,
    *,
    announce: Callable[[str], None],
    welcome: Callable[[str], None] = lambda _link: None,
    serves: bool = True,
    works: bool = True,
    machines: Machines | None = None,
    invocation: Invocation = DEFAULT_INVOCATION,
) -> None:
    """Run a server, a worker or both until SIGINT or SIGTERM.

    `announce` is called when it is ready, with the address of the server, or the name of the
    worker if there is no server. `welcome` is called with a sign-in link while the owner has no
    password.
    """
    starting, load_settings = ExitStack(), invocation.load_settings

    def announce_and_warn(name: str) -> None:
        starting.close()
        _log.info("server.started" if serves else "worker.started", at=name, version=__version__)
        announce(name)
        if advice := root_advice(settings, works=works):
            _log.info("server.runs_as_root", hint=advice)

    async def until_stopped(app: App, machines: Machines) -> None:
        if load_settings is None:
            await serve_or_work(app)
            return
        app.deps.command = invocation.shown_command
        reloader = ModelReloader(app, machines, load_settings, invocation.command)
        app.deps.reload_models = reloader.reload
        app.deps.model_setup = StoredModels(reloader)
        following = asyncio.create_task(reloader.follow_hints())
        try:
            await serve_or_work(app)
        finally:
            following.cancel()
            await reloader.close()

    async def serve_or_work(app: App) -> None:
        if serves:
            # Not above: a worker does without the web framework, which takes long to import.
            from backburner.app.server import serve  # noqa: PLC0415

            await serve(app, announce=announce_and_warn, welcome=welcome, works=works)
        elif settings.worker_port is not None:
            from backburner.app.server import serve_worker  # noqa: PLC0415

            await serve_worker(app, settings.worker_port, announce=announce_and_warn)
        else:
            await work(app, announce=announce_and_warn)

    with closing_log(), starting:
        # Much of the program is imported only now.
        starting.enter_context(without_collection())
        prepare_data_folder(settings.data)
        log.open_file(settings.data / LOG_FOLDER, "server" if serves else "worker")
        _run_with_database(settings, machines, invocation.command, until_stopped)


def root_advice(settings: Settings, *, works: bool) -> str:
    """Return why not to run commands of agents as root; empty where none are run so."""
    return RUNS_AS_ROOT if works and settings.commands != "off" and os.geteuid() == 0 else ""


@contextmanager
def closing_log() -> Iterator[None]:
    try:
        yield
    finally:
        log.close_file()


def _run_with_database(
    settings: Settings,
    machines: Machines | None,
    command: str,
    until_stopped: Callable[[App, Machines], Awaitable[None]],
) -> None:
    # The rest of a backup that was killed, with all conversations.
    remove_abandoned(settings.data / UNNAMED_COPY)
    clock = Clock()
    # Outside of the loop, where a signal can interrupt a slow migration.
    database = open_database(settings.database.get_secret_value(), clock.read)
    failure: BaseException | None = None
    try:
        machines = machines or build_machines(settings, command)
        asyncio.run(_run(settings, clock, database, machines, until_stopped))
    except BaseException as error:
        # Ctrl+C is no failure.
        failure = None if isinstance(error, KeyboardInterrupt) else error
        raise
    finally:
        if not database.close():
            _force_exit(failure, threads=1)


async def _run(
    settings: Settings,
    clock: Clock,
    database: Database,
    machines: Machines,
    until_stopped: Callable[[App, Machines], Awaitable[None]],
) -> None:
    failure: Exception | None = None
    try:
        async with open_bus(settings, database) as bus, AsyncExitStack() as stack:
            stack.push_async_callback(machines.close)
            app = build(settings, clock, database, bus, machines)
            for channel in app.deps.channels.values():
                stack.push_async_callback(channel.close)
            # The settings may have changed, or whatever was wrong with a model.
            await database.transact(lambda tx: tx.outages.probe_soon([*machines.engines]))
            await _warn_if_locked(app)
            if isinstance(bus, LocalBus):
                # No other process has this database open, so all leases are from before.
                await app.worker.rescuer.rescue_all()
            try:
                await until_stopped(app, machines)
            finally:
                await finish_renewals(app.deps)
    except Exception as error:
        failure = error
        raise
    finally:
        await _end_tasks(failure)


async def _warn_if_locked(app: App) -> None:
    """Log why secrets cannot be opened; whatever needs none of them works."""
    keys = app.deps.vault_keys
    try:
        if keys is not None:
            await app.database.read(lambda tx: keys.check(tx.secrets), single=True)
    except VaultLocked as error:
        _log.warning("vault.locked", error=error.message, hint=error.hint)


async def _end_tasks(failure: Exception | None) -> None:
    """Cancel the tasks that are left; one that ignores it must not keep the process alive."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    stuck = (await asyncio.wait(left, timeout=EXIT_GRACE_SECONDS))[1] if left else set()
    if stuck:
        _force_exit(failure, tasks=len(stuck))


def _force_exit(failure: BaseException | None = None, **stuck: int) -> None:
    _log.error("program.exit_forced", exc_info=failure, **stuck)
    log.close_file()
    logging.shutdown()
    os._exit(1 if failure else 0)


async def work(app: App, *, announce: Callable[[str], None]) -> None:
    """Run a worker without a server until a signal."""
    stopping = asyncio.Event()
    stop_on_signals(stopping.set)
    announce(app.worker.name)
    await app.worker.run(stopping)
