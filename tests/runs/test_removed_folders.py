"""Folders that are removed while an agent works there: no tool works in it from the next call on.

That holds for our tools, for those of Claude Code itself, and for a program that is kept warm.
"""

import os
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import Call, ScriptedEngine, Step
from support.model_api import CallTool, ModelApi, ModelRequest, Reply, Say
from support.requirements import requirement
from support.stage.make import NOON, USER
from support.stage.stage import Stage

from backburner.actions import chat
from backburner.actions.chat import NewChat
from backburner.actions.deps import FolderRules
from backburner.actions.work import folders
from backburner.app.folders import read_folder
from backburner.bus.local import LocalBus
from backburner.core.accounts import LOCAL_CLIENT_NAME, Caller, CredentialKind, Role, Scope
from backburner.core.conversation import Conversation
from backburner.core.ids import UserId
from backburner.core.work.folders import Folder, ForbiddenPlaces
from backburner.engine.claude.engine import ClaudeEngine, ClaudeModel
from backburner.gateway.network import CheckedNetwork
from backburner.ports import FolderContent, Offer, TurnRequest
from backburner.process.launcher import CleanLauncher
from backburner.process.shell import ConfinedShell
from backburner.store.db import Database
from backburner.tools.toolbox import Toolbox
from backburner.tools.workspace import CommandTerms, workspace_offers

REMOVED = "was removed from those that agents may use"
ADA = Caller(
    user=USER,
    role=Role.OPERATOR,
    scopes=frozenset(Scope),
    credential="k_1",
    kind=CredentialKind.TOKEN,
    name=LOCAL_CLIENT_NAME,
)


async def read(path: str) -> FolderContent:
    return read_folder(path)


class Project:
    """A chat with Claude in a folder of the user."""

    def __init__(self, stage: Stage, api: ModelApi, folder: Path) -> None:
        self.stage, self.api, self.folder = stage, api, folder
        self.homes = folder.parent / "homes"

    async def add(self) -> None:
        await folders.add(self.stage.deps, ADA, str(self.folder), read_only=False)

    async def start(self) -> Conversation:
        await self.add()
        return await chat.start(self.stage.deps, USER, NewChat(folder=str(self.folder)))

    def remove(self) -> None:
        path, machine = str(self.folder), self.stage.deps.folders.machine
        self.stage.database.run(lambda tx: tx.folders.remove(USER, path, machine))

    async def say(self, conversation: Conversation, text: str) -> None:
        await self.stage.say(conversation, text)
        await self.stage.work()

    def programs(self) -> set[str]:
        """Return the homes of the programs that are there."""
        return {home.name for home in self.homes.glob("*/home-*")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = Path(os.path.realpath(tmp_path)) / "app"
    made.mkdir()
    return made


@pytest.fixture
async def project(database: Database, folder: Path) -> AsyncIterator[Project]:
    (folder / "notes.txt").write_text("Buy eggs.\n")
    rules = FolderRules(
        machine="00aa",
        machine_name="laptop",
        may_be_added=True,
        forbidden=ForbiddenPlaces(homes=[str(folder.parent)]),
        read=read,
    )
    async with ModelApi() as api:
        engine = ClaudeEngine(
            ClaudeModel(name="claude-sonnet-4-5", address=api.address, headers={"x-api-key": "k"}),
            launcher=CleanLauncher(),
            homes=folder.parent / "homes",
            workspace=lambda user: folder.parent / "workspaces" / user,
            builtins=("Bash", "Read", "Write"),
        )
        stage = Stage(
            database,
            LocalBus(),
            ScriptedEngine(),
            folders=rules,
            engines={"claude": engine},
            default_profile="claude",
            toolbox=Toolbox,
        )
        stage.user()
        yield Project(stage, api, folder)
        await engine.close()
        assert api.complaints == []


@requirement("B-folder")
async def test_our_tools_stop_at_the_next_call_after_the_folder_was_removed(
    database: Database, folder: Path
) -> None:
    def offers(_user: UserId, terms: CommandTerms) -> Sequence[Offer]:
        return workspace_offers(
            folder, folder.parent / "kept", ConfinedShell(), CheckedNetwork(), terms
        )

    engine = ScriptedEngine()
    stage = Stage(database, LocalBus(), engine, toolbox=lambda deps: Toolbox(deps, offers))
    stage.user()
    added = Folder(path=str(folder), machine="", machine_name="", read_only=False, created_at=NOON)
    stage.database.run(lambda tx: tx.folders.put(USER, added))
    write = Call("write_file", {"path": "notes.txt", "content": "Buy eggs."})
    calls = [
        Call("read_file", {"path": "notes.txt"}),
        Call("write_file", {"path": "other.txt", "content": "x"}),
        Call("list_files"),
        Call("run_command", {"command": "cat notes.txt"}),
        Call("run_command", {"command": "cat notes.txt", "network": True}),
    ]

    def work_on(_: TurnRequest) -> Iterable[Step]:
        yield from (write, *calls[:1])
        stage.database.run(lambda tx: tx.folders.remove(USER, str(folder), ""))
        yield from calls

    engine.then_as(work_on)
    conversation = await chat.start(stage.deps, USER, NewChat(folder=str(folder)))
    await stage.say(conversation, "Look.")
    await stage.work()

    before, after = engine.results[:2], engine.results[2:]
    assert not any(result.failed for result in before)
    assert "Buy eggs." in before[1].text
    assert len(after) == len(calls)
    assert all(result.failed and REMOVED in result.text for result in after)
    assert not (folder / "other.txt").exists()
    assert stage.load(conversation).questions == ()


Calls = Callable[[Path], dict[str, Any]]


@requirement("B-folder")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Read", lambda folder: {"file_path": str(folder / "notes.txt")}),
        ("Write", lambda folder: {"file_path": str(folder / "x"), "content": "x"}),
        ("Bash", lambda _: {"command": "cat notes.txt", "description": "Read."}),
    ],
    ids=["Read", "Write", "Bash"],
)
async def test_claudes_own_tools_stop_at_the_next_call_after_the_folder_was_removed(
    project: Project, tool: str, arguments: Calls
) -> None:
    look = CallTool("Read", {"file_path": str(project.folder / "notes.txt")})

    def remove_and_call(_heard: ModelRequest) -> Reply:
        project.remove()
        return [CallTool(tool, arguments(project.folder))]

    project.api.then(look)
    project.api.then_as(remove_and_call)
    project.api.then(Say("Then not."))
    conversation = await project.start()

    await project.say(conversation, "Look twice.")

    first, second, third = project.api.requests
    assert not first.holds("Buy eggs.")
    assert second.holds("Buy eggs.")
    assert third.raw.decode().count("Buy eggs.") == second.raw.decode().count("Buy eggs.")
    assert third.holds(REMOVED)
    assert project.stage.load(conversation).questions == ()
    assert project.stage.said(conversation)[-1] == "Then not."


@requirement("B-folder")
async def test_a_warm_program_is_not_used_again_after_its_folder_was_removed(
    project: Project, clock: SetClock
) -> None:
    conversation = await project.start()
    await project.say(conversation, "Hello.")
    first = project.programs()
    await project.say(conversation, "Hello again.")
    assert project.programs() == first
    assert len(first) == 1

    project.remove()
    await project.say(conversation, "Are you there?")
    assert "was removed" in project.stage.said(conversation)[-1]
    assert len(project.api.requests) == 2

    clock.advance(timedelta(seconds=1))
    await project.add()
    await project.say(conversation, "And now?")
    assert len(project.api.requests) == 3
    assert not first & project.programs()


async def test_a_warm_program_is_not_used_again_in_another_folder_of_the_same_path(
    project: Project,
) -> None:
    conversation = await project.start()
    await project.say(conversation, "Hello.")
    first = project.programs()
    project.folder.rename(project.folder.parent / "old")
    project.folder.mkdir()

    await project.say(conversation, "Hello again.")

    assert len(project.api.requests) == 2
    assert not first & project.programs()
