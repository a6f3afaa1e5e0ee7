"""The HTTP client: unreachable servers, other servers, lost responses, and tokens kept safe."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from support.programs.cli_server import Running
from support.programs.programs import Ended
from support.servers.losing import losing

from backburner.cli.client import EVENT_STREAM, InProgress, NoAnswer, NoServer, Server
from backburner.cli.main import exit_code
from backburner.core.errors import BackburnerError

Call = Callable[..., Ended]


class OtherServer(BaseHTTPRequestHandler):
    """A web server that is not Backburner."""

    def do_GET(self) -> None:
        content = {"/text": b"hello", "/moved": b"", "/short": b"half"}[self.path]
        self.send_response(302 if self.path == "/moved" else 200)
        self.send_header("location", "http://127.0.0.1:1/")
        length = len(content) * 2 if self.path == "/short" else len(content)
        self.send_header("content-length", str(length))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


class SlowServer(BaseHTTPRequestHandler):
    """Cuts the first connection, reports twice that it is in progress, then responds."""

    requests = 0

    def do_POST(self) -> None:
        type(self).requests += 1
        if self.requests == 1:
            self.close_connection = True
            return
        is_done = self.path != "/busy" and self.requests > 3
        content = b'{"id": "c_1"}' if is_done else b'{"detail": "A request is being answered."}'
        self.send_response(201 if is_done else 409)
        self.send_header("retry-after", "0")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


class SilentServer(BaseHTTPRequestHandler):
    """Begins a stream, and says nothing more in it before it is told to end."""

    end: Event

    def do_POST(self) -> None:
        self.send_response(200)
        self.send_header("content-type", EVENT_STREAM)
        self.end_headers()
        self.wfile.write(b"event: message\ndata: {}\n\n")
        self.end.wait()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def other() -> Iterator[Server]:
    with serve(OtherServer) as server:
        yield server


@pytest.fixture
def slow() -> Iterator[Server]:
    with serve(type("SlowServer", (SlowServer,), {})) as server:
        yield server


@contextmanager
def serve(handler: type[BaseHTTPRequestHandler]) -> Iterator[Server]:
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield Server(f"http://127.0.0.1:{server.server_port}", "secret")
        server.shutdown()
        thread.join()


def test_a_missing_server_has_its_own_exit_code(call: Call, tmp_path: Path) -> None:
    ended = call("status", "--data", str(tmp_path))

    assert ended.code == 6
    assert "backburner up" in ended.err[0]


def test_an_unreachable_server_is_named(call: Call, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        (tmp_path / "token").write_text("secret")
        ended = call("status", "--url", address, "--token-file", str(tmp_path / "token"))

    assert ended.code == 6
    assert address in ended.err[0]
    assert "secret" not in ended.err[0]


@pytest.mark.parametrize("address", ["http://example.org", "http://10.0.0.1:8484", "ftp://x", "x"])
def test_a_token_is_only_sent_encrypted_or_to_this_machine(
    call: Call, tmp_path: Path, address: str
) -> None:
    (tmp_path / "token").write_text("secret")
    ended = call("status", "--url", address, "--token-file", str(tmp_path / "token"))

    assert ended.code == 2


def test_a_server_that_is_not_backburner_is_recognized(other: Server) -> None:
    with pytest.raises(NoServer, match="not Backburner"):
        other.get("/text")


def test_redirects_are_not_followed(other: Server) -> None:
    with pytest.raises(BackburnerError, match="302"):
        other.get("/moved")


def test_a_response_that_is_cut_short_is_an_error(other: Server) -> None:
    with pytest.raises(NoServer):
        list(other.download("/short"))


def test_a_server_that_falls_silent_is_not_called_unreachable() -> None:
    end = Event()
    with serve(type("Silent", (SilentServer,), {"end": end})) as server:
        events = replace(server, timeout=0.1).stream("/api/conversations/c_1/messages", {})
        first = next(events)
        with pytest.raises(NoAnswer, match="has sent nothing") as silent:
            next(events)
        end.set()

    assert first == ("message", {})
    assert exit_code(silent.value) == 1
    assert "backburner up" not in str(silent.value)


def test_a_request_in_progress_is_waited_for(slow: Server) -> None:
    assert slow.post("/api/conversations") == {"id": "c_1"}


def test_a_request_in_progress_is_not_waited_for_without_retries(slow: Server) -> None:
    slow.post("/api/conversations")
    with pytest.raises(InProgress):
        slow.post_once("/busy")


def test_a_token_is_not_part_of_the_repr() -> None:
    assert "secret" not in repr(Server("http://127.0.0.1:1", "secret"))


def test_a_request_whose_response_was_lost_is_repeated_with_its_key_and_done_once(
    talk: Call, ask: Callable[..., Any], running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    with losing(running.address) as between:
        monkeypatch.setenv("BACKBURNER_URL", between.address)
        said = talk("say", "--no-wait", "Only", "once.")
        assert (said.code, len(between.lost)) == (0, 2)
        keys = between.keys
        assert (keys[0], keys[2]) == (keys[1], keys[3])
        assert len(set(keys)) == 2
    monkeypatch.setenv("BACKBURNER_URL", running.address)
    short_id = said.err[0].removeprefix("[in ").removesuffix("]")

    shown = ask("conversations", short_id)
    assert [one["content"] for one in shown["messages"] if one["role"] == "user"] == ["Only once."]
    assert [one["id"] for one in ask("conversations")].count(shown["id"]) == 1


def test_a_request_for_a_secret_is_not_repeated(
    talk: Call, ask: Callable[..., Any], running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    with losing(running.address) as between:
        monkeypatch.setenv("BACKBURNER_URL", between.address)
        lost = talk("token", "create", "--name", "lost")
    monkeypatch.setenv("BACKBURNER_URL", running.address)

    assert (lost.code, lost.out) == (6, [])
    assert [one["name"] for one in ask("token", "list")].count("lost") == 1
