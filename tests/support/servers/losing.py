"""Something between a client and a server that loses answers."""

import http.client
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from urllib.parse import urlsplit


class Loser(HTTPServer):
    """Passes everything on; of every POST path the first answer does not come back."""

    def __init__(self, server: str) -> None:
        super().__init__(("127.0.0.1", 0), _Between)
        self.behind = urlsplit(server).netloc
        self.lost: list[str] = []
        self.keys: list[str | None] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Between(BaseHTTPRequestHandler):
    server: Loser

    def do_GET(self) -> None:
        answer, content = self._pass_on(b"")
        self._pass_back(answer, content)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        answer, content = self._pass_on(body)
        self.server.keys.append(self.headers.get("idempotency-key"))
        if self.path not in self.server.lost:
            self.server.lost.append(self.path)
            self.close_connection = True
            return
        self._pass_back(answer, content)

    def _pass_on(self, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        with closing(http.client.HTTPConnection(self.server.behind, timeout=20)) as connection:
            connection.request(self.command, self.path, body, dict(self.headers.items()))
            answer = connection.getresponse()
            return answer, answer.read()

    def _pass_back(self, answer: http.client.HTTPResponse, content: bytes) -> None:
        self.send_response(answer.status)
        for name in ("content-type", "idempotency-replayed", "retry-after"):
            if name in answer.headers:
                self.send_header(name, answer.headers[name])
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def losing(server: str) -> Iterator[Loser]:
    with Loser(server) as loser:
        thread = Thread(target=loser.serve_forever, daemon=True)
        thread.start()
        try:
            yield loser
        finally:
            loser.shutdown()
            thread.join()
