"""`backburner user` and `backburner token`, with a real server."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from support.programs.programs import Ended, starter

from backburner.core.conversation import Use

Call = Callable[..., Ended]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Start a server of the owner for all tests here; return its address and data folder."""
    data = tmp_path_factory.mktemp("data")
    with starter() as start:
        yield start("up", "--port", "0", "--data", data).wait_until_ready(), data


@pytest.fixture
def address(server: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> str:
    """Let the commands find the server by its data folder."""
    monkeypatch.setenv("BACKBURNER_DATA", str(server[1]))
    return server[0]


def only_line(ended: Ended) -> str:
    assert (ended.code, ended.err) == (0, []), ended
    (line,) = ended.out
    return line


def post(url: str, body: object) -> int:
    headers = {"content-type": "application/json"}
    request = Request(url, json.dumps(body).encode(), headers)  # noqa: S310 (ours)
    with urlopen(request, timeout=10) as response:  # noqa: S310
        status: int = response.status
        return status


def test_accounts_are_added_invited_reset_and_disabled(address: str, call: Call) -> None:
    password = "three words or more"  # noqa: S105 (of nobody)
    reset = only_line(call("user", "add", "ada", "--name", "Ada"))
    assert post(f"{address}/api/password/reset", {"reset": reset, "password": password}) == 200
    invitation = only_line(call("user", "invite", "--role", "operator"))
    body = {"invitation": invitation, "login": "bob", "password": password}
    assert post(f"{address}/api/invitations/accept", body) == 201
    link = only_line(call("user", "link"))
    assert post(f"{address}/api/sign-in", {"link": link}) == 200
    assert "/reset#bb_" in only_line(call("user", "reset", "Ada"))
    assert call("user", "disable", "ada", "--yes").code == 0

    users = {one["login"]: one for one in json.loads("".join(call("user", "list", "--json").out))}
    assert set(users) == {None, "ada", "bob"}
    assert users["ada"]["disabled_at"]
    assert users["bob"]["role"] == "operator"
    table = call("user", "list").out
    assert any("ada" in line and "disabled" in line for line in table)
    assert call("user", "disable", "ada", "--undo").code == 0
    assert call("user", "disable", "nobody").code == 3


@pytest.mark.usefixtures("address")
def test_an_invitation_is_listed_and_revoked(call: Call) -> None:
    for name in ("Ada", "Eve"):
        only_line(call("user", "invite", "--name", name))
    (ada,) = [line for line in call("user", "invitations").out if "Ada" in line]
    assert call("user", "uninvite", ada.split()[0]).out == ["Revoked: Ada."]
    assert call("user", "uninvite", ada.split()[0]).code == 3

    left = json.loads("".join(call("user", "invitations", "--json").out))
    assert [one["name"] for one in left] == ["Eve"]
    assert call("user", "uninvite", "eve").out == ["Revoked: Eve."]


@pytest.mark.usefixtures("address")
def test_a_token_is_printed_once_listed_and_revoked(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = only_line(call("token", "create", "--name", "calendar"))
    assert token.startswith("bb_")
    table = call("token", "list").out
    assert any("calendar" in line and "read" in line for line in table)
    assert not any(token in line for line in table)

    # A token can do what its scopes allow, and nothing else.
    monkeypatch.setenv("BACKBURNER_TOKEN", token)
    assert call("token", "list").code == 0
    assert call("token", "create", "--name", "x").code == 1
    assert call("user", "list").code == 1
    monkeypatch.delenv("BACKBURNER_TOKEN")
    assert call("token", "revoke", "calendar", "--yes").code == 0
    assert call("token", "revoke", "calendar").code == 3
    monkeypatch.setenv("BACKBURNER_TOKEN", token)
    assert call("token", "list").code == 5


@pytest.mark.usefixtures("address")
def test_a_token_is_given_memories_folders_and_sign_ins_by_name(call: Call) -> None:
    only_line(call("token", "create", "--name", "with", "--with", "memories"))
    only_line(call("token", "create", "--name", "without"))
    assert call("token", "create", "--name", "x", "--with", "mail").code == 2

    for use in Use:
        only_line(call("token", "create", "--name", f"with {use}", "--with", use.value))

    tokens = json.loads("".join(call("token", "list", "--json").out))
    uses = {one["name"]: one["uses"] for one in tokens}
    assert (uses["with"], uses["without"]) == (["memories"], [])
    assert all(uses[f"with {use}"] == [use.value] for use in Use)
    table = call("token", "list").out
    assert "WITH" in table[0]
    assert any("with " in line and "memories" in line for line in table)


@pytest.mark.usefixtures("address")
def test_a_token_has_the_lifetime_that_was_asked_for(call: Call) -> None:
    only_line(call("token", "create", "--name", "one", "--expires", "never", "--scope", "write"))
    only_line(call("token", "create", "--name", "two", "--expires", "1h"))
    assert call("token", "create", "--name", "x", "--expires", "soon").code == 2

    tokens = json.loads("".join(call("token", "list", "--json").out))
    expires_at = {one["name"]: one["expires_at"] for one in tokens}
    assert expires_at["one"] is None
    assert expires_at["two"] is not None
