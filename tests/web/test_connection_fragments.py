"""Connections and folders on the page: for their owner only, with the words of servers as text."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.doubles.listed_servers import OTHER_SEND, SEARCH, SEND, URL, ListedServers
from support.stage.api_stage import AskAs, Asker
from support.stage.make import MATE
from support.stage.stage import Stage

from backburner.actions.deps import FolderRules
from backburner.core.connections.connection import ToolDefinition
from backburner.core.errors import ConnectionFailed
from backburner.ports import FolderContent
from backburner.vault.master_keys import MasterKeys
from backburner.vault.vault import SealingVault

EVIL = ToolDefinition(
    name="<script>alert(1)</script>",
    description='"><img src=x onerror=alert(1)> {{ 7*7 }} \u202egnp.exe ' + "x" * 5_000,
    parameters={"type": "object", "title": "</div><script>alert(2)</script>"},
)
CANARY = "canary-40d7"
APP = "/srv/<i>app</i>"


class Disk:
    """One folder, with its instructions."""

    def __init__(self) -> None:
        self.instructions = {"AGENTS.md": "Run the tests first."}

    async def read(self, path: str) -> FolderContent:
        return FolderContent(path=path, instructions=dict(self.instructions))


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def servers() -> ListedServers:
    return ListedServers()


@pytest.fixture
def stage(
    set_up: Callable[..., Stage], servers: ListedServers, disk: Disk, tmp_path: Path
) -> Stage:
    return set_up(
        tool_servers=servers,
        vault=SealingVault(MasterKeys(tmp_path / "master_keys")),
        folders=FolderRules(machine="00aa", machine_name="x", may_be_added=True, read=disk.read),
    )


async def add(ask: Asker, **body: Any) -> str:
    added = await ask.do("POST", "/api/connections", {"url": URL, "name": "mail", **body})
    which: str = added["connection"]["id"]
    return which


async def read(ask: Asker, path: str) -> str:
    answer = await ask("GET", f"/page{path}")
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    return answer.text


async def test_without_connections_the_page_says_so_and_offers_some(ask: Asker) -> None:
    page = await read(ask, "/connections")

    assert "No connections yet." in page
    assert "Linear" in page
    assert "From another program" in page


async def test_a_file_of_another_client_is_shown_without_its_secrets(
    ask: Asker, ask_as: AskAs, stage: Stage
) -> None:
    stage.deps.command = "python3 dev.py run"
    await add(ask)
    content = json.dumps(
        {
            "mcpServers": {
                "<b>mail</b>": {"url": URL},
                "shop": {
                    "url": "http://sh\u043ep.example/mcp",
                    "headers": {"X-Key": CANARY, "X-Other": "${TOKEN}", "X-More": "${A:-b}"},
                    "oauth": {"clientId": "<i>client</i>"},
                },
                "time; rm -rf": {"command": "uvx", "env": {"KEY": CANARY}},
                "old": {"url": "https://old.example/sse"},
            }
        }
    )
    answer = await ask("POST", "/page/connections/imports", {"content": content})
    page = answer.text
    mate = await ask_as(MATE)
    theirs = (await mate("POST", "/page/connections/imports", {"content": content})).text

    assert answer.headers["cache-control"] == "no-store"
    assert "2 servers with addresses, one program, one that cannot be used." in page
    assert "&lt;b&gt;mail&lt;/b&gt;" in page
    assert "&lt;i&gt;client&lt;/i&gt;" in page
    assert not {CANARY, "<b>mail", "<i>client"} & set(re.findall(r"canary-\w+|<[bi]>\w+", page))
    assert "Stores X-Key, X-More, X-Other, sealed" in page
    assert "It is not encrypted on its way." in page
    assert '<span class="char">U+043E</span>' in page
    assert 'data-ask="TOKEN"' in page
    assert "may stay empty" in page
    assert "python3 dev.py run connections import --only &#39;time; rm -rf&#39;" in page
    assert "older transport" in page
    assert (page.count("Connected"), page.count(" disabled")) == (2, 1)
    assert 'href="/connections/x_' in page
    assert 'href="/connections/x_' not in theirs


async def test_a_connection_is_shown_with_its_tools_and_choices(ask: Asker) -> None:
    which = await add(ask, title="My <b>mail</b>")
    await ask.do("POST", f"/api/connections/{which}/ticks", {"tool": "search", "read_only": True})

    page = await read(ask, f"/connections/{which}")

    assert "My &lt;b&gt;mail&lt;/b&gt;" in page
    assert "1 of 2 tools allowed" in page
    assert '<legend class="hidden-text">search</legend>' in page
    assert page.count(" checked") == 3  # Two tools, and chats.
    assert f'data-call="DELETE /api/connections/{which}"' in page
    for part in ("/detail", "/calls", "/sign-in"):
        assert await read(ask, f"/connections/{which}{part}")
    assert "1 of 2 tools allowed" in await read(ask, "/connections/list")
    await read(ask, "/connections/add")


async def test_the_words_of_a_server_are_text(ask: Asker, servers: ListedServers) -> None:
    which = await add(ask)
    servers.tools = (SEARCH, SEND, EVIL)
    await ask.do("POST", f"/api/connections/{which}/refresh")
    withheld = await read(ask, f"/connections/{which}")
    (evil,) = [
        tool
        for tool in (await ask.get(f"/api/connections/{which}"))["tools"]
        if tool["state"] == "new"
    ]
    accept = {"tools": {evil["name"]: evil["digest"]}}
    await ask.do("POST", f"/api/connections/{which}/accept", accept)
    accepted = await read(ask, f"/connections/{which}")
    key = accepted.split("/tools/")[1].split('"')[0]
    details = await read(ask, f"/connections/{which}/tools/{key}")

    assert "New since you connected" in withheld
    for page in (withheld, accepted, details):
        assert "<script" not in page
        assert "<img" not in page
        assert "\u202e" not in page
        assert "7*7" in page
    assert len(accepted) < 60_000


async def test_a_changed_tool_shows_the_difference_with_the_digest_that_was_seen(
    ask: Asker, servers: ListedServers
) -> None:
    which = await add(ask)
    servers.tools = (SEARCH, OTHER_SEND)
    check = await ask.do("POST", f"/api/connections/{which}/refresh")
    digest = check["connection"]["tools"][1]["digest"]

    page = await read(ask, f"/connections/{which}")
    key = page.split('id="change-')[1].split('"')[0]
    alone = await read(ask, f"/connections/{which}/tools/{key}/change")

    for shown in (page, alone):
        assert digest in shown
        assert 'class="removed"' in shown
        assert 'class="added"' in shown
    assert "Changed: look" in page
    assert "Needs a look" in page


async def test_what_went_wrong_is_said_with_its_time(ask: Asker, servers: ListedServers) -> None:
    which = await add(ask)
    servers.error = ConnectionFailed("<i>It</i> hangs.")
    await ask.do("POST", f"/api/connections/{which}/refresh")

    page = await read(ask, f"/connections/{which}")

    assert "Fails" in page
    assert "Went wrong" in page
    assert "&lt;i&gt;It&lt;/i&gt; hangs." in page


async def test_a_refused_key_is_typed_in_anew_and_shown_nowhere(
    ask: Asker, servers: ListedServers
) -> None:
    servers.wants = {"X-Key": "canary-1"}
    which = await add(ask, headers=dict(servers.wants))
    servers.wants = {"X-Key": "canary-2"}
    await ask.do("POST", f"/api/connections/{which}/refresh")

    page = await read(ask, f"/connections/{which}")
    step = await read(ask, f"/connections/{which}/sign-in")

    for shown in (page, step):
        assert 'type="password" name="headers.X-Key"' in shown
        assert "canary" not in shown
    assert "Your key in X-Key" in page
    assert "does not accept the key any more" in step
    assert "data-sign-in" not in step


async def test_a_conversation_chooses_among_the_connections_of_its_user(ask: Asker) -> None:
    for name in ("mail", "wiki"):
        await add(ask, name=name)
    chat = await ask.do("POST", "/api/conversations", {"connections": ["wiki"]})

    page = await read(ask, f"/c/{chat['id']}/connections")
    about = await read(ask, f"/c/{chat['id']}/about")

    assert page.count(" checked") == 1
    assert f'data-call="PUT /api/conversations/{chat["id"]}/connections"' in page
    assert "All that chats use" in page
    assert f'data-show="/page/c/{chat["id"]}/connections"' in about


async def test_a_folder_shows_its_instructions_and_who_works_there(
    ask: Asker, disk: Disk, stage: Stage
) -> None:
    await ask.do("POST", "/api/folders", {"path": APP})
    chat = await ask.do("POST", "/api/conversations", {"folder": APP, "title": "Fix <it>"})
    stage.deps.command = "python3 dev.py run"
    before = await read(ask, "/folders")
    assert ">python3 dev.py run folders add PATH<" in before
    disk.instructions = {"AGENTS.md": "Run <script>nothing</script>."}
    changed = await read(ask, "/folders")

    assert "follows AGENTS.md" in before
    assert f'href="/c/{chat["id"]}"' in before
    assert "/srv/&lt;i&gt;app&lt;/i&gt;" in before
    assert "DELETE /api/folders?path=%2Fsrv%2F%3Ci%3Eapp%3C%2Fi%3E" in before
    assert "Instructions changed: look" not in before
    assert "Instructions changed: look" in changed
    assert "<script" not in changed
    digest = (await ask.get("/api/folders"))["items"][0]["changed_digest"]
    assert digest in changed
    await ask.do("POST", "/api/folders/accept", {"path": APP, "digest": digest})
    assert "Instructions changed: look" not in await read(ask, "/folders")


async def test_a_stranger_sees_nothing(ask: Asker, ask_as: AskAs) -> None:
    which = await add(ask)
    await ask.do("POST", "/api/folders", {"path": APP})
    chat = await ask.do("POST", "/api/conversations", {})
    key = (await read(ask, f"/connections/{which}")).split("/tools/")[1].split('"')[0]
    mate = await ask_as(MATE)

    for path in ("", "/detail", "/calls", "/sign-in", f"/tools/{key}", f"/tools/{key}/change"):
        answer = await mate("GET", f"/page/connections/{which}{path}")
        assert answer.status_code == 404, path
    assert (await mate("GET", f"/page/c/{chat['id']}/connections")).status_code == 404
    assert "No connections yet." in await read(mate, "/connections")
    assert "srv" not in await read(mate, "/folders")
