"""The transport of a session with a program: a JSON-RPC message on each line of its pipes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from backburner.core.errors import ProcessFailed
from backburner.gateway.upstream.definitions import clean_words
from backburner.gateway.upstream.faults import Effect, Fault
from backburner.gateway.upstream.limits import (
    ANSWER_LIMIT,
    count_values,
)
from backburner.gateway.upstream.redaction import Redaction
from backburner.ports import RunningProgram, StartProgram, StdioProgram

#: Of lines that are no messages, such as greetings. More: it is no MCP server.
MAX_OTHER_LINES = 1_000
#: Of lines with nothing in them, which some write after each message.
MAX_BLANK_LINES = 100_000
MAX_QUOTED_CHARS = 200
MAX_ERROR_CHARS = 1_000


class ProgramStreams:
    """Entered as a transport of the SDK."""

    def __init__(self, start: StartProgram, program: StdioProgram, redaction: Redaction) -> None:
        self._start = start
        self._program = program
        self._redaction = redaction
        #: Why the program has ended, or was ended; None: it runs.
        self.ended: Fault | None = None
        self._other_lines = 0
        self._blank_lines = 0
        self._quoted = ""
        self._running: RunningProgram | None = None
        self._streams = self._open()

    def remark(self) -> str:
        """Say what it wrote besides messages; empty: nothing."""
        parts = []
        if self._quoted:
            parts.append(f"It wrote lines that are not MCP, such as {self._quoted!r}.")
        errors = self._running.errors() if self._running is not None else ""
        if words := clean_words(errors, limit=2 * MAX_ERROR_CHARS)[-MAX_ERROR_CHARS:]:
            parts.append(f"Its errors: {words}")
        return " ".join(parts)

    async def __aenter__(self) -> tuple[Any, Any]:
        return await self._streams.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._streams.__aexit__(kind, error, trace)

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[tuple[Any, Any]]:
        async with self._start(self._program) as running:
            self._running = running
            incoming, received = anyio.create_memory_object_stream[SessionMessage](0)
            sending, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
            tasks = [
                asyncio.create_task(self._read(running, incoming)),
                asyncio.create_task(self._write(running, outgoing)),
            ]
            try:
                yield received, sending
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
                for stream in (incoming, received, sending, outgoing):
                    stream.close()

    async def _read(self, running: RunningProgram, incoming: Any) -> None:
        try:
            why = await self._read_lines(running, incoming)
        except anyio.BrokenResourceError:
            # The session is closing.
            return
        # No call can be made from here on.
        self.ended = Fault(effect=Effect.UNKNOWN, why="ended.", reopen=True)
        exit_words = await running.end()
        # One that writes something else will do so again.
        is_useless = self._writes_other_things()
        self.ended = replace(self.ended, why=why or exit_words, hint=self.remark(), once=is_useless)
        incoming.close()

    async def _read_lines(self, running: RunningProgram, incoming: Any) -> str:
        """Read messages until the program ends; or return why it has to be ended."""
        rest = bytearray()
        values = 0
        while chunk := await running.read():
            *lines, last = chunk.split(b"\n")
            for line in lines:
                rest += line
                if count_values(bytes(rest)) > ANSWER_LIMIT.values:
                    return "wrote a message with too many values."
                await self._receive(bytes(rest), incoming)
                rest.clear()
                values = 0
            rest += last
            values += count_values(last)
            if ANSWER_LIMIT.is_passed(len(rest), values):
                return f"wrote a message of more than {ANSWER_LIMIT.size // 2**20} MB."
            if self._writes_other_things():
                return "does not speak MCP."
            # A program that floods must not keep everybody else from running.
            await asyncio.sleep(0)
        return ""

    def _writes_other_things(self) -> bool:
        return self._other_lines > MAX_OTHER_LINES or self._blank_lines > MAX_BLANK_LINES

    async def _receive(self, line: bytes, incoming: Any) -> None:
        if not line.strip():
            self._blank_lines += 1
            return
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self._other_lines += 1
            text = self._redaction.clean(line[: 4 * MAX_QUOTED_CHARS].decode(errors="replace"))
            self._quoted = self._quoted or clean_words(text, limit=MAX_QUOTED_CHARS)
            return
        await incoming.send(SessionMessage(message))

    async def _write(self, running: RunningProgram, outgoing: Any) -> None:
        try:
            async for item in outgoing:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                await running.write(f"{text}\n".encode())
        except ProcessFailed:
            # Its end is noticed by the other task.
            pass
        finally:
            # Whoever wants to send more learns that it cannot.
            outgoing.close()
