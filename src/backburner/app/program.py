"""The program from its start to its end."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, closing

import structlog

from backburner.app import owner
from backburner.app.build import App, build, open_bus
from backburner.app.clock import Clock
from backburner.app.folder import prepare_data_folder
from backburner.app.http_server import (
    Server,
    host_in_url,
    listen,
    server_config,
    stop_on_signals,
    wait_until_healthy,
)
from backburner.app.machines import Machines, build_machines
from backburner.bus.local import LocalBus
from backburner.core.errors import MachineFailed
from backburner.settings import Settings
from backburner.store.db import Database
from backburner.store.lifecycle.opening import open_database

#: Grace period for asyncio tasks that are left when the program has stopped.
EXIT_GRACE_SECONDS = 1.0

_log = structlog.get_logger(__name__)


def run(
    settings: Settings,
    *,
    announce: Callable[[str], None],
    welcome: Callable[[str], None] = lambda _link: None,
    serves: bool = True,
    works: bool = True,
    machines: Machines | None = None,
) -> None:
    """Run a server, a worker or both until SIGINT or SIGTERM.

    `announce` is called when it is ready, with the address of the server, or the name of the
    worker if there is no server. `welcome` is called with a sign-in link while the owner has no
    password.
    """
    prepare_data_folder(settings.data)
    clock = Clock()

    async def until_stopped(app: App) -> None:
        if serves:
            await serve(app, announce=announce, welcome=welcome, works=works)
        else:
            await work(app, announce=announce)

    # Outside of the loop, where a signal can interrupt a slow migration.
    with closing(open_database(settings.database.get_secret_value(), clock.read)) as database:
        machines = machines or build_machines(settings)
        asyncio.run(_run(settings, clock, database, machines, until_stopped))


async def _run(
    settings: Settings,
    clock: Clock,
    database: Database,
    machines: Machines,
    until_stopped: Callable[[App], Awaitable[None]],
) -> None:
    async with open_bus(database) as bus, AsyncExitStack() as stack:
        stack.push_async_callback(machines.close)
        app = build(settings, clock, database, bus, machines)
        if isinstance(bus, LocalBus):
            # No other process has this database open, so all leases are from before.
            await app.worker.rescuer.settle_all()
        await until_stopped(app)
    await _end_tasks()


async def _end_tasks() -> None:
    """Cancel the tasks that are left; one that ignores it must not keep the process alive."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    stuck = (await asyncio.wait(left, timeout=EXIT_GRACE_SECONDS))[1] if left else set()
    if stuck:
        _log.error("program.exit_forced", tasks=len(stuck))
        logging.shutdown()
        os._exit(0)


async def serve(
    app: App,
    *,
    announce: Callable[[str], None],
    welcome: Callable[[str], None],
    works: bool = True,
) -> None:
    """Run the server, and a worker if it `works`, until a signal."""
    settings = app.settings
    await owner.check_open(app)
    config = server_config(
        app.api,
        certificate=settings.tls_certificate,
        key=settings.tls_key,
        proxies=settings.proxies,
    )
    with closing(listen(settings.host, settings.port)) as listener:
        server, stopping = Server(config), asyncio.Event()

        def stop() -> None:
            server.should_exit = True
            # Event streams never end by themselves and would keep the server.
            app.api.state.feed.close()
            stopping.set()

        stop_on_signals(stop)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(server.serve(sockets=[listener]))
            host, port = listener.getsockname()[:2]
            if await wait_until_healthy(host, port, encrypted=config.is_ssl):
                address = f"{'https' if config.is_ssl else 'http'}://{host_in_url(host)}:{port}"
                link = await owner.welcome(app, settings.public_url or address)
                announce(address)
                if link:
                    welcome(link)
                # After the announcement, so that a client can watch all that the worker does.
                if works:
                    tasks.create_task(app.worker.run(stopping))
            elif not server.should_exit:
                raise MachineFailed("The server does not respond to its own requests.")


async def work(app: App, *, announce: Callable[[str], None]) -> None:
    """Run a worker without a server until a signal."""
    stopping = asyncio.Event()
    stop_on_signals(stopping.set)
    announce(app.worker.name)
    await app.worker.run(stopping)
