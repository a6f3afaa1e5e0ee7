"""A way to a server that can fall silent: nothing is closed, and nothing gets through."""

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import psycopg
from psycopg.conninfo import make_conninfo


@dataclass
class Line:
    is_silent: bool = False


class Proxy:
    """In front of a server, whose URL it takes."""

    def __init__(self, server: str) -> None:
        with psycopg.connect(server) as connection:
            self._host, self._port = connection.info.host, connection.info.port
        self._server = server
        self._line = Line()
        self._carrying: set[asyncio.Task[None]] = set()
        self._ends: set[StreamWriter] = set()

    @asynccontextmanager
    async def url(self) -> AsyncIterator[str]:
        """Give what connects through it."""
        listening = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        try:
            yield make_conninfo(self._server, host="127.0.0.1", port=port)
        finally:
            listening.close()
            for writer in self._ends:
                writer.close()
            await asyncio.gather(*self._carrying)

    def fall_silent(self) -> None:
        """Let nothing through, on the connections there are and on new ones."""
        self._line.is_silent = True

    def let_new_connections_through(self) -> None:
        """Leave those that fell silent as they are."""
        self._line = Line()

    async def _carry(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._carrying.add(task)
        line = self._line
        there_reader, there_writer = await self._connect()
        self._ends |= {writer, there_writer}
        async with asyncio.TaskGroup() as ways:
            ways.create_task(_pass_on(reader, there_writer, line))
            ways.create_task(_pass_on(there_reader, writer, line))

    async def _connect(self) -> tuple[StreamReader, StreamWriter]:
        if self._host.startswith("/"):
            return await asyncio.open_unix_connection(f"{self._host}/.s.PGSQL.{self._port}")
        return await asyncio.open_connection(self._host, self._port)


async def _pass_on(reader: StreamReader, writer: StreamWriter, line: Line) -> None:
    try:
        while data := await reader.read(65536):
            if not line.is_silent:
                writer.write(data)
    except ConnectionError:
        pass
    if not line.is_silent:
        writer.close()
