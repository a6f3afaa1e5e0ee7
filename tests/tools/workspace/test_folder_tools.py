"""Commands and file tools in a folder of the user's own: there, and nowhere else."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.doubles.tools import ALONE
from support.requirements import requirement

from backburner.core.commands import Cage
from backburner.core.conversation import WorkFolder
from backburner.core.errors import BackburnerError
from backburner.gateway.network import CheckedNetwork
from backburner.ports import ToolResult
from backburner.process.shell import ConfinedShell
from backburner.tools.command_records import record_command
from backburner.tools.interrupted_commands import KEPT_OF_FOLDER, InterruptedCommands
from backburner.tools.obeyed_files import ObeyedFiles
from backburner.tools.workspace import CommandTerms, check_folder, workspace_offers

SECRET = "secret-of-the-user"  # noqa: S105


class Project:
    def __init__(self, base: Path, *, read_only: bool = False) -> None:
        self.folder = base / "code" / "app"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.kept = base / "kept" / "user" / f"{KEPT_OF_FOLDER}x"
        (base / "sign-in").write_text(SECRET)
        self.sign_in = base / "sign-in"
        self.terms = replace(
            ALONE,
            cage=Cage.LOOK if read_only else Cage.WORK,
            folder=WorkFolder(str(self.folder), read_only=read_only),
        )

    def init_git(self) -> None:
        git = ["git", "-C", str(self.folder), "init", "--quiet"]
        subprocess.run(git, check=True)

    def offers(self, terms: CommandTerms | None = None) -> dict[str, Any]:
        offers = workspace_offers(
            self.folder, self.kept, ConfinedShell(), CheckedNetwork(), terms or self.terms
        )
        return {offer.tool.name: offer for offer in offers}

    async def call(self, tool: str, **arguments: Any) -> ToolResult:
        result: ToolResult = await self.offers()[tool].run(arguments)
        return result

    async def run(self, command: str) -> str:
        return (await self.call("run_command", command=command)).text


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@requirement("B-folder")
async def test_commands_and_file_tools_work_in_the_folder(project: Project) -> None:
    project.init_git()
    (project.folder / "test_app.py").write_text("def test_app():\n    assert True\n")

    status = await project.run("git status --short && python3 -m pytest --version || true")
    written = await project.call("write_file", path="notes.txt", content="Done.\n")
    read = await project.call("read_file", path="test_app.py")

    assert "?? test_app.py" in status
    assert not written.failed
    assert (project.folder / "notes.txt").read_text() == "Done.\n"
    assert "def test_app" in read.text


@requirement("B-folder")
async def test_nothing_outside_the_folder_is_reached_by_command_link_or_path(
    project: Project,
) -> None:
    (project.folder / "out").symlink_to(project.sign_in)
    (project.folder / "up").symlink_to(project.folder.parent.parent)
    lines = [f"cat {project.sign_in}", "cat out", "cat up/sign-in", "ls ../..", "cat ../../sign-in"]

    outputs = [await project.run(line) for line in lines]
    for path in ("out", "up/sign-in", "../../sign-in", str(project.sign_in)):
        result = await project.call("read_file", path=path)
        assert result.failed
        outputs.append(result.text)
    planted = await project.call("write_file", path="up/planted", content="x")

    assert not any(SECRET in output for output in outputs)
    assert planted.failed
    assert not (project.sign_in.parent / "planted").exists()


async def test_a_test_run_reaches_neither_sign_ins_nor_the_network(project: Project) -> None:
    (project.folder / "steal.py").write_text(
        "import socket, pathlib\n"
        f"for place in ({str(project.sign_in)!r},):\n"
        "    try: print(pathlib.Path(place).read_text())\n"
        "    except OSError as error: print('denied', error.errno)\n"
        "try: socket.create_connection(('127.0.0.1', 9)); print('connected')\n"
        "except PermissionError: print('no network')\n"
    )

    output = await project.run("python3 steal.py")

    assert "denied 13" in output
    assert "no network" in output
    assert SECRET not in output


async def test_a_hook_that_a_test_run_plants_is_put_back_and_asked_about(project: Project) -> None:
    project.init_git()
    (project.folder / "conftest.py").write_text(
        "import pathlib\nhook = pathlib.Path('.git/hooks/pre-commit')\n"
        "hook.write_text('#!/bin/sh\\ncurl evil\\n'); hook.chmod(0o755)\n"
    )

    result = await project.call("run_command", command="python3 conftest.py")

    assert not (project.folder / ".git/hooks/pre-commit").exists()
    assert [call.tool.name for call, _ in result.asks] == ["keep_change"]


async def test_a_folder_that_was_added_to_read_is_not_changed(tmp_path: Path) -> None:
    project = Project(tmp_path, read_only=True)
    (project.folder / "file").write_text("as it was")

    offers = project.offers()
    output = await project.run("echo changed > file; cat file")

    assert "write_file" not in offers
    assert (project.folder / "file").read_text() == "as it was"
    assert "as it was" in output


def replace_by_link(folder: Path) -> None:
    elsewhere = folder.parent / "elsewhere"
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)


@requirement("B-folder")
@pytest.mark.parametrize(
    ("change", "removed", "reason"),
    [
        (Path.exists, True, "was removed"),
        (replace_by_link, False, "replaced by a link"),
        (Path.rmdir, False, "is gone"),
    ],
)
def test_a_folder_that_is_no_longer_the_one_that_was_added_is_refused(
    project: Project, change: Callable[[Path], object], *, removed: bool, reason: str
) -> None:
    check_folder(project.folder, removed=False)
    change(project.folder)

    with pytest.raises(BackburnerError, match=reason):
        check_folder(project.folder, removed=removed)


@requirement("B-folder")
def test_every_tool_that_works_in_the_folder_says_so(project: Project) -> None:
    offers = project.offers()
    private = project.offers(ALONE)

    assert [name for name, offer in offers.items() if not offer.in_folder] == ["fetch_url"]
    assert not any(offer.in_folder for offer in private.values())


async def test_a_command_that_was_interrupted_in_a_folder_is_compared_there(
    project: Project, tmp_path: Path
) -> None:
    (project.folder / ".envrc").write_text("old")
    interrupted = InterruptedCommands(tmp_path / "workspaces", tmp_path / "kept")
    obeyed = ObeyedFiles(project.folder, project.kept)
    folder = str(project.folder)
    record = record_command(project.kept, obeyed.scan, project.terms.turn, "make", folder=folder)
    record.release()
    (project.folder / ".envrc").write_text("new")

    async with interrupted.take() as first:
        assert list(first) == []
    async with interrupted.take() as second:
        (command,) = second

    assert command.line == "make"
    ((_, shown),) = command.calls
    assert ".envrc" in shown
