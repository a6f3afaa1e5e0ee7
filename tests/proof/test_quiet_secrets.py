"""A server that logs all it can, people who sign in, and a model's key: no secret shows."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.programs.programs import Running, starter

KEY, PASSWORD = "sk-canary-of-a-model", "canary words of a person"
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
def server(tmp_path: Path) -> Iterator[Running]:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "backburner.toml").write_text(SETTINGS)
    with starter() as start:
        yield start("up", "--port", "0", "--data", data)


def test_no_secret_shows_in_logs_errors_or_exports(server: Running) -> None:
    address = server.wait_until_ready()
    link = next(line for line in iter(server.read_line, "") if "#" in line).rpartition("#")[2]
    shown: list[str] = []
    with httpx2.Client(base_url=address, timeout=20) as browser:

        def ask(method: str, path: str, **more: Any) -> Any:
            answer = browser.request(method, path, **more)
            shown.append(answer.text)
            return answer

        ask("POST", "/api/sign-in", json={"link": link})
        session = browser.cookies["backburner"]
        made = browser.post("/api/tokens", json={"name": "n", "scopes": ["read", "write"]}).json()
        bearer = {"authorization": f"Bearer {made['token']}"}
        secrets = [KEY, PASSWORD, link, session, made["token"]]

        ask("GET", "/api/me", headers=bearer)
        ask("GET", "/api/me", headers={"authorization": f"Bearer {made['token']}x"})
        ask("POST", "/api/sign-in", json={"login": "ada", "password": PASSWORD})
        ask("POST", "/api/sign-in", json={"link": link})
        ask("PUT", "/api/password", json={"password": PASSWORD, "extra": PASSWORD})
        ask("POST", "/api/conversations", json={"password": PASSWORD}, headers=bearer)
        chat = ask("POST", "/api/conversations", json={}, headers=bearer).json()["id"]
        saying = {"content": "what are you working on?"}
        accept = {**bearer, "accept": "text/event-stream"}
        ask("POST", f"/api/conversations/{chat}/messages", json=saying, headers=accept)
        ask("GET", "/api/tokens")
        assert "what are you working on?" in ask("GET", "/api/export").text
        ask("PUT", "/api/password", json={"login": "ada", "current": "", "password": PASSWORD})
        secrets.append(browser.cookies["backburner"])
        assert len(set(secrets)) == 6

    ended = server.end(signal.SIGTERM)
    logged = "\n".join([*ended.out, *ended.err])
    assert "debug" in logged
    for secret in secrets:
        assert secret not in logged
        assert not any(secret in text for text in shown)
