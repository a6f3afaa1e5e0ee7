"""`--here`: an operator at the machine can always create a link."""

import signal
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from support.programs.programs import Ended, Start

from backburner.cli.client import NotSignedIn, Server

Call = Callable[..., Ended]
OLD, NEW = "three words or more", "four words or even more"


def forget_the_password(start: Start, data: Path) -> None:
    """Set a password for the owner and stop the server, so that no credential is left."""
    running = start("up", "--port", "0", "--data", data)
    running.wait_until_ready()
    kept = tomllib.loads((data / "client.toml").read_text())
    body = {"login": "ann", "password": OLD}
    Server(kept["address"], kept["token"]).put("/api/password", body)
    running.end(signal.SIGINT)


@pytest.mark.parametrize("login", [(), ("Ann",)])
def test_an_owner_who_forgot_the_password_sets_a_new_one(
    start: Start, call: Call, tmp_path: Path, login: tuple[str, ...]
) -> None:
    forget_the_password(start, tmp_path)
    printed = call("user", "reset", *login, "--here", "--data", str(tmp_path))
    (link,) = printed.out

    assert printed.err == ["For ann:"]
    assert link.startswith("http://127.0.0.1:8484/reset#bb_")
    server = Server(start("up", "--port", "0", "--data", tmp_path).wait_until_ready(), "")
    assert server.post("/api/password/reset", {"reset": link, "password": NEW})["id"]
    assert server.post("/api/sign-in", {"login": "ann", "password": NEW})["id"]
    with pytest.raises(NotSignedIn):
        server.post("/api/sign-in", {"login": "ann", "password": OLD})


def test_with_postgres_the_server_may_be_running(
    start: Start,
    call: Call,
    tmp_path: Path,
    empty_postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BACKBURNER_DATABASE_URL", empty_postgres_url)
    monkeypatch.setenv("BACKBURNER_DATA", str(tmp_path))
    running = start("serve", "--port", "0")
    server = Server(running.wait_until_ready(), "")
    (link,) = call("user", "link", "--here").out

    assert server.post("/api/sign-in", {"link": link})["id"]
    refused = call("user", "reset", "--here")
    assert (refused.code, refused.out) == (4, [])
    assert "signs in with a link" in refused.err[0]


def test_a_sqlite_file_that_a_server_has_open_is_refused(
    start: Start, call: Call, tmp_path: Path
) -> None:
    start("up", "--port", "0", "--data", tmp_path).wait_until_ready()
    refused = call("user", "link", "--here", "--data", str(tmp_path))

    assert (refused.code, refused.out) == (1, [])
    assert "stop it" in refused.err[0]


def test_no_database_is_created(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    assert call("user", "link", "--here", "--data", str(folder)).code == 3
    assert not folder.exists()


@pytest.mark.parametrize(
    "arguments",
    [("link", "ann"), ("reset",), ("link", "--here", "--url", "http://localhost")],
)
def test_contradicting_arguments_are_refused(call: Call, tmp_path: Path, arguments: str) -> None:
    (tmp_path / "client.toml").write_text('address = "http://localhost"\ntoken = ""\n')
    (tmp_path / "client.toml").chmod(0o600)
    refused = call("user", *arguments, "--data", str(tmp_path))

    assert refused.code == 2
    assert "--here" in refused.err[0]


def test_an_unknown_login_is_not_found(start: Start, call: Call, tmp_path: Path) -> None:
    forget_the_password(start, tmp_path)

    assert call("user", "reset", "bob", "--here", "--data", str(tmp_path)).code == 3
