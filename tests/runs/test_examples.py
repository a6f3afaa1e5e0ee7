"""Four tasks in a real repository: CI, a deploy, a pull request that was found, tests on a push.

The repository, git and pytest are real; `gh` and `kubectl` need their own sign-in file.
"""

import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import Call, End, ScriptedEngine
from support.programs.repository import Repository
from support.programs.signed_in import SignedInOwner
from support.requirements import requirement
from support.stage.make import NOON, USER
from support.stage.stage import Stage, prompts

from backburner.actions.deps import DiscoverySettings
from backburner.actions.discovery import LookedAt, switch
from backburner.app.repository import describe_ci, describe_repository
from backburner.bus.local import LocalBus
from backburner.core.conversation import Conversation, WorkFolder
from backburner.core.ids import UserId
from backburner.core.question import Purpose
from backburner.core.schedule import Interval
from backburner.core.tool_policy import ALWAYS_HERE
from backburner.core.work.folders import Folder
from backburner.gateway.network import CheckedNetwork
from backburner.ports import Offer
from backburner.process.shell import ConfinedShell
from backburner.store.db import Database
from backburner.tools.toolbox import Toolbox
from backburner.tools.workspace import CommandTerms, workspace_offers

HALF_AN_HOUR = timedelta(minutes=30)
GH = Call("run_signed_in", {"program": "gh", "arguments": ["run", "list", "--repo", "ada/app"]})
KUBECTL = Call(
    "run_signed_in",
    {"program": "kubectl", "arguments": ["get", "deployment", "app", "-n", "staging"]},
)
QUIET, PASSED = {"complete": True, "result": "same"}, "1 passed"


class Project:
    """A repository, the bare one that it pushes to, and an agent that may work in both."""

    def __init__(self, root: Path) -> None:
        self.owner = SignedInOwner(root)
        self.repository = Repository(root / "code")
        self.app = self.repository.app
        self.kept = root / "kept"

    def offers(self, _user: UserId, terms: CommandTerms) -> Sequence[Offer]:
        folder = Path(terms.folder.path) if terms.folder else self.owner.folder
        # The interpreter of the tests, wherever it is.
        shell = ConfinedShell(readable=[Path(sys.prefix), Path(sys.base_prefix)])
        sign_ins = self.owner.sign_ins()
        return workspace_offers(folder, self.kept, shell, CheckedNetwork(), terms, sign_ins)

    async def describe(
        self, conversation: Conversation, *, may_sign_in: bool, folders: Sequence[str]
    ) -> str:
        assert may_sign_in
        assert conversation.folder_path == str(self.app)
        git = await describe_repository(self.app, ConfinedShell())
        agents = [Path(path) for path in folders]
        sign_ins = self.owner.sign_ins()
        return git + await describe_ci(self.app, "ada/app", sign_ins, agents=agents)

    def folder(self, path: Path) -> WorkFolder:
        return WorkFolder(str(path))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def stage(database: Database, project: Project) -> Stage:
    stage = Stage(
        database,
        LocalBus(),
        ScriptedEngine(),
        toolbox=lambda deps: Toolbox(deps, project.offers, has_sign_ins=True),
        discovery=DiscoverySettings(allowed=True),
        describe_repository=project.describe,
    )
    stage.user()
    for path in (project.app, project.repository.remote):
        added = Folder(
            path=str(path), machine="", machine_name="", read_only=False, created_at=NOON
        )
        stage.database.run(lambda tx, added=added: tx.folders.put(USER, added))  # type: ignore[misc]
    return stage


async def watch(stage: Stage, folder: WorkFolder, **brief: Any) -> Conversation:
    return await stage.task(Interval(HALF_AN_HOUR, anchor=NOON), folder=folder, **brief)


def results(stage: Stage) -> list[str]:
    return [result.text for result in stage.engine.results]


@requirement("B-folder", "B-signed-in", "B-command")
@pytest.mark.parametrize(
    ("call", "shown"),
    [(GH, "signed in as octocat at github.com"), (KUBECTL, "kind-one (False, True)")],
    ids=["CI", "a deploy"],
)
async def test_a_watch_runs_unattended_after_one_always_here(
    stage: Stage, project: Project, clock: SetClock, call: Call, shown: str
) -> None:
    stage.engine.then(call)
    task = await watch(stage, project.folder(project.app), max_runs=4)
    await stage.work()
    assert stage.question(task).purpose is Purpose.APPROVAL
    assert "sign-in" in stage.question(task).prompt

    stage.engine.then(call, End(QUIET))
    await stage.answer(task, ALWAYS_HERE)
    await stage.work()
    for _ in range(2):
        clock.advance(HALF_AN_HOUR)
        stage.engine.then(call, End(QUIET))
        await stage.work()

    assert stage.load(task).questions == ()
    assert sum(shown in text for text in results(stage)) == 3
    assert project.owner.token not in "".join(results(stage))


@requirement("B-discovery-context", "B-propose")
async def test_a_pull_request_is_found_and_proposed(stage: Stage, clock: SetClock) -> None:
    looked_at = LookedAt("app", "ada/app")
    stage.database.run(lambda tx: switch(stage.deps, tx, USER, on=True, project=looked_at))
    chat = await stage.chat()
    stage.engine.then(End())
    await stage.say(chat, "Back in a moment.")
    await stage.work()
    clock.advance(HALF_AN_HOUR)
    proposed = {
        "name": "review-pr",
        "prompt": "Look at the pull request.",
        "interval": "1h",
        "why": "It is open.",
    }
    stage.engine.then(Call("task_propose", proposed), End({"complete": True}))
    await stage.work()

    (looks,) = {one.conversation.id for one in stage.engine.requests} - {chat.id}
    (prompt,) = prompts(stage.engine, looks)
    assert "Add a test" in prompt
    assert "$ gh pr list --repo ada/app --limit 10\nsigned in as octocat" in prompt
    assert any("Proposed task: review-pr" in notice for notice in stage.notices())


@requirement("B-folder", "B-command")
async def test_tests_run_on_a_push_without_any_question(
    stage: Stage, project: Project, clock: SetClock
) -> None:
    log = Call("run_command", {"command": "git log --oneline -1 main"})
    test = Call("run_command", {"command": f"{sys.executable} -m pytest -q -p no:cacheprovider"})
    stage.engine.then(log, test, End({"complete": True, "result": "green"}))
    task = await watch(stage, project.folder(project.app))
    await stage.work()

    project.repository.push("Change something")
    clock.advance(HALF_AN_HOUR)
    stage.engine.then(log, test, End({"complete": True, "result": "green"}))
    await stage.work()

    texts = results(stage)
    assert "Add a test" in texts[0]
    assert sum(PASSED in text for text in texts) == 2, texts
    assert any("Change something" in text for text in texts)
    assert stage.load(task).questions == ()
    asked = stage.database.run(lambda tx: tx.browse.questions(USER, None, limit=9))
    assert list(asked) == []
