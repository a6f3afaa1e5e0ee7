"""Reaching a server: where there is none, or something else, or where a token must not go."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from support.programs.programs import Ended

from backburner.cli.client import BeingAnswered, NoServer, Server
from backburner.cli.commands.say import Reply
from backburner.cli.output import clean
from backburner.core.errors import BackburnerError

Call = Callable[..., Ended]


class Answers(BaseHTTPRequestHandler):
    """Something that answers, and is no Backburner."""

    def do_GET(self) -> None:
        sent = {"/text": b"hello", "/moved": b"", "/short": b"half"}[self.path]
        self.send_response(302 if self.path == "/moved" else 200)
        self.send_header("location", "http://127.0.0.1:1/")
        self.send_header(
            "content-length", str(len(sent) * 2 if self.path == "/short" else len(sent))
        )
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: Any) -> None:
        pass


class Busy(BaseHTTPRequestHandler):
    """Breaks off, then says twice that it is being done, then answers."""

    seen = 0

    def do_POST(self) -> None:
        type(self).seen += 1
        if self.seen == 1:
            self.close_connection = True
            return
        is_done = self.path != "/busy" and self.seen > 3
        sent = b'{"id": "c_1"}' if is_done else b'{"detail": "A request is being answered."}'
        self.send_response(201 if is_done else 409)
        self.send_header("retry-after", "0")
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def stranger() -> Iterator[Server]:
    with answering(Answers) as server:
        yield server


@pytest.fixture
def busy() -> Iterator[Server]:
    with answering(type("Busy", (Busy,), {})) as server:
        yield server


@contextmanager
def answering(by: type[BaseHTTPRequestHandler]) -> Iterator[Server]:
    with HTTPServer(("127.0.0.1", 0), by) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield Server(f"http://127.0.0.1:{server.server_port}", "secret")
        server.shutdown()
        thread.join()


def test_where_no_server_is_there_is_a_code_of_its_own(call: Call, tmp_path: Path) -> None:
    ended = call("status", "--data", str(tmp_path))

    assert ended.code == 6
    assert "backburner up" in ended.err[0]


def test_a_server_that_does_not_answer_is_named(call: Call, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        (tmp_path / "token").write_text("secret")
        ended = call("status", "--url", address, "--token-file", str(tmp_path / "token"))

    assert ended.code == 6
    assert address in ended.err[0]
    assert "secret" not in ended.err[0]


@pytest.mark.parametrize("address", ["http://example.org", "http://10.0.0.1:8484", "ftp://x", "x"])
def test_a_token_goes_only_where_nobody_can_read_it(
    call: Call, tmp_path: Path, address: str
) -> None:
    (tmp_path / "token").write_text("secret")
    ended = call("status", "--url", address, "--token-file", str(tmp_path / "token"))

    assert ended.code == 2


def test_what_is_no_backburner_is_told_from_one(stranger: Server) -> None:
    with pytest.raises(NoServer, match="no Backburner"):
        stranger.get("/text")


def test_nobody_is_followed_elsewhere(stranger: Server) -> None:
    with pytest.raises(BackburnerError, match="answered 302"):
        stranger.get("/moved")


def test_an_answer_that_breaks_off_is_an_error(stranger: Server) -> None:
    with pytest.raises(NoServer):
        list(stranger.download("/short"))


def test_what_is_still_being_done_is_waited_for(busy: Server) -> None:
    assert busy.post("/api/conversations") == {"id": "c_1"}


def test_a_conflict_of_ones_own_is_told_at_once(busy: Server) -> None:
    busy.post("/api/conversations")
    with pytest.raises(BeingAnswered):
        busy.post_once("/busy")


def test_a_token_is_not_shown() -> None:
    assert "secret" not in repr(Server("http://127.0.0.1:1", "secret"))


def test_a_reply_is_shown_as_it_comes_and_once(capsys: pytest.CaptureFixture[str]) -> None:
    reply = Reply(aloud=True)
    said = {"role": "assistant", "content": "Hello you."}
    ended = reply.follow(
        iter(
            [
                ("message", {}),
                ("delta", {"at": 0, "text": "Hello "}),
                ("delta", {"at": 6, "text": "you."}),
                ("done", {"messages": [said]}),
            ]
        )
    )

    assert capsys.readouterr().out == "Hello you.\n"
    assert ended["messages"] == [said]


def test_a_reply_that_is_begun_again_stands_on_a_line_of_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Reply(aloud=True).follow(
        iter(
            [
                ("delta", {"at": 0, "text": "Hel"}),
                ("delta", {"at": 0, "text": "Good day."}),
                ("done", {"messages": [{"role": "assistant", "content": "Good day."}]}),
            ]
        )
    )

    assert capsys.readouterr().out == "Hel\nGood day.\n"


def test_a_stream_that_breaks_off_is_an_error() -> None:
    with pytest.raises(BackburnerError, match="went away"):
        Reply(aloud=False).follow(iter([("message", {})]))


def test_words_of_others_do_nothing_to_the_terminal() -> None:
    assert clean("a\x1b[2Jb\u202ec\n") == "a?[2Jb?c\n"
