"""Network streams of which others can run between two pieces, however much has arrived.

A chunk of HTTP can be one byte, and an event of a stream four. All of what was read at once is
worked on without a pause, so little is read at once.
"""

import asyncio
import ssl
from typing import Any

import httpcore2

#: A server needs no more than some milliseconds of ours for it, whatever it is.
READ_BYTES = 2**13
#: Responses that only announce the answer; the library skips them without an end.
MAX_INTERIM = 1_000
_INTERIM = b"\nHTTP/1.1 1"


class PacedStream(httpcore2.AsyncNetworkStream):
    def __init__(self, inner: httpcore2.AsyncNetworkStream) -> None:
        self._inner = inner
        self._interim = 0

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 (the library's interface)
        # Nothing else does this where data waits to be decrypted.
        await asyncio.sleep(0)
        data = await self._inner.read(min(max_bytes, READ_BYTES), timeout)
        # In JSON a line break is written otherwise, so no answer of a server has this in it.
        self._interim += data.count(_INTERIM)
        if self._interim > MAX_INTERIM:
            raise httpcore2.ReadError("The server announced its answer too often.")
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        self._interim = 0
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> "PacedStream":
        return PacedStream(await self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
