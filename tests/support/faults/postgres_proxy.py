"""A way to a PostgreSQL server that can be cut, fall silent, or lose an answer."""

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import TypeVar

from sqlalchemy import make_url

T = TypeVar("T")
#: What a driver sends to commit.
COMMIT = b"COMMIT\0"
#: What a server sends when a sign-in has succeeded.
READY_FOR_QUERY = b"Z\x00\x00\x00\x05I"


@dataclass
class Line:
    is_silent: bool = False
    #: A new connection falls silent when its sign-in has succeeded.
    only_signs_in: bool = False


@dataclass
class HoldUp:
    """Statements with this text: noted, and not passed on before they may go on."""

    text: bytes
    statements: list[bytes] = field(default_factory=list)
    may_go_on: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class Loss:
    """The answer to a commit that is to be lost: of whoever says this before."""

    said: bytes
    happened: Event = field(default_factory=Event)


class Proxy:
    """In front of a server, whose URL it takes."""

    def __init__(self, server: str) -> None:
        self._server = make_url(server)
        host = self._server.query.get("host") or self._server.host or "127.0.0.1"
        self._host = host if isinstance(host, str) else host[0]
        self._port = self._server.port or 5432
        self._line = Line()
        #: Whoever is the first to say it takes it.
        self.loss: Loss | None = None
        self._hold_up: HoldUp | None = None
        self._carrying: set[asyncio.Task[None]] = set()
        self._ends: set[StreamWriter] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    @asynccontextmanager
    async def url(self) -> AsyncIterator[str]:
        """Give what connects through it."""
        self._loop = asyncio.get_running_loop()
        listening = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        here = self._server.difference_update_query(["host"]).set(host="127.0.0.1", port=port)
        try:
            yield here.render_as_string(hide_password=False)
        finally:
            listening.close()
            self._cut()
            await asyncio.gather(*self._carrying)

    def fall_silent(self) -> None:
        """Let nothing through, on the connections there are and on new ones."""
        self._line.is_silent = True

    def only_sign_in(self) -> None:
        """Let new connections sign in, and nothing after that: the server behind a pooler hangs."""
        self._line = Line(only_signs_in=True)

    def let_new_connections_through(self) -> None:
        """Leave those that fell silent as they are."""
        self._line = Line()

    @asynccontextmanager
    async def held_up(self, text: bytes) -> AsyncIterator[list[bytes]]:
        """Hold statements up meanwhile, and give all that come, also later."""
        self._hold_up = HoldUp(text)
        try:
            yield self._hold_up.statements
        finally:
            self._hold_up.may_go_on.set()

    async def hear(self, data: bytes) -> None:
        hold_up = self._hold_up
        if hold_up is not None and hold_up.text in data:
            hold_up.statements.append(data)
            await hold_up.may_go_on.wait()

    def cut(self) -> None:
        """Close all connections there are; also from another thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._cut)

    def _cut(self) -> None:
        for writer in self._ends:
            writer.close()
        self._ends.clear()

    def lose_answer_to_commit(self, said: bytes) -> Event:
        """Let the next commit of whoever says this take effect, and cut them off before they know.

        Gives what is set when it has happened.
        """
        self.loss = Loss(said)
        return self.loss.happened

    async def _carry(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._carrying.add(task)
        line = Line(only_signs_in=True) if self._line.only_signs_in else self._line
        there_reader, there_writer = await self._connect()
        self._ends |= {writer, there_writer}
        talk = _Talk(self)
        async with asyncio.TaskGroup() as ways:
            ways.create_task(_pass_on(reader, there_writer, line, talk.ask))
            ways.create_task(_pass_on(there_reader, writer, line, talk.answer))

    async def _connect(self) -> tuple[StreamReader, StreamWriter]:
        if self._host.startswith("/"):
            return await asyncio.open_unix_connection(f"{self._host}/.s.PGSQL.{self._port}")
        return await asyncio.open_connection(self._host, self._port)


@dataclass
class _Talk:
    """What is said on one connection, as far as an answer is to be lost."""

    proxy: Proxy
    loss: Loss | None = None
    commits: bool = False

    async def ask(self, data: bytes) -> bool:
        """Listen to what is asked; it always goes on."""
        await self.proxy.hear(data)
        loss = self.proxy.loss
        if loss is not None and loss.said in data:
            self.loss, self.proxy.loss = loss, None
        self.commits = self.loss is not None and COMMIT in data
        return True

    async def answer(self, data: bytes) -> bool:
        """See whether an answer goes on, or is lost with its connection."""
        del data
        if self.loss is None or not self.commits:
            return True
        self.loss.happened.set()
        return False


async def _pass_on(
    reader: StreamReader,
    writer: StreamWriter,
    line: Line,
    goes_on: Callable[[bytes], Awaitable[bool]],
) -> None:
    try:
        while (data := await reader.read(65536)) and await goes_on(data):
            if not line.is_silent:
                writer.write(data)
            line.is_silent |= line.only_signs_in and READY_FOR_QUERY in data
    except ConnectionError:
        pass
    if not line.is_silent:
        writer.close()


@contextmanager
def in_thread(opened: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """Run a proxy, a bus or a server beside whatever else there is."""
    entered, closing = Future[T](), asyncio.Event()

    async def hold() -> None:
        # In one task: some can be closed only where they were opened.
        async with opened as held:
            entered.set_result(held)
            await closing.wait()

    with (
        asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner,
        ThreadPoolExecutor(1) as thread,
    ):
        loop = runner.get_loop()
        ended = thread.submit(runner.run, hold())
        ended.add_done_callback(lambda _: entered.cancel())
        try:
            yield entered.result()
        finally:
            loop.call_soon_threadsafe(closing.set)
            ended.result()
