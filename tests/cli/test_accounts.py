"""`backburner user` and `backburner token`, against a server that runs."""

import json
from collections.abc import Callable
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from support.programs.programs import Ended, Start

Call = Callable[..., Ended]


@pytest.fixture
def address(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Start a server of one's own, which the commands find by its data folder."""
    monkeypatch.setenv("BACKBURNER_DATA", str(tmp_path / "data"))
    return start("up", "--port", "0").wait_until_ready()


def only_line(ended: Ended) -> str:
    assert (ended.code, ended.err) == (0, []), ended
    (line,) = ended.out
    return line


def post(url: str, body: object) -> int:
    headers = {"content-type": "application/json"}
    request = Request(url, json.dumps(body).encode(), headers)  # noqa: S310 (ours)
    with urlopen(request, timeout=10) as answer:  # noqa: S310
        status: int = answer.status
        return status


def test_people_are_let_in_helped_and_shut_out(address: str, call: Call) -> None:
    server = address
    password = "three words or more"  # noqa: S105 (of nobody)
    reset = only_line(call("user", "add", "ada", "--name", "Ada"))
    assert post(f"{server}/api/password/reset", {"reset": reset, "password": password}) == 200
    invited = only_line(call("user", "invite", "--role", "operator"))
    body = {"invitation": invited, "login": "bob", "password": password}
    assert post(f"{server}/api/invitations/accept", body) == 201
    link = only_line(call("user", "link"))
    assert post(f"{server}/api/sign-in", {"link": link}) == 200
    assert "/reset#bb_" in only_line(call("user", "reset", "Ada"))
    assert call("user", "disable", "ada").code == 0

    listed = {one["login"]: one for one in json.loads("".join(call("user", "list", "--json").out))}
    assert set(listed) == {None, "ada", "bob"}
    assert listed["ada"]["disabled_at"]
    assert listed["bob"]["role"] == "operator"
    table = call("user", "list").out
    assert any("ada" in line and "disabled" in line for line in table)
    assert call("user", "disable", "ada", "--undo").code == 0
    assert call("user", "disable", "nobody").code == 3


def test_an_invitation_is_listed_and_taken_back(address: str, call: Call) -> None:
    assert address
    for name in ("Ada", "Eve"):
        only_line(call("user", "invite", "--name", name))
    (ada,) = [line for line in call("user", "invitations").out if "Ada" in line]
    assert call("user", "uninvite", ada.split()[0]).code == 0
    assert call("user", "uninvite", ada.split()[0]).code == 3

    left = json.loads("".join(call("user", "invitations", "--json").out))
    assert [one["name"] for one in left] == ["Eve"]


def test_a_token_is_printed_alone_listed_and_revoked(
    address: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert address
    token = only_line(call("token", "create", "--name", "calendar"))
    assert token.startswith("bb_")
    listed = call("token", "list").out
    assert any("calendar" in line and "read" in line for line in listed)
    assert not any(token in line for line in listed)

    # What it is good for is all that can be done with it.
    monkeypatch.setenv("BACKBURNER_TOKEN", token)
    assert call("token", "list").code == 0
    assert call("token", "create", "--name", "x").code == 1
    assert call("user", "list").code == 1
    monkeypatch.delenv("BACKBURNER_TOKEN")
    assert call("token", "revoke", "calendar").code == 0
    assert call("token", "revoke", "calendar").code == 3
    monkeypatch.setenv("BACKBURNER_TOKEN", token)
    assert call("token", "list").code == 5


def test_a_token_lives_as_long_as_is_said(address: str, call: Call) -> None:
    assert address
    only_line(call("token", "create", "--name", "one", "--expires", "never", "--scope", "write"))
    only_line(call("token", "create", "--name", "two", "--expires", "1h"))
    assert call("token", "create", "--name", "x", "--expires", "soon").code == 2

    found = json.loads("".join(call("token", "list", "--json").out))
    ends = {one["name"]: one["expires_at"] for one in found}
    assert ends["one"] is None
    assert ends["two"] is not None
