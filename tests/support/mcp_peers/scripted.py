"""An MCP server on loopback, in either era, that misbehaves as a test tells it to.

Without instructions it lists its tools and makes every call. It speaks HTTP/1.1 itself, so that it
can break off anywhere.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Literal

Era = Literal["modern", "legacy"]
ERAS: Sequence[Era] = ("modern", "legacy")
VERSIONS: Mapping[Era, str] = {"modern": "2026-07-28", "legacy": "2025-11-25"}
SEND = {"name": "send", "description": "Send a mail.", "inputSchema": {"type": "object"}}


@dataclass(frozen=True)
class Asked:
    """A request, as the server got it."""

    method: str
    id: Any
    params: Mapping[str, Any]
    headers: Mapping[str, str]
    #: How many requests of this method there have been, with this one.
    count: int


@dataclass(frozen=True)
class Reply:
    """All that is sent in answer to a request."""

    head: bytes = b""
    body: bytes | AsyncIterator[bytes] = b""
    #: Breaks off the connection afterwards.
    breaks_off: bool = False
    #: Sends nothing more, ever.
    hangs: bool = False
    #: The call has been made.
    made: bool = False


Script = Callable[[Asked], Reply | None]


def reply(
    body: bytes | str | AsyncIterator[bytes] = b"",
    *,
    status: int = 200,
    kind: str = "application/json",
    headers: Mapping[str, str] | None = None,
    length: int | None = None,
    breaks_off: bool = False,
    made: bool = False,
) -> Reply:
    data = body.encode() if isinstance(body, str) else body
    size = len(data) if isinstance(data, bytes) else 0
    heads = {"Content-Type": kind, "Content-Length": str(size if length is None else length)}
    lines = "".join(f"{name}: {value}\r\n" for name, value in {**heads, **(headers or {})}.items())
    head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{lines}\r\n".encode()
    return Reply(head, data, breaks_off=breaks_off, made=made)


def events(*messages: Mapping[str, Any] | str, cut: bool = False, ids: bool = False) -> Reply:
    """Answer with an event for each message; `cut`: break off after them."""
    texts = [each if isinstance(each, str) else json.dumps(each) for each in messages]
    lines = [
        f"id: {n}\ndata: {text}\n\n" if ids else f"data: {text}\n\n" for n, text in enumerate(texts)
    ]
    body = "".join(lines).encode()
    length = len(body) + 100 if cut else None
    return reply(body, kind="text/event-stream", length=length, breaks_off=cut)


def result(asked: Asked, content: Mapping[str, Any], **headers: str) -> Reply:
    message = {"jsonrpc": "2.0", "id": asked.id, "result": content}
    return reply(json.dumps(message), headers=headers, made=asked.method == "tools/call")


def texts(asked: Asked, *said: str, is_error: bool = False) -> Reply:
    content = [{"type": "text", "text": text} for text in said]
    return result(asked, {"content": content, "isError": is_error, "resultType": "complete"})


def error(asked: Asked, code: int, message: str, data: object = None, status: int = 200) -> Reply:
    problem = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return reply(json.dumps({"jsonrpc": "2.0", "id": asked.id, "error": problem}), status=status)


@dataclass
class ScriptedPeer:
    era: Era
    script: Script = lambda _: None
    tools: Sequence[object] = (SEND,)
    asked: list[Asked] = field(default_factory=list)
    #: How many calls were made, whatever became of the answer.
    made: int = 0
    #: The ids of requests that the client has given up, as its era says so.
    given_up: asyncio.Queue[Any] = field(default_factory=asyncio.Queue)
    port: int = 0
    connections: int = 0
    _server: asyncio.Server | None = None
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)
    _sessions: int = 0
    #: Set while there are no connections.
    _gone: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def calls(self) -> list[Asked]:
        return [each for each in self.asked if each.method == "tools/call"]

    def open_connections(self) -> int:
        return len(self._writers)

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=2**26)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Be gone, with all connections."""
        if self._server is not None:
            self._server.close()
        if not self._writers:
            return
        for writer in list(self._writers):
            writer.transport.abort()
        await self._gone.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        self._gone.clear()
        try:
            while await self._answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()
            if not self._writers:
                self._gone.set()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in lines)
        }
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        verb = first.split()[0]
        message: dict[str, Any] = json.loads(body) if verb == "POST" else {"method": verb}
        method = message.get("method", "response")
        count = sum(each.method == method for each in self.asked) + 1
        asked = Asked(method, message.get("id"), message.get("params") or {}, headers, count)
        self.asked.append(asked)
        given = self.script(asked) or self._behave(asked)
        self.made += given.made
        if method == "notifications/cancelled":
            self.given_up.put_nowait(asked.params["requestId"])
        goes_on = await _send(given, reader, writer)
        if given.hangs and self.era == "modern":
            self.given_up.put_nowait(asked.id)
        return goes_on

    def _behave(self, asked: Asked) -> Reply:
        match asked.method:
            case "server/discover" if self.era == "modern":
                return result(
                    asked,
                    {
                        "resultType": "complete",
                        "supportedVersions": [VERSIONS["modern"]],
                        "capabilities": {"tools": {}},
                        "ttlMs": 0,
                        "cacheScope": "private",
                    },
                )
            case "initialize":
                self._sessions += 1
                content = {
                    "protocolVersion": VERSIONS["legacy"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "scripted", "version": "1"},
                }
                return result(asked, content, **{"Mcp-Session-Id": f"session-{self._sessions}"})
            case "tools/list":
                return self.page(asked, self.tools)
            case "tools/call":
                return texts(asked, "sent")
            case "GET":
                return reply(status=405)
            case "DELETE":
                return reply(status=204)
            case _ if asked.id is None:
                return reply(status=202)
            case _:
                return error(asked, -32601, "Method not found")

    def page(self, asked: Asked, tools: Sequence[object], cursor: str = "") -> Reply:
        hints = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        more = {"nextCursor": cursor} if cursor else {}
        return result(asked, {"tools": list(tools), **hints, **more})


@asynccontextmanager
async def scripted(
    era: Era, script: Script = lambda _: None, *, tools: Sequence[object] = (SEND,)
) -> AsyncIterator[ScriptedPeer]:
    peer = ScriptedPeer(era, script, tools)
    await peer.start()
    try:
        yield peer
    finally:
        await peer.stop()


async def _send(given: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Send a reply; return whether the connection goes on."""
    writer.write(given.head)
    if isinstance(given.body, bytes):
        writer.write(given.body)
    else:
        async for piece in given.body:
            writer.write(piece)
            await writer.drain()
    await writer.drain()
    if given.hangs:
        await reader.read()
    if given.breaks_off:
        writer.transport.abort()
    return not (given.hangs or given.breaks_off)
