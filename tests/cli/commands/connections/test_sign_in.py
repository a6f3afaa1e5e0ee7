"""`backburner connect` with a server that wants a sign-in: in a browser here, and over ssh."""

import json
import re
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.oauth_peer.peer import OAuthPeer, oauth_peer
from support.programs.programs import Ended, Start
from support.programs.terminals import Terminal, terminal

Call = Callable[..., Ended]


@pytest.fixture
def peer(start: Start) -> Iterator[OAuthPeer]:
    with oauth_peer(start) as peer:
        yield peer


@pytest.fixture
def app(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("BACKBURNER_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("BACKBURNER_PRIVATE_NETWORKS", "127.0.0.1/32")
    monkeypatch.setenv("BACKBURNER_COMMAND", "backburner")
    return start("up", "--port", "0").wait_until_ready()


def read_address(opened: Terminal) -> str:
    """Read the address that a terminal prints, as its user does."""
    opened.wait_for("paste its address here.")
    (address,) = re.findall(r"^ +(https?://\S+)", opened.seen, re.MULTILINE)[-1:]
    return str(address)


def come_back(app: str, call: Call, final: str) -> Any:
    """Be the browser of the same user, which the authorization server has sent back to us."""
    (link,) = call("user", "link").out
    with httpx2.Client(base_url=app, headers={"origin": app}, trust_env=False) as browser:
        signed_in = browser.post("/api/sign-in", json={"link": link.partition("#")[2]})
        half = {"x-backburner-session": signed_in.json()["key"]}
        body = {"address": final}
        return browser.post("/api/connections/finish-sign-in", json=body, headers=half).json()


def show(call: Call) -> Any:
    return json.loads("\n".join(call("connections", "show", "mail", "--json").out))


def test_the_terminal_goes_on_when_the_browser_has_come_back(
    app: str, call: Call, peer: OAuthPeer
) -> None:
    with terminal("connect", peer.server, "--name", "mail") as opened:
        end = come_back(app, call, peer.approve(read_address(opened)))
        code = opened.end()

    assert end == {"connection_name": "mail", "check": None}
    assert (code, "Connected mail: " in opened.seen) == (0, True)
    host, server = (httpx2.URL(url).netloc.decode() for url in (peer.issuer, peer.server))
    allowed = "It will be allowed: mail.read, mail.send."
    assert f"Sign in to Mail at {host}. {allowed}" in opened.seen
    assert f"goes to {host} (authorization server {peer.issuer}); {server} gets" in opened.seen
    found = show(call)
    assert (found["auth"], found["state"]) == ("oauth", "ready")
    assert found["counts"]["offered"] > 0


@pytest.mark.usefixtures("app")
def test_the_last_address_is_pasted_where_no_browser_can_come_back(
    call: Call, peer: OAuthPeer
) -> None:
    with terminal("connect", peer.server, "--name", "mail") as opened:
        final = peer.approve(read_address(opened))
        opened.answer("", "https://example.com/")
        opened.answer("Copy the whole address", final)
        first = opened.end()
    peer.revoke("ann")
    refused = call("connections", "refresh", "mail")
    state = call("connections").out[1]
    with terminal("connect", "mail") as opened:
        opened.answer("", peer.approve(read_address(opened)))
        second = opened.end()

    assert (first, second) == (0, 0)
    assert refused.code == 1
    assert "signed out" in state
    assert show(call)["state"] == "ready"


@pytest.mark.usefixtures("app")
def test_a_server_that_nobody_could_sign_in_to_is_not_added(call: Call, peer: OAuthPeer) -> None:
    peer.switch(registration=False)
    refused = call("connect", peer.server, "--name", "mail")
    listed = call("connections", "--json")
    peer.switch(registration=True)
    with terminal("connect", peer.server, "--name", "mail") as opened:
        opened.answer("", peer.approve(read_address(opened)))
        code = opened.end()
    peer.switch(registration=False)
    peer.forget_clients()
    call("connect", "mail")

    assert refused.code != 0
    assert listed.out == ["[]"]
    assert code == 0
    # It was there before.
    assert show(call)["name"] == "mail"


@pytest.mark.usefixtures("app")
def test_a_client_of_ones_own_is_given_to_the_issuer_that_is_named(
    call: Call, peer: OAuthPeer
) -> None:
    mine = ("connect", peer.server, "--name", "mail", "--client-id", "mine")
    refused = call(*mine)
    other = call(*mine, "--issuer", "https://login.example")
    with terminal(*mine, "--issuer", peer.issuer) as opened:
        address = read_address(opened)

    assert f"--issuer {peer.issuer}" in refused.err[-1]
    assert f"than you: {peer.issuer}" in other.err[0]
    assert "client_id=mine" in address


@pytest.mark.usefixtures("app")
def test_an_address_of_an_earlier_tab_does_not_end_the_command(call: Call, peer: OAuthPeer) -> None:
    with terminal("connect", peer.server, "--name", "mail") as first:
        stale = peer.approve(read_address(first))
        first.interrupt()
        stopped = first.end()
    tools = call("connections", "tools", "mail")
    with terminal("connect", "mail") as again:
        address = read_address(again)
        again.answer("", stale)
        again.answer("This address is of an earlier sign-in.", peer.approve(address))
        code = again.end()
    # Its server ends sign-ins where it says so, and not always.
    removed = call("disconnect", "mail", "--yes")
    peer.switch(metadata={"revocation_endpoint": None})
    with terminal("connect", peer.server, "--name", "wiki") as opened:
        opened.answer("", peer.approve(read_address(opened)))
        opened.end()
    left = call("disconnect", "wiki", "--yes")

    assert stopped == 130
    added = "Interrupted. mail is added but not signed in: `backburner connect mail`"
    assert f"{added}, or `backburner disconnect mail`." in first.seen
    assert tools.out == ["mail is not signed in yet: `backburner connect mail`"]
    assert (code, peer.count("revoked")) == (0, 1)
    assert removed.out == ["Removed mail."]
    place = httpx2.URL(peer.issuer).netloc.decode()
    assert left.out == [f"Removed wiki. {place} did not end the sign-in: end it there."]


@pytest.mark.usefixtures("app")
def test_who_has_waited_for_ten_minutes_is_told_how_to_go_on(
    tmp_path: Path, peer: OAuthPeer
) -> None:
    with terminal("connect", peer.server, "--name", "mail") as opened:
        read_address(opened)
        with closing(
            sqlite3.connect(tmp_path / "data" / "backburner.sqlite3", timeout=20)
        ) as database:
            past = "SELECT created_at FROM connections"
            database.execute(f"UPDATE started_sign_ins SET expires_at = ({past})")  # noqa: S608 (ours)
            database.commit()
        code = opened.end()

    assert code == 3
    assert "Nobody finished the sign-in within ten minutes." in opened.seen
    assert "Start again: `backburner connect mail`." in opened.seen


def test_a_sign_in_outlives_a_restart_of_the_server(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call, peer: OAuthPeer
) -> None:
    monkeypatch.setenv("BACKBURNER_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("BACKBURNER_PRIVATE_NETWORKS", "127.0.0.1/32")
    first = start("up", "--port", "0")
    first.wait_until_ready()
    with terminal("connect", peer.server, "--name", "mail") as opened:
        final = peer.approve(read_address(opened))
        first.end(signal.SIGKILL)
        start("up", "--port", "0").wait_until_ready()
        opened.answer("", final)
        code = opened.end()

    assert (code, "Connected mail: 4 tools." in opened.seen) == (0, True)
    assert show(call)["state"] == "ready"


def test_who_says_no_at_the_server_is_told_so(app: str, call: Call, peer: OAuthPeer) -> None:
    with terminal("connect", peer.server, "--name", "mail") as opened:
        final = peer.approve(read_address(opened), allowed=False)
        come_back(app, call, final)
        code = opened.end()

    assert (code, "You did not allow it" in opened.seen) == (1, True)
    assert show(call)["state"] == "signing_in"
