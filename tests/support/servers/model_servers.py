"""A server on loopback that answers as it is told, where a model's API would be."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

CLAUDE_ANSWER = {"type": "message", "content": [{"type": "text", "text": "Yes"}]}
OPENAI_ANSWER = {"choices": [{"message": {"role": "assistant", "content": "Yes"}}]}


@dataclass
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class ModelServer:
    address: str
    #: By path: a status, and what is answered with it; text is sent as it is.
    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)


@contextmanager
def model_server() -> Iterator[ModelServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        known = ModelServer(f"http://127.0.0.1:{server.server_address[1]}")
        known.answers = {
            "/v1/messages": (200, CLAUDE_ANSWER),
            "/v1/chat/completions": (200, OPENAI_ANSWER),
            "/v1/models": (200, {"data": [{"id": "small"}, {"id": "large"}]}),
        }
        server.known = known  # type: ignore[attr-defined]
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield known
        finally:
            server.shutdown()
            thread.join(10)


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        known: ModelServer = self.server.known  # type: ignore[attr-defined]
        sent = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.command, self.path, headers, json.loads(sent) if sent else None)
        known.asked.append(asked)
        status, answer = known.answers.get(self.path.partition("?")[0], (404, "not found"))
        body = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        if status == 302:
            self.send_header("location", "/elsewhere")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""
