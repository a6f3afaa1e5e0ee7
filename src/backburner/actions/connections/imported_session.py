"""Sessions with programs that a user has imported, which are loaded when they are first used."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from backburner.actions.connections import reach, sealed
from backburner.actions.deps import Deps
from backburner.core.connections.connection import CALL_TIMEOUT, Connection
from backburner.core.connections.inputs.input_request import InputAnswers, InputNeeded
from backburner.core.connections.own_program import with_path
from backburner.core.connections.program import StdioProgram
from backburner.core.errors import BadRequest, ConnectionFailed
from backburner.ports import ToolList, ToolResult, ToolServer, ToolSession


class ImportedSession:
    """Refuses to start or to call a program that agents could have changed by now."""

    def __init__(self, deps: Deps, connection: Connection) -> None:
        self._deps = deps
        self._connection = connection
        self._lock = asyncio.Lock()
        self._session: ToolSession | None = None
        self._program: StdioProgram | None = None
        self._closed = False

    @property
    def tools_changed(self) -> bool:
        return self._session is not None and self._session.tools_changed

    async def list_tools(self) -> ToolList:
        return await (await self._open()).list_tools()

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        repeatable: bool = False,
        within: timedelta = CALL_TIMEOUT,
        answers: InputAnswers | None = None,
    ) -> ToolResult | InputNeeded:
        session = await self._open()
        return await session.call(
            name, arguments, repeatable=repeatable, within=within, answers=answers
        )

    async def close(self) -> None:
        self._closed = True
        await self._end()

    async def _end(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _open(self) -> ToolSession:
        async with self._lock:
            if self._program is None:
                self._program = await _load(self._deps, self._connection)
            try:
                await reach.check_program(self._deps, self._connection.user_id, self._program)
            except BadRequest as error:
                await self._end()
                raise ConnectionFailed(error.message, hint=error.hint, permanent=True) from None
            if self._session is None:
                if self._closed:
                    raise ConnectionFailed(f"The session with {self._connection.title} is closed.")
                program = with_path(self._program)
                server = ToolServer(title=self._connection.title, program=program)
                self._session = self._deps.tool_servers.open(server, _NoHeaders())
            return self._session


class _NoHeaders:
    """Programs are sent no headers."""

    async def headers(self) -> Mapping[str, str]:
        return {}

    async def renew(self, refused: Mapping[str, str]) -> Mapping[str, str]:
        return refused

    async def check(self, doubted: Mapping[str, str]) -> Mapping[str, str]:
        return doubted


async def _load(deps: Deps, connection: Connection) -> StdioProgram:
    user = connection.user_id
    found = await deps.store.read(lambda tx: sealed.load_program(tx, deps, user, connection.id))
    program, machine = found or (None, "")
    if program is None or machine != deps.folders.machine:
        problem = "is gone" if program is None else "was imported on another machine"
        raise ConnectionFailed(
            f"The program of {connection.title} {problem}.",
            hint="Remove the connection, and import it again.",
            permanent=True,
        )
    return program
