"""The server: builds the API, and serves it until a signal."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from urllib.parse import urlsplit

from fastapi import FastAPI

from backburner.api.app import build_api, build_monitoring_api
from backburner.api.http.caller_limits import CallerLimits
from backburner.api.routes.monitoring import Checks, CounterMetric
from backburner.app import owner
from backburner.app.build import App
from backburner.app.first_use import serve_tools
from backburner.app.folder import check_writable
from backburner.app.http_server import HttpServer, listen, server_config, wait_until_healthy
from backburner.app.signals import stop_on_signals
from backburner.app.urls import host_in_url, link_url
from backburner.core.errors import MachineFailed, StoreFailed
from backburner.store.failures import DISK_FULL, FREE_SPACE
from backburner.store.lifecycle.opening import file_of, write_something
from backburner.web.late_pages import add_late_pages

#: A server whose database had no space this many seconds ago is not ready.
DISK_FULL_SECONDS = 15.0


async def serve(
    app: App,
    *,
    announce: Callable[[str], None],
    welcome: Callable[[str], None],
    works: bool = True,
) -> None:
    """Run the server, and a worker if it `works`, until a signal."""
    api = build_server_api(app, works=works)

    async def greet(address: str) -> None:
        app.deps.base_url = link_url(app.settings, address)
        link = await owner.welcome(app, app.settings.public_url or address)
        announce(address)
        if link:
            welcome(link)

    # Event streams never end by themselves and would keep the server.
    await _serve(app, api, app.settings.port, greet, close=api.state.feed.close, works=works)


async def serve_worker(app: App, port: int, *, announce: Callable[[str], None]) -> None:
    """Run a worker whose `/health`, `/ready` and `/metrics` are served, until a signal."""

    async def greet(address: str) -> None:
        announce(f"{app.worker.name} ({address})")

    await _serve(app, build_worker_api(app), port, greet, option="--worker-port")


async def _serve(
    app: App,
    api: FastAPI,
    port: int,
    greet: Callable[[str], Awaitable[None]],
    *,
    option: str = "--port",
    close: Callable[[], None] = lambda: None,
    works: bool = True,
) -> None:
    """Serve an API, and call `greet` with its address when it responds; `close` ends streams."""
    settings = app.settings
    await owner.check_open(app)
    config = server_config(
        api,
        certificate=settings.tls_certificate,
        key=settings.tls_key,
        proxies=settings.proxies,
    )
    with closing(listen(settings.host, port, option=option)) as listener:
        server, stopping = HttpServer(config), asyncio.Event()

        def stop() -> None:
            server.should_exit = True
            close()
            stopping.set()

        stop_on_signals(stop)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(server.serve(sockets=[listener]))
            host, port = listener.getsockname()[:2]
            if await wait_until_healthy(host, port, encrypted=config.is_ssl):
                await greet(f"{'https' if config.is_ssl else 'http'}://{host_in_url(host)}:{port}")
                # After the announcement, so that a client can watch all that the worker does.
                if works:
                    tasks.create_task(app.worker.run(stopping))
            elif not server.should_exit:
                raise MachineFailed("The server does not respond to its own requests.")


def build_server_api(app: App, *, works: bool = True) -> FastAPI:
    settings = app.settings
    hosts = {"localhost", "127.0.0.1", "[::1]", host_in_url(settings.host)}
    if public_host := urlsplit(settings.public_url).hostname:
        hosts.add(host_in_url(public_host))

    api = build_api(
        app.deps,
        hosts=hosts,
        checks=_checks(app, works=works),
        public_url=settings.public_url,
        tools=serve_tools(app.deps),
    )
    api.state.counters += _counters(app, works=works)
    api.state.limits = CallerLimits(settings.requests_per_minute, settings.connections_per_user)
    add_late_pages(api)
    return api


def build_worker_api(app: App) -> FastAPI:
    api = build_monitoring_api(app.deps, checks=_checks(app, works=True))
    api.state.counters += _counters(app, works=True)
    return api


def _counters(app: App, *, works: bool) -> Iterator[CounterMetric]:
    yield CounterMetric("store_errors", "Failed transactions.", "kind", app.database.errors)
    if works:
        yield CounterMetric("runs_finished", "Runs.", "outcome", app.worker.finished)


def _checks(app: App, *, works: bool) -> Checks:
    data = app.settings.data
    file = file_of(app.settings.database.get_secret_value())

    async def check_data_folder() -> None:
        await asyncio.to_thread(check_writable, data)

    async def check_database() -> None:
        full_at = app.database.disk_full_at
        if full_at is not None and time.monotonic() - full_at < DISK_FULL_SECONDS:
            # Some writes need no more space, and this one is small.
            raise StoreFailed(DISK_FULL, hint=FREE_SPACE)
        if file is not None and not file.exists():
            raise StoreFailed(f"The database file {file} is gone.", hint="Restore a backup.")
        await app.database.transact(write_something)

    async def check_worker() -> None:
        app.worker.check()

    checks = {"data folder": check_data_folder, "database": check_database}
    worker = {"worker": check_worker, "queue": app.worker.check_queue}
    return checks | (worker if works else {})
