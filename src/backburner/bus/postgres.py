"""Hints between processes that share a PostgreSQL database, by LISTEN and NOTIFY.

Two connections of its own: one listens; the other is opened with the first hint to be sent outside
a transaction. Both are replaced when they are lost, or silent for too long.
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

from backburner.bus.local import LocalBus, Mailbox, gather
from backburner.core.errors import BackburnerError
from backburner.core.ids import ConversationId, UserId
from backburner.ports import EVERYTHING, Hint, HintKind, NotifyStatement

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
#: How long closing waits for the last hints to be sent.
LAST_WORDS = 1.0

#: A dead peer is noticed after 25 seconds by TCP; usually our own check is earlier.
CONNECTION: dict[str, Any] = {
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
    """To be used in `async with`. Whenever it starts to listen, listeners get `EVERYTHING`."""

    def __init__(
        self,
        url: str,
        *,
        check_every: timedelta = timedelta(seconds=15),
        patience: timedelta = timedelta(seconds=5),
    ) -> None:
        self._url = url
        self._check_every = check_every.total_seconds()
        self._patience = patience.total_seconds()
        #: Goes with every hint, so that this process knows its own when they come back.
        self._origin = secrets.token_hex(8)
        self._here = LocalBus()
        self._outgoing = Mailbox()
        self._tasks = asyncio.TaskGroup()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._listening = self._tasks.create_task(self._keep_connected(self._receive))
        self._sending = self._tasks.create_task(self._send_if_ever())
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
                await asyncio.wait({self._sending}, timeout=LAST_WORDS)
        finally:
            self._listening.cancel()
            self._sending.cancel()
            # Any other error is the caller's own, and the group would wrap it.
            await self._tasks.__aexit__(*((kind, error, trace) if cancelled else (None,) * 3))

    def hint(self, *hints: Hint) -> None:
        self._here.hint(*hints)
        self._outgoing.put(*hints)

    def statement(self, hints: Iterable[Hint]) -> NotifyStatement | None:
        gathered: dict[Hint, None] = {}
        gather(gathered, hints)
        return NotifyStatement(_NOTIFY, (self._written(gathered),)) if gathered else None

    def committed(self, *hints: Hint) -> None:
        self._here.hint(*hints)

    def listen(
        self,
        *kinds: HintKind,
        user: UserId | None = None,
        conversation: ConversationId | None = None,
    ) -> AbstractContextManager[Mailbox]:
        return self._here.listen(*kinds, user=user, conversation=conversation)

    async def _receive(self, connection: _Connection) -> None:
        await self._ask(connection, _LISTEN)
        self._here.hint(EVERYTHING)
        while True:
            async for notify in connection.notifies(timeout=0):
                self._hear(notify.payload)
            if not await _has_news(connection, within=self._check_every):
                # If the other end is gone, it looks the same as if nothing had happened.
                await self._ask(connection, "SELECT 1")

    def _hear(self, payload: str) -> None:
        origin, _, text = payload.partition(":")
        if origin != self._origin and (hint := read(text)):
            self._here.hint(hint)

    async def _send_if_ever(self) -> None:
        if await self._outgoing.wait():
            await self._keep_connected(self._send)

    async def _send(self, connection: _Connection) -> None:
        while hints := await self._outgoing.take():
            try:
                await self._ask(connection, _NOTIFY, self._written(hints))
            except BaseException:
                # Perhaps they did go out: twice does no harm, never may cost seconds.
                self._outgoing.put(*hints)
                raise

    def _written(self, hints: Iterable[Hint]) -> list[str]:
        return [f"{self._origin}:{write(hint)}" for hint in hints]

    async def _keep_connected(self, use: Callable[[_Connection], Awaitable[None]]) -> None:
        """Use a connection until that is done, a new one each time one is lost."""
        clock = asyncio.get_running_loop().time
        pause = 0.0
        while True:
            connected_at = math.inf
            try:
                async with self._connected() as connection:
                    connected_at = clock()
                    await use(connection)
                    return
            except (psycopg.Error, OSError) as error:
                pause = pause_after(pause, lasted=clock() - connected_at)
                _log.warning("bus_disconnected", error=str(error).strip(), again_in=pause)
            await asyncio.sleep(pause)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[_Connection]:
        connection = await psycopg.AsyncConnection.connect(self._url, autocommit=True, **CONNECTION)
        try:
            yield connection
        finally:
            await connection.close()

    async def _ask(
        self, connection: _Connection, query: LiteralString, *parameters: object
    ) -> None:
        """Run a statement; cut the connection if there is no answer in time, or if cancelled.

        The driver's own cancelling would wait for the same silent server for up to ten seconds.
        """
        asked = asyncio.create_task(_execute(connection, query, parameters))
        try:
            answered, _ = await asyncio.wait({asked}, timeout=self._patience)
        finally:
            if not asked.done():
                _cut(connection)
                await asyncio.wait({asked})
            failure = asked.exception()
        if not answered:
            raise TimeoutError("The server does not answer.") from failure
        if failure:
            raise failure


def pause_after(last: float, *, lasted: float) -> float:
    """Say how long to wait before connecting again: longer each time, unless one lasted."""
    if not last or lasted > LONGEST_PAUSE:
        return FIRST_PAUSE
    return min(2 * last, LONGEST_PAUSE)


def write(hint: Hint) -> str:
    return f"{hint.kind}:{hint.user or ''}:{hint.conversation or ''}"


def read(text: str) -> Hint | None:
    """Read what `write` wrote; None if another version wrote what only that one understands."""
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


async def _has_news(connection: _Connection, *, within: float) -> bool:
    """Wait for something to read. The driver's own waiting wakes up ten times a second."""
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
    """End the connection below the driver, which then finds that it was lost."""
    with socket.socket(fileno=os.dup(connection.fileno())) as same, suppress(OSError):
        same.shutdown(socket.SHUT_RDWR)
