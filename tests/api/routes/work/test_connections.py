"""`/api/connections`: adding, showing and trusting; secrets go in and never come out."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.doubles.listed_servers import OTHER_SEND, SEARCH, URL, ListedServers
from support.stage.api_stage import AskAs, Asker, read_rows
from support.stage.make import MATE, USER
from support.stage.stage import Stage

from backburner.core.accounts import Scope
from backburner.core.errors import ConnectionFailed
from backburner.vault.master_keys import MasterKeys
from backburner.vault.vault import SealingVault

PATH = "/api/connections"
CANARY = "canary-77e0"
HEADERS = {"Authorization": f"Bearer {CANARY}"}
MAIL = {"url": URL, "name": "mail", "headers": HEADERS}


@pytest.fixture
def servers() -> ListedServers:
    return ListedServers(wants=HEADERS)


@pytest.fixture
def stage(set_up: Callable[..., Stage], servers: ListedServers, tmp_path: Path) -> Stage:
    vault = SealingVault(MasterKeys(tmp_path / "master_keys"))
    return set_up(tool_servers=servers, vault=vault)


async def add(ask: Asker, **body: Any) -> Any:
    return (await ask.do("POST", PATH, {**MAIL, **body}))["connection"]


async def test_a_connection_is_added_listed_shown_changed_and_removed(ask: Asker) -> None:
    added = await add(ask, title="My mail")
    path = f"{PATH}/{added['id']}"
    (listed,) = (await ask.get(PATH))["items"]
    timeout = {"call_timeout": 1800}
    changed = await ask.do("PATCH", path, {"in_chats": False, "disabled": True, **timeout})
    shown = await ask.get(path)
    removed = await ask.do("DELETE", path)

    assert removed == {"not_ended_at": ""}
    assert (added["name"], added["title"], added["auth"]) == ("mail", "My mail", "header")
    assert added["counts"] == {"offered": 2, "read_only": 0, "withheld": 0, "gone": 0, "off": 0}
    assert "tools" not in listed
    assert changed == shown
    assert (shown["in_chats"], shown["disabled"]) == (False, True)
    assert (added["call_timeout"], shown["call_timeout"]) == (60, 1800)
    assert [tool["name"] for tool in shown["tools"]] == ["search", "send"]
    assert (await ask.get(PATH))["items"] == []
    assert (await ask("GET", path)).status_code == 404


async def test_a_secret_is_in_no_response_row_export_or_audit(
    ask: Asker, servers: ListedServers
) -> None:
    answer = await ask("POST", PATH, MAIL, headers={"idempotency-key": "once"})
    path = f"{PATH}/{answer.json()['connection']['id']}"
    servers.wants = {"X-Key": f"{CANARY}-2"}
    other = await ask("POST", f"{path}/headers", {"headers": servers.wants})
    refused = [
        await ask("POST", f"{path}/headers", {"headers": {"X-Key": f"{CANARY}-3"}}),
        await ask("POST", f"{path}/headers", {"headers": {"X-Key": f"{CANARY}\n"}}),
        await ask("POST", f"{path}/headers", {"headers": {"X-Key": [CANARY]}}),
        await ask("POST", PATH, {**MAIL, "name": 1}),
    ]
    read = [
        (await ask("GET", one)).text
        for one in (PATH, path, "/api/audit", "/api/me/audit", "/api/export")
    ]
    texts = [answer.text, other.text, *(one.text for one in refused), *read]

    assert answer.status_code == 201
    assert other.status_code == 200
    assert [one.status_code for one in refused] == [502, 400, 422, 422]
    assert not any(CANARY in text for text in texts)
    exported = json.loads(read[-1])
    assert [one["name"] for one in exported["connections"]] == ["mail"]
    assert [one["name"] for one in exported["connection_tools"]] == ["search", "send"]


async def test_no_row_has_a_secret_in_the_clear(ask: Asker, stage: Stage) -> None:
    await add(ask)

    assert CANARY not in str(read_rows(stage))


async def test_the_same_key_adds_one_connection(ask: Asker) -> None:
    body, key = {**MAIL, "name": ""}, {"idempotency-key": "once"}
    first = await ask("POST", PATH, body, headers=key)
    second = await ask("POST", PATH, body, headers=key)

    assert first.json() == second.json()
    assert len((await ask.get(PATH))["items"]) == 1


async def test_a_server_that_wants_a_sign_in_says_so(ask: Asker) -> None:
    added = await add(ask, headers={})

    assert (added["auth"], added["state"]) == ("oauth", "signing_in")


async def test_a_server_that_cannot_be_reached_is_named_with_what_to_do(
    ask: Asker, servers: ListedServers
) -> None:
    known = await add(ask)
    servers.error = ConnectionFailed("mail.example does not answer.", hint="Try again later.")

    refused = await ask("POST", PATH, {**MAIL, "name": "other"})
    check = await ask.do("POST", f"{PATH}/{known['id']}/refresh")

    assert refused.status_code == 502
    assert refused.json()["detail"] == check["error"] == "mail.example does not answer."
    assert refused.json()["hint"] == check["hint"] == "Try again later."
    assert check["connection"]["last_error"] == "mail.example does not answer. Try again later."


async def test_a_changed_tool_shows_both_definitions_and_is_accepted_as_it_was_seen(
    ask: Asker, servers: ListedServers
) -> None:
    path = f"{PATH}/{(await add(ask))['id']}"
    servers.tools = (SEARCH, OTHER_SEND)
    check = await ask.do("POST", f"{path}/refresh")
    (search, send) = check["connection"]["tools"]

    stale = await ask("POST", f"{path}/accept", {"tools": {"send": search["digest"]}})
    unknown = await ask("POST", f"{path}/accept", {"tools": {"draft": send["digest"]}})
    accepted = await ask.do("POST", f"{path}/accept", {"tools": {"send": send["digest"]}})

    assert (search["state"], send["state"]) == ("accepted", "changed")
    assert send["accepted_definition"]["description"] == "Send a mail."
    assert send["definition"]["description"] == "Send a mail, and a copy to us."
    assert (stale.status_code, unknown.status_code) == (409, 404)
    assert [tool["state"] for tool in accepted["tools"]] == ["accepted", "accepted"]
    servers.tools = ()
    gone = await ask.do("POST", f"{path}/refresh")
    assert gone["connection"]["counts"]["gone"] == 2


async def test_a_tool_is_ticked_and_a_claim_of_its_server_is_only_shown(ask: Asker) -> None:
    path = f"{PATH}/{(await add(ask))['id']}"
    before = (await ask.get(path))["tools"][0]

    ticked = await ask.do("POST", f"{path}/ticks", {"tool": "search", "read_only": True})
    nothing = await ask("POST", f"{path}/ticks", {"tool": "search"})
    back = await ask.do("POST", f"{path}/ticks", {"tool": "search", "read_only": None})

    assert (before["says_read_only"], before["read_only"]) == (True, False)
    tool = ticked["tools"][0]
    assert (tool["read_only"], tool["ticked_read_only"], tool["repeatable"]) == (True, True, True)
    assert nothing.status_code == 400
    assert back["tools"][0] == before


@pytest.mark.parametrize("user", [USER, MATE])
async def test_another_users_connection_is_like_one_that_is_not_there(
    ask: Asker, ask_as: AskAs, stage: Stage, user: str
) -> None:
    which = (await add(ask))["id"] if user == USER else "x_0123456789abcdefghjkmnpqrs"
    stranger = await ask_as(MATE) if user == USER else ask
    before = read_rows(stage)

    path = f"{PATH}/{which}"
    for method, more, body in (
        ("GET", "", None),
        ("PATCH", "", {"title": "Mine"}),
        ("DELETE", "", None),
        ("GET", "/health", None),
        ("POST", "/headers", {"headers": {"X-Key": "x"}}),
        ("POST", "/refresh", None),
        ("POST", "/accept", {"tools": {"send": "0"}}),
        ("POST", "/ticks", {"tool": "send", "read_only": True}),
    ):
        answer = await stranger(method, path + more, body)
        assert answer.status_code == 404, (method, more)
    assert read_rows(stage) == before


async def test_work_shows_its_connections_and_more_need_a_token_that_may_approve(
    ask: Asker, ask_as: AskAs
) -> None:
    for name in ("mail", "wiki"):
        await add(ask, name=name)
    writer = await ask_as(USER, Scope.READ, Scope.WRITE)
    chat = await ask.do("POST", "/api/conversations", {})
    task = await ask.do(
        "POST",
        "/api/tasks",
        {"name": "Watch", "prompt": "Look.", "when": "every monday at 3", "connections": ["mail"]},
    )
    job = await ask.do(
        "POST",
        "/api/jobs",
        {
            "conversation": chat["id"],
            "description": "j",
            "prompt": "Look.",
            "connections": ["wiki"],
        },
    )
    more = {"connections": ["mail", "wiki"]}
    refused = [
        await writer("PATCH", f"/api/tasks/{task['id']}", more),
        await writer(
            "PUT", f"/api/conversations/{task['id']}/connections", {"names": ["mail", "wiki"]}
        ),
    ]

    assert (chat["connections"], task["connections"], job["connections"]) == (
        None,
        ["mail"],
        ["wiki"],
    )
    assert [one.status_code for one in refused] == [403, 403]
    changed = await ask.do("PATCH", f"/api/tasks/{task['id']}", more)
    assert changed["connections"] == ["mail", "wiki"]
    fewer = await writer("PUT", f"/api/conversations/{chat['id']}/connections", {"names": []})
    assert fewer.json()["connections"] == []
    assert (await ask.get(f"/api/tasks/{task['id']}/preview"))["connections"] == ["mail", "wiki"]


async def test_a_token_says_which_connections_its_work_may_use(ask: Asker, ask_as: AskAs) -> None:
    await add(ask)
    new = {"name": "editor", "scopes": ["read", "write"], "connections": ["mail"]}
    created = await ask.do("POST", "/api/tokens", new)
    unknown = await ask("POST", "/api/tokens", {**new, "connections": ["bank"]})
    listed = {one["name"]: one["connections"] for one in (await ask.get("/api/tokens"))["items"]}
    given = Asker(ask.client, created["token"], ask.api)
    chat = await given.do("POST", "/api/conversations", {})
    plain = await ask_as(USER, Scope.READ, Scope.WRITE)

    assert unknown.status_code == 400
    assert listed["editor"] == ["mail"]
    assert chat["connections"] == ["mail"]
    none = await plain.do("POST", "/api/conversations", {})
    assert none["connections"] == []
    task = {"name": "t", "prompt": "p", "when": "every monday at 3", "connections": ["mail"]}
    assert (await plain("POST", "/api/tasks", task)).status_code == 400
    assert (await given("POST", "/api/tasks", task)).status_code == 201


async def test_a_tool_is_turned_off_and_on_again(ask: Asker, servers: ListedServers) -> None:
    path = f"{PATH}/{(await add(ask))['id']}"

    off = await ask.do("POST", f"{path}/ticks", {"tool": "send", "off": True})
    servers.tools = (SEARCH, OTHER_SEND)
    changed = (await ask.do("POST", f"{path}/refresh"))["connection"]
    on = await ask.do("POST", f"{path}/ticks", {"tool": "send", "off": False})

    assert off["counts"] == {"offered": 1, "read_only": 0, "withheld": 0, "gone": 0, "off": 1}
    assert [tool["off"] for tool in off["tools"]] == [False, True]
    # Nobody is asked to look at what they have turned off.
    assert (changed["tools"][1]["state"], changed["counts"]["withheld"]) == ("changed", 0)
    assert (on["counts"]["withheld"], on["counts"]["off"]) == (1, 0)


async def test_a_call_cannot_have_any_timeout(ask: Asker) -> None:
    path = f"{PATH}/{(await add(ask))['id']}"

    refused = [await ask("PATCH", path, {"call_timeout": each}) for each in (4.9, 1801, "soon")]

    assert [each.status_code for each in refused] == [422, 422, 422]
    assert (await ask.get(path))["call_timeout"] == 60
