"""The parts that do the work: their memory, what commands may read, and where they work."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.doubles.tools import ALONE
from support.programs.signed_in import SignedInOwner
from support.requirements import requirement
from support.stage import make
from support.stage.make import USER

from backburner.app.machines import (
    CLAUDE_MEMORY_BYTES,
    RESERVED_MEMORY_BYTES,
    Machines,
    build_machines,
    build_sign_ins,
    has_memory,
)
from backburner.core.conversation import Kind, State, WorkFolder
from backburner.core.errors import BadSetting
from backburner.core.work.discovery import REPOSITORY
from backburner.settings.loading import load


@pytest.mark.parametrize("starting", [0, 1, 4])
def test_starting_processes_count_with_their_full_memory(starting: int) -> None:
    enough = (starting + 1) * CLAUDE_MEMORY_BYTES + RESERVED_MEMORY_BYTES

    assert has_memory(enough, starting=starting)
    assert not has_memory(enough - 1, starting=starting)


def test_unknown_free_memory_counts_as_enough() -> None:
    assert has_memory(None, starting=9)


@pytest.mark.parametrize("name", ["data", "config", "tls_key", "workspace"])
def test_settings_under_which_commands_could_read_secrets_are_refused(
    tmp_path: Path, name: str
) -> None:
    shown, hidden = tmp_path / "shown", tmp_path / "hidden"
    for folder in (shown, hidden):
        folder.mkdir()
    for file in ("backburner.toml", "key.pem", "certificate.pem"):
        (shown / file).touch()
    options: dict[str, Any] = {
        "data": {"data": shown},
        "config": {"config": shown / "backburner.toml"},
        "tls_key": {"tls_certificate": shown / "certificate.pem", "tls_key": shown / "key.pem"},
        "workspace": {"workspace": shown / "workspaces"},
    }[name]

    with pytest.raises(BadSetting, match="Commands of agents could read"):
        build_machines(load(**{"data": hidden, "readable": [shown], **options}), "backburner")


@requirement("B-signed-in")
@pytest.mark.parametrize(
    ("options", "has_sign_ins"),
    [
        ({}, True),
        ({"commands": "off"}, False),
        ({"commands": "unconfined"}, False),
        ({"database_url": "postgresql://x/y"}, False),
    ],
)
def test_sign_ins_are_used_with_sqlite_and_confined_commands_only(
    tmp_path: Path, options: dict[str, str], *, has_sign_ins: bool
) -> None:
    settings = load(data=tmp_path, **options)

    assert (build_sign_ins(settings) is not None) is has_sign_ins
    assert build_machines(settings, "backburner").has_sign_ins is has_sign_ins


@pytest.fixture
def owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SignedInOwner:
    """Somebody who runs Backburner, has signed in to gh, and has a repository."""
    owner = SignedInOwner(tmp_path)
    git = ["git", "init", "-q", "-b", "main", str(owner.folder)]
    subprocess.run(git, check=True)
    monkeypatch.setenv("HOME", str(owner.home))
    monkeypatch.setenv("PATH", f"{owner.programs}:{os.environ['PATH']}")
    return owner


@pytest.fixture
def machines(owner: SignedInOwner) -> Machines:
    return build_machines(load(data=owner.root / "data"), "backburner")


async def call(machines: Machines, folder: Path | None, tool: str, **arguments: Any) -> str:
    """Call a tool of a conversation that works in a folder; None: in the private workspace."""
    place = None if folder is None else WorkFolder(str(folder))
    terms = replace(ALONE, folder=place, may_sign_in=True)
    offers = {offer.tool.name: offer for offer in machines.workspace(USER, terms)}
    return (await offers[tool].run(arguments)).text


@requirement("B-folder")
async def test_commands_and_files_are_those_of_the_folder_of_a_conversation(
    machines: Machines, owner: SignedInOwner
) -> None:
    (owner.folder / "notes.txt").write_text("Bring tea.")
    look: dict[str, Any] = {"command": "pwd; cat notes.txt"}

    assert f"{owner.folder}\nBring tea." in await call(
        machines, owner.folder, "run_command", **look
    )
    assert "Bring tea." in await call(machines, owner.folder, "read_file", path="notes.txt")
    private = await call(machines, None, "run_command", **look)
    assert f"data/workspaces/{USER}\n" in private
    assert "Bring tea." not in private


@requirement("B-signed-in")
async def test_gh_has_the_sign_in_of_whoever_runs_the_program(
    machines: Machines, owner: SignedInOwner
) -> None:
    gh = {"program": "gh", "arguments": ["run", "list", "--repo", "ada/app"]}
    text = await call(machines, owner.folder, "run_signed_in", **gh)

    assert f"signed in as octocat at github.com in {owner.folder}" in text


@requirement("B-discovery-context")
async def test_discovery_is_shown_the_repository_ci_and_pull_requests_of_its_folder(
    machines: Machines, owner: SignedInOwner
) -> None:
    (owner.folder / "draft.txt").write_text("x")
    looks = make.conversation(
        kind=Kind.DISCOVERY,
        folder=WorkFolder(str(owner.folder)),
        state=State(context={REPOSITORY: "ada/app"}),
    )

    text = await machines.repository(looks, may_sign_in=True, folders=[str(owner.folder)])
    alone = await machines.repository(looks, may_sign_in=False, folders=[])

    assert "## No commits yet on main\n" in text
    assert "?? draft.txt\n" in text
    for listed in ("run", "pr"):
        assert f"$ gh {listed} list --repo ada/app --limit 10\nsigned in as octocat" in text
    assert owner.token not in text
    assert "draft.txt" in alone
    assert "$ gh" not in alone
