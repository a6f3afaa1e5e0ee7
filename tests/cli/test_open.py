"""A server that other machines reach: refused until it is safe, encrypted, and behind proxies."""

import http.client
import json
import signal
import ssl
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.programs.programs import Start
from support.servers.certificates import make_certificate

from backburner.cli.client import Server
from backburner.core.accounts import MAX_SIGN_IN_ATTEMPTS

EVERYWHERE = "0.0.0.0"  # noqa: S104 (for as long as a test takes)
PASSWORD = "three words or more"  # noqa: S105 (of nobody)


@dataclass
class Browser:
    """As much of one as asks, trusting one certificate if it is given."""

    address: str
    certificate: Path | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def post(self, path: str, body: object, **more: str) -> http.client.HTTPResponse:
        where = urlsplit(self.address)
        if self.certificate:
            context = ssl.create_default_context(cafile=self.certificate)
            context.check_hostname = False
            way: Any = http.client.HTTPSConnection(where.netloc, timeout=10, context=context)
        else:
            way = http.client.HTTPConnection(where.netloc, timeout=10)
        headers = {"content-type": "application/json", **self.headers, **more}
        way.request("POST", path, json.dumps(body), headers)
        answer: http.client.HTTPResponse = way.getresponse()
        answer.read()
        way.close()
        return answer

    def sign_in(self, **more: str) -> http.client.HTTPResponse:
        return self.post("/api/sign-in", {"login": "ann", "password": PASSWORD}, **more)


def set_a_password(start: Start, data: Path) -> None:
    running = start("up", "--port", "0", "--data", data)
    running.wait_until_ready()
    kept = tomllib.loads((data / "client.toml").read_text())
    body = {"login": "ann", "password": PASSWORD}
    Server(kept["address"], kept["token"]).put("/api/password", body)
    running.end(signal.SIGINT)


@pytest.mark.parametrize(
    ("public_url", "why"),
    [("", "would not be encrypted"), ("https://b.example", "nobody has a password yet")],
)
def test_other_machines_do_not_get_in_before_it_is_safe(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, public_url: str, why: str
) -> None:
    monkeypatch.setenv("BACKBURNER_PUBLIC_URL", public_url)
    ended = start("up", "--port", "0", "--host", EVERYWHERE, "--data", tmp_path).end()

    assert (ended.code, ended.out) == (2, [])
    (line,) = ended.err
    assert why in line
    assert "127.0.0.1" in line


def test_with_a_certificate_and_a_password_it_serves_other_machines(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_a_password(start, tmp_path / "data")
    names = make_certificate(tmp_path)
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    running = start("up", "--port", "0", "--host", EVERYWHERE, "--data", tmp_path / "data")
    port = urlsplit(running.wait_until_ready()).port
    address = f"https://127.0.0.1:{port}"
    browser = Browser(address, Path(names["BACKBURNER_TLS_CERTIFICATE"]))

    let_in = browser.sign_in(origin=address)
    assert let_in.status == 200
    assert "secure" in let_in.headers["set-cookie"].lower()
    assert browser.sign_in(origin=address.replace("https", "http")).status == 403
    assert browser.sign_in(origin="https://b.example").status == 403
    # Nothing is said to those who do not encrypt, and nothing under names that are not ours.
    with pytest.raises((http.client.HTTPException, OSError)):
        Browser(f"http://127.0.0.1:{port}").sign_in()
    assert browser.sign_in(host="b.example").status == 421


@pytest.mark.parametrize(
    ("proxies", "is_believed"), [("127.0.0.1/32", True), ("192.0.2.0/24", False)]
)
def test_what_is_forwarded_counts_only_from_a_proxy_that_is_trusted(
    start: Start,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    proxies: str,
    *,
    is_believed: bool,
) -> None:
    monkeypatch.setenv("BACKBURNER_TRUSTED_PROXIES", proxies)
    running = start("up", "--port", "0", "--data", tmp_path)
    browser = Browser(running.wait_until_ready())
    link = [running.read_line() for _ in range(3)][-1].split()[-1]

    def try_from(address: str, link: str = "bb_nothing") -> http.client.HTTPResponse:
        forwarded = {"x-forwarded-for": address, "x-forwarded-proto": "https"}
        return browser.post("/api/sign-in", {"link": link}, **forwarded)

    first = try_from("198.51.100.1", link)
    assert ("secure" in first.headers["set-cookie"].lower()) is is_believed
    statuses = [try_from("198.51.100.1").status for _ in range(MAX_SIGN_IN_ATTEMPTS + 1)]
    assert statuses == [401] * MAX_SIGN_IN_ATTEMPTS + [429]
    # Somebody else behind the same proxy; or the same one who says to be somebody else.
    assert try_from("198.51.100.2").status == (401 if is_believed else 429)
