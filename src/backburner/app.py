"""Where the parts meet: settings in, a running program out. The real clock is here too."""

import asyncio
import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from backburner.api.app import build_api
from backburner.core.errors import MachineFailed
from backburner.settings import Settings
from backburner.store.db import Database
from backburner.store.opening import ask_for_an_answer, open_database


class Clock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def read(self) -> tuple[datetime, int]:
        """Give the time, and microseconds of a clock that stands still while the machine sleeps."""
        return self.now(), time.monotonic_ns() // 1000


@dataclass(frozen=True, slots=True)
class App:
    settings: Settings
    clock: Clock
    database: Database
    api: FastAPI


def run(settings: Settings, *, announce: Callable[[str], None]) -> None:
    """Run until a signal says stop; `announce` gets the address as soon as it is answered."""
    prepare_data_folder(settings.data)
    clock = Clock()
    # Outside of the loop, which would not let an interrupt through while this takes its time.
    with closing(open_database(settings.database.get_secret_value(), clock.read)) as database:
        asyncio.run(serve(build(settings, clock, database), announce=announce))


def build(settings: Settings, clock: Clock, database: Database) -> App:
    async def database_answers() -> None:
        await database.transact(ask_for_an_answer)

    async def data_folder_is_writable() -> None:
        await asyncio.to_thread(check_writable, settings.data)

    api = build_api(
        hosts={"localhost", "127.0.0.1", "[::1]", _in_url(settings.host)},
        checks={"data folder": data_folder_is_writable, "database": database_answers},
    )
    return App(settings=settings, clock=clock, database=database, api=api)


async def serve(app: App, *, announce: Callable[[str], None]) -> None:
    with closing(listen(app.settings.host, app.settings.port)) as listener:
        server = _Server(_server_config(app))
        stop_on_signals(server)
        async with asyncio.TaskGroup() as parts:
            parts.create_task(server.serve(sockets=[listener]))
            host, port = listener.getsockname()[:2]
            if await _answers(host, port):
                announce(f"http://{_in_url(host)}:{port}")
            elif not server.should_exit:
                raise MachineFailed("The server does not answer its own requests.")


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


def stop_on_signals(server: uvicorn.Server) -> None:
    """Let the first signal stop the server in peace, and any further one at once."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)

    def stop() -> None:
        server.should_exit = True
        for number in signals:
            loop.remove_signal_handler(number)
            # Not through the loop: it may be what hangs.
            signal.signal(number, lambda *_: os._exit(130))

    for number in signals:
        loop.add_signal_handler(number, stop)


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
