"""The owner: sign-in links, the token of the command line, and other machines."""

import asyncio
import os
import signal
import stat
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from support.people import people
from support.programs.programs import Running, Start
from support.requirements import requirement
from support.stage.stage import Stage
from support.stage.stages import clock, database, set_up, stage

from backburner.actions.accounts.credentials import identify
from backburner.app import owner
from backburner.app.owner import check_open
from backburner.core.errors import BadSetting
from backburner.settings import load

__all__ = ["clock", "database", "set_up", "stage"]
EVERYWHERE = "0.0.0.0"  # noqa: S104 (not to listen on)
PASSWORD = "three words or more"  # noqa: S105 (of nobody)


def start_up(start: Start, data: Path) -> tuple[Running, str, str]:
    """Start a server; return its address and sign-in link."""
    running = start("up", "--port", "0", "--data", data)
    address = running.wait_until_ready()
    link = [running.read_line() for _ in range(3)][-1].split()[-1]
    return running, address, link


def sign_in(address: str, link: str) -> int:
    return httpx2.post(f"{address}/api/sign-in", json={"link": link}).status_code


def test_each_start_prints_a_new_sign_in_link_until_there_is_a_password(
    start: Start, tmp_path: Path
) -> None:
    running, address, first = start_up(start, tmp_path)
    running.end(signal.SIGINT)
    running, address, second = start_up(start, tmp_path)

    assert [sign_in(address, link) for link in (first, second, second)] == [401, 200, 401]
    token = tomllib.loads((tmp_path / "client.toml").read_text())["token"]
    body = {"login": "owner", "password": PASSWORD}
    bearer = {"authorization": f"Bearer {token}"}
    assert httpx2.put(f"{address}/api/password", json=body, headers=bearer).status_code == 200
    running.end(signal.SIGINT)

    running = start("up", "--port", "0", "--data", tmp_path)
    running.wait_until_ready()
    ended = running.end(signal.SIGINT)
    assert not any("Sign in" in line for line in ended.out)
    # With a password, the command line needs a token of its own.
    assert not (tmp_path / "client.toml").exists()


def test_the_command_line_gets_a_new_token_at_each_start_that_only_its_owner_can_read(
    start: Start, tmp_path: Path
) -> None:
    tokens = []
    for _ in range(2):
        running, address, _ = start_up(start, tmp_path)
        file = tmp_path / "client.toml"
        content = tomllib.loads(file.read_text())
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert content["address"] == address
        tokens.append(content["token"])
        statuses = [
            httpx2.get(
                f"{address}/api/users", headers={"authorization": f"Bearer {token}"}
            ).status_code
            for token in tokens
        ]
        assert statuses == [401] * (len(tokens) - 1) + [200]
        running.end(signal.SIGINT)


async def test_a_command_can_sign_in_at_any_moment_of_a_start(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load(data=tmp_path)
    app: Any = SimpleNamespace(settings=settings, deps=stage.deps, database=stage.database)
    written = list[str]()

    def write(_path: Path, _address: str, token: str) -> None:
        written.append(token)
        valid = [identify(stage.deps, secret) for secret in written[-2:]]
        assert None not in [asyncio.run(caller) for caller in valid]

    monkeypatch.setattr(owner, "_write_client_file", write)
    for _ in range(3):
        await owner.welcome(app, "http://127.0.0.1:1")

    callers = [await identify(stage.deps, token) for token in written]
    assert [caller is None for caller in callers] == [True, True, False]


async def test_other_machines_can_connect_once_an_account_has_a_password(stage: Stage) -> None:
    def app(host: str) -> Any:
        settings = load(host=host, public_url="https://b.example")
        return SimpleNamespace(settings=settings, deps=stage.deps)

    await people.owner(stage)
    await check_open(app("127.0.0.1"))
    with pytest.raises(BadSetting):
        await check_open(app(EVERYWHERE))

    await people.add(stage)
    await check_open(app(EVERYWHERE))


@pytest.mark.parametrize(
    ("public_url", "reason"),
    [("", "would not be encrypted"), ("https://b.example", "no account has a password")],
)
def test_up_refuses_other_machines_until_it_is_safe(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, public_url: str, reason: str
) -> None:
    monkeypatch.setenv("BACKBURNER_PUBLIC_URL", public_url)
    ended = start("up", "--port", "0", "--host", EVERYWHERE, "--data", tmp_path).end()

    assert (ended.code, ended.out) == (2, [])
    (line,) = ended.err
    assert reason in line
    assert "127.0.0.1" in line


@requirement("Z-zone")
def test_the_first_start_takes_the_zone_of_the_terminal(start: Start, tmp_path: Path) -> None:
    berlin = {**os.environ, "TZ": "Europe/Berlin"}
    address = start("up", "--port", "0", "--data", tmp_path, env=berlin).wait_until_ready()
    token = tomllib.loads((tmp_path / "client.toml").read_text())["token"]

    me = httpx2.get(f"{address}/api/me", headers={"authorization": f"Bearer {token}"}).json()

    assert (me["zone"], me["zone_source"]) == ("Europe/Berlin", "terminal")
