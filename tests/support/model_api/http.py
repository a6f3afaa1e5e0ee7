"""A minimal HTTP server whose connections can be cut or left open."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from support.model_api.request import ModelRequest, read_json

MAX_HEAD_BYTES = 256 * 1024


class Connection:
    """One request and its response; then it is closed."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._only_head = False

    async def receive(self) -> ModelRequest | None:
        """Read the request; None if the client sends none."""
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        first, *lines = head.decode("latin-1").strip().split("\r\n")
        method, target, _ = first.split(" ", 2)
        self._only_head = method == "HEAD"
        pairs = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        if headers.get("expect", "").lower() == "100-continue":
            self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        raw = await self._body(headers)
        path = target.partition("?")[0]
        return ModelRequest(method=method, path=path, headers=headers, raw=raw, body=read_json(raw))

    async def answer(
        self, status: int, body: Any, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a value as JSON, or bytes unchanged."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._head(
            status,
            {
                "content-type": "application/json",
                "content-length": str(len(data)),
                **(headers or {}),
            },
        )
        if not self._only_head:
            self._writer.write(data)
        await self._writer.drain()

    async def stream(self, pieces: AsyncIterator[bytes]) -> None:
        self._head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})
        await self._writer.drain()
        async for piece in pieces:
            self._writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            await self._writer.drain()
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    def cut(self) -> None:
        self._writer.transport.abort()

    async def wait_for_disconnect(self) -> None:
        """Wait until the client has closed its end."""
        with suppress(ConnectionError):
            while await self._reader.read(4096):
                pass

    async def close(self) -> None:
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()

    async def _body(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() != "chunked":
            return await self._reader.readexactly(int(headers.get("content-length", "0")))
        body = b""
        while length := int((await self._reader.readline()).split(b";")[0], 16):
            body += await self._reader.readexactly(length)
            await self._reader.readline()
        await self._reader.readline()
        return body

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        # Not every status in use has a name.
        names = {known.value: known.phrase for known in HTTPStatus}
        lines = [f"HTTP/1.1 {status} {names.get(status, 'Refused')}", "connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
