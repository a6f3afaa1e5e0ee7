"""A web server on loopback for tests, which says exactly what it is told to."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

#: Gives all that is sent for a path, head and body; None: nothing, ever.
Answers = Callable[[str], bytes | None]


@dataclass
class Web:
    port: int = 0
    #: The heads of all requests.
    asked: list[str] = field(default_factory=list)

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"


def answer(
    body: bytes | str, kind: str = "text/plain", status: str = "200 OK", **more: str
) -> bytes:
    data = body.encode() if isinstance(body, str) else body
    heads = {"Content-Type": kind, "Content-Length": str(len(data)), "Connection": "close"}
    heads |= {name.replace("_", "-"): value for name, value in more.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in heads.items() if value)
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + data


def redirect(to: str) -> bytes:
    return answer("", status="302 Found", Location=to)


@asynccontextmanager
async def web(answers: Answers) -> AsyncIterator[Web]:
    serving = Web()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            serving.asked.append(head)
            given = answers(head.split()[1])
            if given is None:
                await reader.read()
            else:
                writer.write(given)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        serving.port = server.sockets[0].getsockname()[1]
        yield serving
