"""The HTTP server: its socket, TLS, reverse proxies, and what it accepts from other machines."""

import asyncio
import signal
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI
from support.programs.programs import Start
from support.servers.certificates import make_certificate
from support.servers.live import BOUND

from backburner.api.http.auth import SESSION_HEADER
from backburner.app.http_server import HttpServer, check_certificate, listen, server_config
from backburner.core.accounts import MAX_SIGN_IN_ATTEMPTS
from backburner.core.errors import BadSetting

EVERYWHERE = "0.0.0.0"  # noqa: S104 (for as long as a test takes)
PASSWORD = "three words or more"  # noqa: S105 (of nobody)
HEADER_TIMEOUT = timedelta(milliseconds=100)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_small_chunks_of_a_response_are_sent_at_once(host: str) -> None:
    with closing(listen(host, 0)) as listener:
        address = listener.getsockname()
        with closing(socket.create_connection(address)), closing(listener.accept()[0]) as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


@asynccontextmanager
async def slow_server() -> AsyncIterator[tuple[str, int]]:
    """Serve answers that take longer than a client may take for its headers."""
    api = FastAPI()

    @api.get("/")
    async def late() -> str:
        await asyncio.sleep(5 * HEADER_TIMEOUT.total_seconds())
        return "late"

    with closing(listen("127.0.0.1", 0)) as listener:
        server = HttpServer(server_config(api, header_timeout=HEADER_TIMEOUT))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        yield listener.getsockname()
        server.should_exit = True
        await serving


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET /",
    ],
    ids=["nothing", "half a header", "half of the next"],
)
async def test_a_client_that_does_not_finish_its_headers_is_cut_off(sent: bytes) -> None:
    async with slow_server() as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(sent)
        # Whoever sent a whole request gets the answer to that first.
        if sent.endswith(b"GET /"):
            await asyncio.wait_for(reader.readuntil(b"late"), BOUND)
        with suppress(ConnectionError):
            await asyncio.wait_for(reader.read(), BOUND)
        writer.close()


async def test_an_answer_may_take_longer_than_the_headers() -> None:
    async with slow_server() as address:
        reader, writer = await asyncio.open_connection(*address)
        for _ in range(2):
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert await asyncio.wait_for(reader.readuntil(b"late"), BOUND)
            await asyncio.sleep(2 * HEADER_TIMEOUT.total_seconds())
        writer.close()


def test_with_a_certificate_and_a_password_it_serves_other_machines_encrypted(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = make_certificate(tmp_path)
    for name, value in files.items():
        monkeypatch.setenv(name, value)
    trust = ssl.create_default_context(cafile=files["BACKBURNER_TLS_CERTIFICATE"])
    trust.check_hostname = False
    options = ("up", "--port", "0", "--data", tmp_path / "data")
    running = start(*options)
    address = running.wait_until_ready()
    link = [running.read_line() for _ in range(3)][-1].split()[-1]
    assert address.startswith("https://127.0.0.1:")
    assert link.startswith(f"{address}/sign-in#")
    credentials = {"login": "ann", "password": PASSWORD}
    with httpx2.Client(base_url=address, verify=trust) as browser:
        signed_in = browser.post("/api/sign-in", json={"link": link})
        key = {SESSION_HEADER: signed_in.json()["key"]}
        assert browser.put("/api/password", json=credentials, headers=key).status_code == 200
    assert running.end(signal.SIGINT).code == 0

    port = httpx2.URL(start(*options, "--host", EVERYWHERE).wait_until_ready()).port
    address = f"https://127.0.0.1:{port}"
    with httpx2.Client(base_url=address, verify=trust) as browser:

        def sign_in(**headers: str) -> httpx2.Response:
            return browser.post("/api/sign-in", json=credentials, headers=headers)

        signed_in = sign_in(origin=address)
        assert signed_in.status_code == 200
        assert "secure" in signed_in.headers["set-cookie"].lower()
        assert sign_in(origin=address.replace("https", "http")).status_code == 403
        assert sign_in(origin="https://b.example").status_code == 403
        assert sign_in(host="b.example").status_code == 421
    with pytest.raises(httpx2.TransportError):
        httpx2.post(f"http://127.0.0.1:{port}/api/sign-in", json=credentials)


@pytest.mark.parametrize("broken", ["BACKBURNER_TLS_CERTIFICATE", "BACKBURNER_TLS_KEY"])
def test_an_unusable_certificate_is_refused(tmp_path: Path, broken: str) -> None:
    files = make_certificate(tmp_path)
    Path(files[broken]).write_text("not PEM")
    certificate, key = (Path(files[f"BACKBURNER_TLS_{name}"]) for name in ("CERTIFICATE", "KEY"))

    with pytest.raises(BadSetting) as refused:
        check_certificate(certificate, key)
    assert f"{certificate} cannot be used with the key {key}" in str(refused.value)


def test_an_unusable_certificate_is_one_line_and_exit_code_2(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BACKBURNER_TLS_CERTIFICATE", "BACKBURNER_TLS_KEY"):
        monkeypatch.setenv(name, str(tmp_path / "absent.pem"))
    ended = start("up", "--port", "0", "--data", tmp_path / "data").end()

    assert ended.code == 2
    (line,) = ended.err
    assert "absent.pem cannot be used with the key" in line


def test_behind_a_proxy_links_and_cookies_are_for_its_address(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_PUBLIC_URL", "https://B.example/")
    running = start("up", "--port", "0", "--data", tmp_path)
    address = running.wait_until_ready()
    link = [running.read_line() for _ in range(3)][-1].split()[-1]
    headers = {"host": "b.example", "origin": "https://b.example"}
    signed_in = httpx2.post(f"{address}/api/sign-in", json={"link": link}, headers=headers)

    assert link.startswith("https://b.example/sign-in#")
    assert signed_in.status_code == 200
    assert "secure" in signed_in.headers["set-cookie"].lower()


@pytest.mark.parametrize(
    ("proxies", "is_trusted"), [("127.0.0.1/32", True), ("192.0.2.0/24", False)]
)
def test_forwarded_headers_count_only_from_a_trusted_proxy(
    start: Start,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    proxies: str,
    *,
    is_trusted: bool,
) -> None:
    monkeypatch.setenv("BACKBURNER_TRUSTED_PROXIES", proxies)
    running = start("up", "--port", "0", "--data", tmp_path)
    address = running.wait_until_ready()
    link = [running.read_line() for _ in range(3)][-1].split()[-1]
    with httpx2.Client(base_url=address) as browser:

        def sign_in(client: str, link: str = "bb_nothing") -> httpx2.Response:
            headers = {"x-forwarded-for": client, "x-forwarded-proto": "https"}
            return browser.post("/api/sign-in", json={"link": link}, headers=headers)

        first = sign_in("198.51.100.1", link)
        browser.cookies.clear()
        assert ("secure" in first.headers["set-cookie"].lower()) is is_trusted
        statuses = [sign_in("198.51.100.1").status_code for _ in range(MAX_SIGN_IN_ATTEMPTS + 1)]
        assert statuses == [401] * MAX_SIGN_IN_ATTEMPTS + [429]
        # Another client behind a trusted proxy; else the same client with another header.
        assert sign_in("198.51.100.2").status_code == (401 if is_trusted else 429)
