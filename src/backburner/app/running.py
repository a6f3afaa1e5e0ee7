"""Runs the program from its start to its end."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, closing

import structlog

from backburner.app import owner
from backburner.app.building import App, build, open_bus
from backburner.app.clock import Clock
from backburner.app.folder import prepare_data_folder
from backburner.app.machines import Machines, build_machines
from backburner.app.serving import Server, answers, in_url, listen, server_config, stop_on_signals
from backburner.bus.local import LocalBus
from backburner.core.errors import MachineFailed
from backburner.settings import Settings
from backburner.store.db import Database
from backburner.store.lifecycle.opening import open_database

#: How many seconds what is left has to end when the program has stopped.
LAST_WORDS = 1.0

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
    """Run until a signal says stop; `announce` gets the address as soon as it is answered.

    `welcome` gets a link for the owner to sign in with, while they have no password. Where it does
    not serve it only works, and `announce` gets the name of the worker; where it does not work,
    others have to.
    """
    prepare_data_folder(settings.data)
    clock = Clock()

    async def until_stopped(app: App) -> None:
        if serves:
            await serve(app, announce=announce, welcome=welcome, works=works)
        else:
            await work(app, announce=announce)

    # Outside of the loop, which would not let an interrupt through while this takes its time.
    with closing(open_database(settings.database.get_secret_value(), clock.read)) as database:
        made = machines or build_machines(settings)
        asyncio.run(_run(settings, clock, database, made, until_stopped))


async def _run(
    settings: Settings,
    clock: Clock,
    database: Database,
    machines: Machines,
    until_stopped: Callable[[App], Awaitable[None]],
) -> None:
    async with open_bus(database) as bus, AsyncExitStack() as ending:
        ending.push_async_callback(machines.close)
        app = build(settings, clock, database, bus, machines)
        if isinstance(bus, LocalBus):
            # Nobody else has this database: whatever somebody holds, they hold no longer.
            await app.worker.rescuer.settle_all()
        await until_stopped(app)
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


async def serve(
    app: App,
    *,
    announce: Callable[[str], None],
    welcome: Callable[[str], None],
    works: bool = True,
) -> None:
    """Serve and perhaps work, until a signal says stop."""
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
            # What goes on for ever would keep it.
            app.api.state.feed.close()
            stopping.set()

        stop_on_signals(stop)
        async with asyncio.TaskGroup() as parts:
            parts.create_task(server.serve(sockets=[listener]))
            host, port = listener.getsockname()[:2]
            if await answers(host, port, encrypted=config.is_ssl):
                address = f"{'https' if config.is_ssl else 'http'}://{in_url(host)}:{port}"
                link = await owner.welcome(app, settings.public_url or address)
                announce(address)
                if link:
                    welcome(link)
                # Whoever hears that it is ready can see all that it does.
                if works:
                    parts.create_task(app.worker.run(stopping))
            elif not server.should_exit:
                raise MachineFailed("The server does not answer its own requests.")


async def work(app: App, *, announce: Callable[[str], None]) -> None:
    """Work without serving anybody, until a signal says stop."""
    stopping = asyncio.Event()
    stop_on_signals(stopping.set)
    announce(app.worker.name)
    await app.worker.run(stopping)
