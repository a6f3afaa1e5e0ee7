"""`/api/folders`: which credential adds a folder, accepts its instructions, and works in it."""

from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from support.doubles.engine import Call, End, Say
from support.requirements import requirement
from support.stage.api_stage import AskAs, Asker
from support.stage.make import USER
from support.stage.stage import Stage, prompts

from backburner.actions.deps import FolderRules
from backburner.core.accounts import Scope
from backburner.core.ids import ConversationId
from backburner.core.question import Purpose
from backburner.ports import FolderContent

APP = "/srv/app"
CLIENT = (Scope.READ, Scope.WRITE)
EVERY_SCOPE = tuple(Scope)


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
def stage(set_up: Callable[..., Stage], disk: Disk) -> Stage:
    rules = FolderRules(machine="00aa", machine_name="x", may_be_added=True, read=disk.read)
    return set_up(folders=rules)


@pytest.fixture
async def owner(ask_as: AskAs) -> Asker:
    """The command line of the server's machine, which has added a folder."""
    owner = await ask_as(USER)
    await owner.do("POST", "/api/folders", {"path": APP})
    return owner


async def only_folder(asker: Asker) -> Any:
    (folder,) = (await asker.get("/api/folders"))["items"]
    return folder


@requirement("B-folder")
async def test_no_token_adds_a_folder_or_changes_its_use_whatever_its_scopes(
    owner: Asker, ask_as: AskAs, browser: httpx2.AsyncClient
) -> None:
    token = await ask_as(USER, *EVERY_SCOPE)
    link = (await owner.do("POST", "/api/sign-in-links"))["secret"]
    assert (await browser.post("/api/sign-in", json={"link": link})).status_code == 200

    for body in ({"path": "/srv/other"}, {"path": APP, "read_only": True}):
        for answer in (
            await token("POST", "/api/folders", body),
            await browser.post("/api/folders", json=body),
        ):
            assert answer.status_code == 403
            assert "command line of the machine" in answer.json()["detail"]
    assert (await only_folder(owner))["read_only"] is False


async def accept(asker: Asker) -> httpx2.Response:
    digest = (await only_folder(asker))["changed_digest"]
    return await asker("POST", "/api/folders/accept", {"path": APP, "digest": digest})


@requirement("B-folder")
async def test_accepting_changed_instructions_needs_a_credential_that_consents(
    owner: Asker, ask_as: AskAs, disk: Disk
) -> None:
    disk.instructions = {"AGENTS.md": "Do something else."}
    writes, consents = await ask_as(USER, *CLIENT), await ask_as(USER, *CLIENT, Scope.APPROVE)

    refused = await accept(writes)
    assert refused.status_code == 403
    assert "approve" in refused.json()["hint"]
    assert (await only_folder(owner))["instructions"] == {"AGENTS.md": "Run the tests first."}

    accepted = await accept(consents)
    assert accepted.status_code == 200
    assert (await only_folder(owner))["instructions"] == disk.instructions


@requirement("B-folder")
async def test_a_token_that_writes_speaks_in_a_chat_with_a_folder_and_gets_no_folder_itself(
    owner: Asker, ask_as: AskAs, stage: Stage
) -> None:
    chat = await owner.do("POST", "/api/conversations", {"folder": APP})
    client = await ask_as(USER, *CLIENT)
    stage.engine.then(Say("Well."), End())
    await client.do("POST", f"/api/conversations/{chat['id']}/messages", {"content": "Look."})
    await stage.work()
    (prompt,) = prompts(stage.engine, ConversationId(chat["id"]))
    assert APP in prompt

    job = {"description": "x", "prompt": "y", "conversation": chat["id"]}
    for path, body in (
        ("/api/conversations", {"folder": APP}),
        ("/api/tasks", {"name": "x", "prompt": "y", "kind": "oneshot", "folder": APP}),
        ("/api/jobs", {**job, "folder": APP}),
    ):
        refused = await client("POST", path, body)
        assert (path, refused.status_code) == (path, 403), refused.text
        assert "--with folders" in refused.json()["hint"]
    handed_out = await client.do("POST", "/api/jobs", job)
    shown = await owner.get(f"/api/conversations/{handed_out['id']}")
    assert shown["folder"] is None


async def test_a_message_of_a_token_consents_to_nothing_in_a_chat_with_a_folder(
    owner: Asker, ask_as: AskAs, stage: Stage
) -> None:
    chat = await owner.do("POST", "/api/conversations", {"folder": APP})
    path = f"/api/conversations/{chat['id']}/messages"
    client = await ask_as(USER, *CLIENT)
    stage.engine.then(Call("send"))
    await client.do("POST", path, {"content": "Send it."})
    await stage.work()
    (asked,) = (await client.get("/api/questions"))["items"]
    assert asked["purpose"] == Purpose.APPROVAL

    await client.do("POST", path, {"content": "yes"})
    await stage.work()
    refused = await client("POST", f"/api/questions/{asked['id']}/answer", {"answer": "yes"})

    assert refused.status_code == 403
    assert stage.tools.count("send") == 0
