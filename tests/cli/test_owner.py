"""The owner of a fresh install: let in by a link, and the command line by a file of theirs."""

import json
import signal
import stat
import tomllib
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from support.programs.programs import Running, Start
from support.servers.certificates import make_certificate

PASSWORD = "three words or more"  # noqa: S105 (of nobody)


def ask(
    method: str, url: str, body: Any = None, *, token: str = "", cookie: str = ""
) -> tuple[int, Any, str]:
    """Give the status, what was said, and the cookie that was set."""
    headers = {"content-type": "application/json"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    if cookie:
        headers["cookie"] = f"backburner={cookie}"
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, headers, method=method)  # noqa: S310 (an address we were told)
    try:
        with urlopen(request, timeout=10) as answer:  # noqa: S310
            said = answer.read()
            set_to = answer.headers.get("set-cookie", "").partition(";")[0].partition("=")[2]
            return answer.status, json.loads(said) if said else None, set_to
    except HTTPError as error:
        with error:
            return error.code, json.load(error), ""


def start_up(start: Start, data: Path, *more: str) -> tuple[Running, str, str]:
    """Give the address, and the last line that is announced."""
    running = start("up", "--port", "0", "--data", data, *more)
    address = running.wait_until_ready()
    running.read_line()
    running.read_line()
    return running, address, running.read_line()


def test_each_start_prints_a_new_link_until_there_is_a_password(
    start: Start, tmp_path: Path
) -> None:
    running, address, first = start_up(start, tmp_path)
    running.end(signal.SIGINT)
    running, address, second = start_up(start, tmp_path)
    links = [line.split()[-1] for line in (first, second)]

    statuses = [ask("POST", f"{address}/api/sign-in", {"link": link})[0] for link in links]
    assert statuses == [401, 200]
    again = ask("POST", f"{address}/api/sign-in", {"link": second.split()[-1]})
    assert again[0] == 401
    token = tomllib.loads((tmp_path / "client.toml").read_text())["token"]
    body = {"login": "owner", "password": PASSWORD}
    assert ask("PUT", f"{address}/api/password", body, token=token)[0] == 200
    running.end(signal.SIGINT)

    running = start("up", "--port", "0", "--data", tmp_path)
    running.wait_until_ready()
    ended = running.end(signal.SIGINT)
    assert not any("Sign in" in line for line in ended.out)
    # Whoever has a login says who they are.
    assert not (tmp_path / "client.toml").exists()


def test_the_command_line_gets_a_token_for_its_owner_alone_and_a_new_one_each_time(
    start: Start, tmp_path: Path
) -> None:
    tokens = []
    for _ in range(2):
        running, address, _ = start_up(start, tmp_path)
        file = tmp_path / "client.toml"
        kept = tomllib.loads(file.read_text())
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert kept["address"] == address
        tokens.append(kept["token"])
        statuses = [ask("GET", f"{address}/api/users", token=token)[0] for token in tokens]
        assert statuses == [401] * (len(tokens) - 1) + [200]
        running.end(signal.SIGINT)


def test_no_secret_gets_into_the_log(start: Start, tmp_path: Path) -> None:
    running, address, line = start_up(start, tmp_path, "--log-level", "debug")
    link = line.split()[-1]
    _, _, session = ask("POST", f"{address}/api/sign-in", {"link": link})
    body = {"login": "owner", "password": PASSWORD}
    _, _, session = ask("PUT", f"{address}/api/password", body, cookie=session)
    _, made, _ = ask("POST", f"{address}/api/tokens", {"name": "x"}, cookie=session)
    _, invited, _ = ask("POST", f"{address}/api/invitations", {}, cookie=session)
    problems = [
        ask("POST", f"{address}/api/sign-in", {"login": "owner", "password": "no " + PASSWORD}),
        ask("POST", f"{address}/api/sign-in", {"link": link, "password": PASSWORD}),
        ask("GET", f"{address}/api/users", token=made["token"]),
        ask("POST", f"{address}/api/invitations/accept", {"invitation": invited["secret"]}),
    ]
    ended = running.end(signal.SIGINT)

    secrets = [link.partition("#")[2], session, PASSWORD, made["token"], invited["secret"]]
    assert all(secrets)
    said = "\n".join([*ended.out, *ended.err, *(json.dumps(one) for _, one, _ in problems)])
    assert [status for status, _, _ in problems] == [401, 422, 403, 422]
    assert not [secret for secret in secrets if secret in said]
    for file in tmp_path.rglob("*"):
        content = file.read_bytes() if file.is_file() else b""
        assert not [secret for secret in secrets if secret.encode() in content], file


def test_behind_a_proxy_links_and_cookies_are_for_its_address(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_PUBLIC_URL", "https://B.example/")
    _, address, line = start_up(start, tmp_path)
    link = line.split()[-1]
    assert link.startswith("https://b.example/sign-in#")
    headers = {"content-type": "application/json", "host": "b.example"}
    headers["origin"] = "https://b.example"
    data = json.dumps({"link": link}).encode()
    request = Request(f"{address}/api/sign-in", data, headers)  # noqa: S310
    with urlopen(request, timeout=10) as answer:  # noqa: S310
        assert "secure" in answer.headers["set-cookie"].lower()


def test_with_a_certificate_it_answers_encrypted(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in make_certificate(tmp_path).items():
        monkeypatch.setenv(name, value)
    running, address, line = start_up(start, tmp_path / "data")

    assert address.startswith("https://127.0.0.1:")
    assert f" {address}/sign-in#" in line
    assert running.end(signal.SIGINT).code == 0


def test_a_certificate_that_is_none_is_one_line(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = make_certificate(tmp_path)
    Path(names["BACKBURNER_TLS_KEY"]).write_text("no key")
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    ended = start("up", "--port", "0", "--data", tmp_path / "data").end()

    assert ended.code == 2
    assert len(ended.err) == 1
    assert "certificate.pem cannot be used with the key" in ended.err[0]
