"""A server that logs everything: no secret of a model or a user is logged, sent or stored."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.programs.programs import Running, starter

from backburner.api.http.auth import SESSION_HEADER

KEY, PASSWORD = "sk-canary-of-a-model", "canary words of a user"
#: Of a client that puts its token where no route looks for one.
IN_QUERY = "canary-of-a-query"
SETTINGS = f"""
profile = "demo"
log_level = "debug"
[profiles.claude]
engine = "claude"
key = "{KEY}"
[profiles.local]
engine = "openai"
model = "m"
address = "http://127.0.0.1:9/v1"
key = "{KEY}-too"
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "backburner.toml").write_text(SETTINGS)
    return data


@pytest.fixture
def server(data: Path) -> Iterator[Running]:
    with starter() as start:
        yield start("up", "--port", "0", "--data", data)


def test_no_secret_is_in_logs_errors_exports_or_files(server: Running, data: Path) -> None:
    address = server.wait_until_ready()
    link = next(line for line in iter(server.read_line, "") if "#" in line).rpartition("#")[2]
    with httpx2.Client(base_url=address, timeout=20) as browser:
        secrets, responses = use_secrets(browser, link)
    assert len(set(secrets)) == 10

    ended = server.end(signal.SIGTERM)
    logged = "\n".join([*ended.out, *ended.err])
    assert "debug" in logged
    files = [path for path in data.rglob("*") if path.is_file() and path.name != "backburner.toml"]
    assert "backburner.sqlite3" in {path.name for path in files}
    for secret in secrets:
        assert secret not in logged
        assert not any(secret in text for text in responses)
        assert not [path.name for path in files if secret.encode() in path.read_bytes()]


def use_secrets(browser: httpx2.Client, link: str) -> tuple[list[str], list[str]]:
    """Use every kind of secret, rightly and wrongly; return them, and what was answered."""
    responses: list[str] = []

    def ask(method: str, path: str, **more: Any) -> httpx2.Response:
        response = browser.request(method, path, **more)
        responses.append(response.text)
        return response

    def refuse(status: int, path: str, body: object, **more: Any) -> None:
        assert ask("POST", path, json=body, **more).status_code == status

    key = browser.post("/api/sign-in", json={"link": link}).json()["key"]
    browser.headers[SESSION_HEADER] = key
    session = browser.cookies["backburner"]
    created = browser.post("/api/tokens", json={"name": "n", "scopes": ["read", "write"]})
    token = created.json()["token"]
    invitation = browser.post("/api/invitations", json={}).json()["secret"]
    bearer = {"authorization": f"Bearer {token}"}
    secrets = [KEY, PASSWORD, IN_QUERY, link, session, key, token, invitation]

    ask("GET", f"/api/me?token={IN_QUERY}", headers=bearer)
    ask("GET", "/api/me", headers={"authorization": f"Bearer {token}x"})
    refuse(401, "/api/sign-in", {"login": "ada", "password": PASSWORD})
    refuse(401, "/api/sign-in", {"link": link})
    refuse(422, "/api/sign-in", {"link": link, "password": PASSWORD})
    refuse(422, "/api/invitations/accept", {"invitation": invitation})
    refuse(422, "/api/conversations", {"password": PASSWORD}, headers=bearer)
    assert ask("GET", "/api/users", headers=bearer).status_code == 403
    ask("PUT", "/api/password", json={"password": PASSWORD, "extra": PASSWORD})
    chat = ask("POST", "/api/conversations", json={}, headers=bearer).json()["id"]
    message = {"content": "what are you working on?"}
    accept = {**bearer, "accept": "text/event-stream"}
    ask("POST", f"/api/conversations/{chat}/messages", json=message, headers=accept)
    ask("GET", "/api/tokens")
    assert "what are you working on?" in ask("GET", "/api/export").text
    first = {"login": "ada", "current": "", "password": PASSWORD}
    secrets.append(browser.put("/api/password", json=first).json()["key"])
    secrets.append(browser.cookies["backburner"])
    refuse(401, "/api/sign-in", {"login": "ada", "password": f"no {PASSWORD}"})
    return secrets, responses
