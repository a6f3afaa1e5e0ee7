"""Hints between processes that share a PostgreSQL database, by LISTEN and NOTIFY.

It has two connections: one listens; the other is opened with the first hint. Both are replaced when
they are lost, or silent for too long. Hints are sent by one task, never within the transaction that
they are about: a commit that notifies holds a lock of the whole server until it is on disk.
"""

import asyncio
import math
import os
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from datetime import timedelta
from types import TracebackType
from typing import Any, LiteralString, Self

import psycopg
import structlog

from backburner.bus.local import LocalBus, Mailbox
from backburner.core.errors import BackburnerError
from backburner.core.ids import ConversationId, UserId
from backburner.ports import EVERYTHING, Hint, HintKind

FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS = 0.1, 5.0
#: For sending pending hints when the bus is closed.
FLUSH_SECONDS = 1.0

#: TCP notices a dead peer after 25 seconds; our own check is usually earlier.
CONNECTION_OPTIONS: dict[str, Any] = {
    "application_name": "backburner bus",
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
_LISTEN = "LISTEN backburner"
_NOTIFY = "SELECT pg_notify('backburner', hint) FROM unnest(%s::text[]) AS hint"

_log = structlog.get_logger(__name__)
_Connection = psycopg.AsyncConnection[tuple[Any, ...]]


class PostgresBus:
    """An async context manager. Whenever it starts to listen, listeners get `EVERYTHING`."""

    def __init__(
        self,
        url: str,
        *,
        check_interval: timedelta = timedelta(seconds=15),
        reply_timeout: timedelta = timedelta(seconds=5),
    ) -> None:
        self._url = url
        self._check_seconds = check_interval.total_seconds()
        self._reply_seconds = reply_timeout.total_seconds()
        #: Sent with every hint, so that this process ignores its own.
        self._origin = secrets.token_hex(8)
        self._local = LocalBus()
        self._outgoing = Mailbox()
        self._tasks = asyncio.TaskGroup()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._listening = self._tasks.create_task(self._keep_connected(self._receive))
        self._sending = self._tasks.create_task(self._send_when_needed())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        cancelled = isinstance(error, asyncio.CancelledError)
        self._outgoing.close()
        try:
            if not cancelled:
                await asyncio.wait({self._sending}, timeout=FLUSH_SECONDS)
        finally:
            self._listening.cancel()
            self._sending.cancel()
            # The group would wrap any other error, which is the caller's own.
            await self._tasks.__aexit__(*((kind, error, trace) if cancelled else (None,) * 3))

    def hint(self, *hints: Hint) -> None:
        self._local.hint(*hints)
        self._outgoing.put(*hints)

    def listen(
        self,
        *kinds: HintKind,
        user: UserId | None = None,
        conversation: ConversationId | None = None,
    ) -> AbstractContextManager[Mailbox]:
        return self._local.listen(*kinds, user=user, conversation=conversation)

    async def _receive(self, connection: _Connection) -> None:
        await self._run(connection, _LISTEN)
        self._local.hint(EVERYTHING)
        while True:
            async for notify in connection.notifies(timeout=0):
                self._deliver(notify.payload)
            if not await _wait_readable(connection, within=self._check_seconds):
                # A dead server looks the same as an idle one.
                await self._run(connection, "SELECT 1")

    def _deliver(self, payload: str) -> None:
        origin, _, text = payload.partition(":")
        if origin != self._origin and (hint := read(text)):
            self._local.hint(hint)

    async def _send_when_needed(self) -> None:
        if await self._outgoing.wait():
            await self._keep_connected(self._send)

    async def _send(self, connection: _Connection) -> None:
        # Those that come while some are sent go together in the next statement.
        while hints := await self._outgoing.take():
            try:
                await self._run(connection, _NOTIFY, self._payloads(hints))
            except BaseException:
                # They may have been sent: twice does no harm, a lost one may cost seconds.
                self._outgoing.put(*hints)
                raise

    def _payloads(self, hints: Iterable[Hint]) -> list[str]:
        return [f"{self._origin}:{write(hint)}" for hint in hints]

    async def _keep_connected(self, use: Callable[[_Connection], Awaitable[None]]) -> None:
        """Call `use` with a connection, and again with a new one each time one is lost."""
        clock = asyncio.get_running_loop().time
        delay = 0.0
        while True:
            connected_at = math.inf
            try:
                async with self._connected() as connection:
                    connected_at = clock()
                    await use(connection)
                    return
            except (psycopg.Error, OSError) as error:
                delay = retry_delay(delay, lasted=clock() - connected_at)
                _log.warning("bus.disconnected", error=str(error).strip(), retry_in=delay)
            await asyncio.sleep(delay)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[_Connection]:
        connection = await psycopg.AsyncConnection.connect(
            self._url, autocommit=True, **CONNECTION_OPTIONS
        )
        try:
            yield connection
        finally:
            await connection.close()

    async def _run(
        self, connection: _Connection, query: LiteralString, *parameters: object
    ) -> None:
        """Run a statement; cut the connection if it times out or is cancelled.

        The driver's own cancellation waits up to ten seconds for the same silent server.
        """
        running = asyncio.create_task(_execute(connection, query, parameters))
        try:
            answered, _ = await asyncio.wait({running}, timeout=self._reply_seconds)
        finally:
            if not running.done():
                _cut(connection)
                await asyncio.wait({running})
            failure = running.exception()
        if not answered:
            raise TimeoutError("The database does not respond.") from failure
        if failure:
            raise failure


def retry_delay(last: float, *, lasted: float) -> float:
    """Return the seconds until the next attempt: doubled each time, unless a connection lasted."""
    if not last or lasted > MAX_RETRY_SECONDS:
        return FIRST_RETRY_SECONDS
    return min(2 * last, MAX_RETRY_SECONDS)


def write(hint: Hint) -> str:
    return f"{hint.kind}:{hint.user or ''}:{hint.conversation or ''}"


def read(text: str) -> Hint | None:
    """Read a payload; None if it is from another version and cannot be understood."""
    try:
        kind, user, conversation = text.split(":")
        return Hint(
            HintKind(kind),
            UserId(user) if user else None,
            ConversationId(conversation) if conversation else None,
        )
    except (ValueError, BackburnerError):
        return None


async def _execute(
    connection: _Connection, query: LiteralString, parameters: tuple[object, ...]
) -> None:
    await connection.execute(query, parameters)


async def _wait_readable(connection: _Connection, *, within: float) -> bool:
    """Wait for data. The driver's own wait wakes up ten times a second."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(connection.fileno(), readable.set)
    try:
        async with asyncio.timeout(within):
            return await readable.wait()
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(connection.fileno())


def _cut(connection: _Connection) -> None:
    """Shut the socket down below the driver, which then finds that it was lost."""
    with socket.socket(fileno=os.dup(connection.fileno())) as same, suppress(OSError):
        same.shutdown(socket.SHUT_RDWR)
