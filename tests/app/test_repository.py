"""The repository is described by commands that execute nothing from it."""

import shutil
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.programs.signed_in import SignedInOwner
from support.requirements import requirement

from backburner.app import repository
from backburner.core.errors import ProcessFailed
from backburner.ports import CommandResult, Shell
from backburner.process.shell import ConfinedShell


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    program = shutil.which("git") or "git"
    subprocess.run([program, *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def shell() -> Shell:
    return ConfinedShell()


async def test_it_shows_the_branch_changed_files_and_recent_commits(
    folder: Path, shell: Shell
) -> None:
    git(folder, "init", "-q", "-b", "main")
    (folder / "draft.txt").write_text("x")
    assert (
        await repository.describe_repository(folder, shell)
        == "## No commits yet on main\n?? draft.txt\n"
    )

    for number in range(7):
        git(folder, "commit", "-q", "--allow-empty", "-m", f"Step {number}")
    lines = (await repository.describe_repository(folder, shell)).splitlines()

    assert lines[:2] == ["## main", "?? draft.txt"]
    assert [line.split(" ", 1)[1] for line in lines[2:]] == [f"Step {n}" for n in (6, 5, 4, 3, 2)]


async def test_a_folder_that_is_not_a_repository_has_no_description(
    folder: Path, shell: Shell
) -> None:
    assert await repository.describe_repository(folder, shell) == ""
    assert await repository.describe_repository(folder / "nowhere", shell) == ""
    (folder / ".git").mkdir()
    assert await repository.describe_repository(folder, shell) == ""


@pytest.fixture
def trapped(folder: Path) -> Path:
    """Make a repository with a changed file; a file `ran` appears if its hook is executed."""
    git(folder, "init", "-q", "-b", "main")
    (folder / "file.txt").write_text("one")
    (folder / ".gitattributes").write_text("*.txt filter=evil\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "First")
    (folder / "file.txt").write_text("two")
    (folder / "trap").write_text("#!/bin/sh\ntouch ran\ncat\n")
    (folder / "trap").chmod(0o755)
    return folder


async def test_what_a_partial_clone_lacks_is_not_fetched(folder: Path, shell: Shell) -> None:
    """Its own configuration says with which program."""
    trap = "touch ran"
    for name, text in {
        "HEAD": "ref: refs/heads/main\n",
        "refs/heads/main": "1" * 40 + "\n",
        "objects/info/x": "",
        "config": "[core]\nrepositoryformatversion = 1\n[extensions]\npartialClone = origin\n"
        f'[remote "origin"]\nurl = ./.git\npromisor = true\nuploadpack = {trap};\n',
    }.items():
        path = folder / ".git" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    await repository.describe_repository(folder, shell)

    assert not (folder / "ran").exists()


async def test_a_file_system_monitor_is_not_executed(trapped: Path, shell: Shell) -> None:
    git(trapped, "config", "core.fsmonitor", "./trap")
    (trapped / "ran").unlink(missing_ok=True)

    assert " M file.txt\n" in await repository.describe_repository(trapped, shell)
    assert not (trapped / "ran").exists()


async def test_with_filters_only_the_log_is_shown(trapped: Path, shell: Shell) -> None:
    git(trapped, "config", "filter.evil.clean", "./trap")
    (trapped / "ran").unlink(missing_ok=True)

    found = await repository.describe_repository(trapped, shell)

    assert found.endswith(" First\n")
    assert "file.txt" not in found
    assert not (trapped / "ran").exists()


async def test_a_command_that_fails_or_times_out_gives_no_description(
    folder: Path,
) -> None:
    (folder / ".git").mkdir()

    class Broken:
        cage_missing: str | None = None

        async def run(self, line: str, *, within: timedelta, **where: Any) -> CommandResult:
            del line, within, where
            raise ProcessFailed

    class Slow:
        cage_missing: str | None = None

        async def run(self, line: str, *, within: timedelta, **where: Any) -> CommandResult:
            del line
            assert where == {"folder": folder, "bounds": repository.BOUNDS}
            assert within <= timedelta(seconds=10)
            return CommandResult(output="half", code=None, signal=9, timed_out=True)

    assert await repository.describe_repository(folder, Broken()) == ""
    assert await repository.describe_repository(folder, Slow()) == ""


@requirement("B-discovery-context", "B-signed-in")
async def test_ci_and_pull_requests_are_listed_with_the_sign_in_of_gh(tmp_path: Path) -> None:
    owner = SignedInOwner(tmp_path)

    text = await repository.describe_ci(owner.folder, "ada/app", owner.sign_ins(), agents=())
    (owner.home / ".config/gh/hosts.yml").unlink()
    sign_ins = owner.sign_ins()
    missing = await repository.describe_ci(owner.folder, "ada/app", sign_ins, agents=())

    assert "$ gh run list --repo ada/app --limit 10\nsigned in as octocat" in text
    assert "$ gh pr list --repo ada/app --limit 10\nsigned in as octocat" in text
    assert owner.token not in text
    assert missing.count("Not run: ") == 2


async def test_ci_is_not_listed_with_a_program_that_agents_can_write(tmp_path: Path) -> None:
    owner = SignedInOwner(tmp_path)

    text = await repository.describe_ci(
        owner.folder, "ada/app", owner.sign_ins(), agents=[owner.programs]
    )

    assert text.count("agents can write") == 2
