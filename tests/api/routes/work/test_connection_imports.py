"""`/api/connections/imports`: the file of another client, looked at, and added one by one.

Files come from strangers; secrets go in and never come out.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.doubles.listed_servers import URL, ListedServers
from support.stage.api_stage import AskAs, Asker, read_rows
from support.stage.make import MATE, USER
from support.stage.stage import Stage

from backburner.core.connections.imports.choices import MAX_CONTENT_CHARS
from backburner.core.errors import ConnectionFailed
from backburner.vault.master_keys import MasterKeys
from backburner.vault.vault import SealingVault

PATH = "/api/connections/imports"
CANARY = "canary-91c4"
HEADERS = {"Authorization": f"Bearer {CANARY}"}
TIME = {"command": "uvx", "args": ["mcp-server-time"], "env": {"KEY": CANARY}}
FILE = json.dumps(
    {
        "mcpServers": {
            "Post": {"url": URL, "headers": HEADERS},
            "time": TIME,
            "old": {"type": "sse", "url": f"{URL}/sse"},
            "asks": {"url": URL, "headers": {"Authorization": "Bearer ${input:token}"}},
        },
        "inputs": [{"id": "token", "description": "Token of the post", "password": True}],
    }
)
POST = {"content": FILE, "number": 0, "url": URL}


@pytest.fixture
def servers() -> ListedServers:
    return ListedServers(wants=HEADERS)


@pytest.fixture
def stage(set_up: Callable[..., Stage], servers: ListedServers, tmp_path: Path) -> Stage:
    vault = SealingVault(MasterKeys(tmp_path / "master_keys"))
    return set_up(tool_servers=servers, vault=vault)


async def look(ask: Asker, content: str) -> list[Any]:
    items: list[Any] = (await ask.do("POST", f"{PATH}/preview", {"content": content}))["items"]
    return items


async def test_a_file_is_shown_without_its_secrets_and_nothing_is_stored(
    ask: Asker, servers: ListedServers
) -> None:
    post, time, old, asks = await look(ask, FILE)

    assert (post["kind"], post["name"], post["url"]) == ("server", "Post", URL)
    assert (post["headers"], post["asks"], post["connection_id"]) == (["Authorization"], [], None)
    assert (time["kind"], time["url"], time["headers"]) == ("program", "", [])
    assert (old["kind"], "older transport" in old["reason"]) == ("left_out", True)
    assert asks["asks"] == [{"key": "input:token", "label": "Token of the post", "needed": True}]
    assert CANARY not in str([post, time, old, asks])
    assert servers.opened == []
    assert (await ask.get("/api/connections"))["items"] == []


async def test_one_server_is_added_with_its_secret_sealed(ask: Asker, stage: Stage) -> None:
    answer = await ask("POST", PATH, POST, headers={"idempotency-key": "once"})
    connection = answer.json()["connection"]

    assert answer.status_code == 201
    assert (connection["name"], connection["title"]) == ("post", "Post")
    assert (connection["auth"], connection["headers"]) == ("header", ["Authorization"])
    assert connection["counts"]["offered"] == 2
    texts = [answer.text, (await ask("GET", "/api/me/audit")).text, str(read_rows(stage))]
    assert not any(CANARY in text for text in texts)
    [post, *_] = await look(ask, FILE)
    assert post["connection_id"] == connection["id"]


async def test_a_value_that_is_typed_in_is_sent_and_sealed(ask: Asker, stage: Stage) -> None:
    chosen = {**POST, "number": 3}
    missing = await ask("POST", PATH, chosen)
    added = await ask.do("POST", PATH, {**chosen, "values": {"input:token": CANARY}})

    assert missing.status_code == 400
    assert "The value of Token of the post is missing." in missing.text
    assert added["connection"]["name"] == "asks"
    assert CANARY not in str(added) + str(read_rows(stage))


async def test_a_second_account_gets_a_name_of_its_own_and_the_same_one_is_refused(
    ask: Asker, servers: ListedServers
) -> None:
    servers.wants = {}
    plain = json.dumps({"mcpServers": {"Post": {"url": URL}}})
    first = await ask.do("POST", PATH, {"content": plain, "number": 0, "url": URL})
    second = await ask.do("POST", PATH, POST)
    again = await ask("POST", PATH, POST)

    assert first["connection"]["name"] == "post"
    assert second["connection"]["name"] == "post-2"
    assert (again.status_code, "already as post-2" in again.text) == (409, True)


@pytest.mark.parametrize(
    ("change", "status", "says"),
    [
        ({"number": 1}, 400, "time is not imported here"),
        ({"number": 2}, 400, "older transport"),
        ({"number": 9}, 400, "no such server"),
        ({"number": -1}, 422, "number"),
        ({"url": "https://other.example/mcp"}, 409, "another address"),
        ({"content": "["}, 400, "not JSON"),
        ({"content": ""}, 422, "content"),
        ({"content": [CANARY]}, 422, "content"),
        ({"values": {"TOKEN": [CANARY]}}, 422, "values"),
        ({"values": {str(number): CANARY for number in range(21)}}, 422, "values"),
    ],
)
async def test_what_cannot_be_added_changes_nothing_and_repeats_no_secret(
    ask: Asker, servers: ListedServers, change: dict[str, Any], status: int, says: str
) -> None:
    refused = await ask("POST", PATH, {**POST, **change})

    assert (refused.status_code, says in refused.text) == (status, True), refused.text
    assert CANARY not in refused.text
    assert servers.opened == []
    assert (await ask.get("/api/connections"))["items"] == []


async def test_a_server_that_cannot_be_reached_or_refuses_its_key_is_not_added(
    ask: Asker, servers: ListedServers
) -> None:
    servers.error = ConnectionFailed("mail.example does not answer.", hint="Try again later.")
    unreachable = await ask("POST", PATH, POST)
    servers.error, servers.wants = None, {"Authorization": "Bearer other"}
    refused = await ask("POST", PATH, POST)

    assert (unreachable.status_code, refused.status_code) == (502, 502)
    assert CANARY not in unreachable.text + refused.text
    assert (await ask.get("/api/connections"))["items"] == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("[]", "not an object"),
        ("{}", "no servers"),
        ("[" * 100_000, "nested too deeply"),
        ('{"mcpServers":' * 30_000, "nested too deeply"),
        (json.dumps({"mcpServers": {str(n): {"url": URL} for n in range(5_000)}}), "5,000 servers"),
        ('{"mcpServers": {"a": {}, "a": {}}}', "twice"),
        ('{"mcpServers": {"a": ' + "9" * 10_000 + "}}", "a number that is too long"),
        ("x" * (MAX_CONTENT_CHARS + 1), "content"),
    ],
    ids=["list", "empty", "deep", "deep objects", "thousands", "twice", "long number", "huge"],
)
async def test_hostile_files_are_refused_in_plain_words(
    ask: Asker, content: str, says: str
) -> None:
    refused = await ask("POST", f"{PATH}/preview", {"content": content})

    assert refused.status_code in (400, 422)
    assert says in refused.text
    assert len(refused.text) < 1_000


async def test_hostile_entries_are_shown_as_what_they_are(ask: Asker) -> None:
    servers = {
        "<script>alert(1)</script>": {"url": URL},
        "a\u202eb": {"url": URL},
        "n" * 1_000: {"url": URL},
        "wrong": {"url": {"a": []}, "headers": 7},
        "number": 7,
        "deep": {"url": URL, "headers": {"A": {"b": []}}},
        "own machine": {"url": "http://169.254.169.254/latest", "headers": HEADERS},
    }
    found = await look(ask, json.dumps({"projects": {"/p" * 5_000: {"mcpServers": servers}}}))

    kinds = {one["name"][:12]: one["kind"] for one in found}
    assert kinds["<script>aler"] == kinds["own machine"] == "server"
    assert sorted(kinds.values()).count("left_out") == 5
    assert all(len(str(one)) < 1_000 for one in found)
    assert "\u202e" not in str(found)


async def test_files_and_connections_of_others_are_not_seen(ask_as: AskAs) -> None:
    [user, mate] = [await ask_as(one) for one in (USER, MATE)]
    await user.do("POST", PATH, POST)

    [post, *_] = await look(mate, FILE)
    assert post["connection_id"] is None
    assert (await mate.do("POST", PATH, POST))["connection"]["name"] == "post"
