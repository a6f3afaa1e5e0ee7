"""Files that other programs obey, when a command changes them: put back, kept, asked about."""

import asyncio
import errno
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.doubles.engine import Call, End, ScriptedEngine, Step
from support.doubles.tools import ALONE
from support.requirements import requirement
from support.stage.stage import Stage
from support.stage.until import until

from backburner.actions.work import preview
from backburner.bus.local import LocalBus
from backburner.core.question import NO, YES, Purpose
from backburner.core.schedule import Cron
from backburner.core.work.task_test_run import PUT_BACK
from backburner.gateway.network import CheckedNetwork
from backburner.ports import Offer, ToolResult, TurnRequest
from backburner.process.shell import ConfinedShell
from backburner.store.db import Database
from backburner.tools.toolbox import Toolbox
from backburner.tools.workspace import workspace_offers


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    return made


@pytest.fixture
def tools(folder: Path, tmp_path: Path) -> Mapping[str, Offer]:
    offers = workspace_offers(folder, tmp_path / "kept", ConfinedShell(), CheckedNetwork(), ALONE)
    return {offer.tool.name: offer for offer in offers}


async def run(tools: Mapping[str, Offer], command: str) -> ToolResult:
    return await tools["run_command"].run({"command": command})


async def keep(tools: Mapping[str, Offer], ran: ToolResult) -> list[ToolResult]:
    return [await tools["keep_change"].run(call.arguments) for call, _ in ran.asks]


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [shutil.which("git") or "git", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


@requirement("B-command")
async def test_a_change_is_put_back_shown_and_made_again_after_a_yes(
    folder: Path, tools: Mapping[str, Offer]
) -> None:
    (folder / ".envrc").write_text("export A=1\n")

    ran = await run(tools, "echo 'export B=2' >>.envrc; echo x >CLAUDE.md; echo y >notes.md")

    assert (folder / ".envrc").read_text() == "export A=1\n"
    assert not (folder / "CLAUDE.md").exists()
    assert (folder / "notes.md").read_text() == "y\n"
    assert "[Put back, because other programs obey these files: .envrc (change-" in ran.text
    shown = [text for _, text in ran.asks]
    assert shown == [
        "Change the file .envrc:\n    @@ -1 +1,2 @@\n     export A=1\n    +export B=2",
        "Create the file CLAUDE.md:\n    @@ -0,0 +1 @@\n    +x",
    ]
    assert [call.tool.name for call, _ in ran.asks] == ["keep_change"] * 2
    assert [await tools["keep_change"].preview(call.arguments) for call, _ in ran.asks] == shown  # type: ignore[misc]

    made = await keep(tools, ran)

    assert [(result.text, result.failed) for result in made] == [
        (".envrc is now as the command had left it.", False),
        ("CLAUDE.md is now as the command had left it.", False),
    ]
    assert (folder / ".envrc").read_text() == "export A=1\nexport B=2\n"
    assert (folder / "CLAUDE.md").read_text() == "x\n"
    assert all(result.failed for result in await keep(tools, ran))


@requirement("B-command", "Z-approve")
async def test_a_run_ends_with_one_question_about_what_its_command_changed(
    folder: Path, tools: Mapping[str, Offer], database: Database
) -> None:
    stage = Stage(
        database,
        LocalBus(),
        ScriptedEngine(),
        toolbox=lambda deps: Toolbox(deps, lambda _user, _cage: list(tools.values())),
    )
    chat = await stage.chat()
    stage.engine.then(Call("run_command", {"command": "echo x >.envrc; echo y >CLAUDE.md"}))

    def keep_both(request: TurnRequest) -> list[Step]:
        return [
            Call("keep_change", {"change": change})
            for change in re.findall(r"change-\w+", request.prompt)
        ]

    stage.engine.then_as(keep_both)
    await stage.say(chat, "Set it up.")
    await stage.work()
    question = stage.question(chat)
    asked, call, what, *_ = question.prompt.splitlines()
    assert (asked, what) == ("May I do this?", "Create the file .envrc:")
    assert call.startswith('keep_change {"change":"change-')
    assert (question.purpose, question.options) == (Purpose.APPROVAL, (YES, NO))
    assert not (folder / ".envrc").exists()

    await stage.answer(chat, YES)
    await stage.work()

    assert (folder / ".envrc").read_text() == "x\n"
    assert (folder / "CLAUDE.md").read_text() == "y\n"
    assert stage.load(chat).questions == ()


async def test_a_test_run_puts_files_back_and_asks_about_other_calls_only(
    folder: Path, tools: Mapping[str, Offer], database: Database
) -> None:
    stage = Stage(
        database,
        LocalBus(),
        ScriptedEngine(),
        toolbox=lambda deps: Toolbox(deps, lambda _user, _cage: list(tools.values())),
    )
    task = await stage.task(Cron("0 3 * * *", "UTC"))
    stage.engine.then(
        Call("run_command", {"command": "echo x >.envrc"}),
        Call("write_file", {"path": ".envrc", "content": "y"}),
        End({"complete": True}),
    )
    job = await preview.start_test_run(stage.deps, task.user_id, task.id)
    await stage.work()

    assert not (folder / ".envrc").exists()
    assert stage.engine.results[0].text.endswith(PUT_BACK)
    question = stage.question(job)
    assert [bound["tool"] for bound in question.binds_to["calls"]] == ["write_file"]
    assert "Write the file .envrc:\n" in question.prompt
    assert question.prompt.endswith("and put back. The same change asks again.")


async def test_an_edit_of_the_user_is_never_lost(folder: Path, tools: Mapping[str, Offer]) -> None:
    (folder / ".envrc").write_text("old")
    ran = await run(tools, "echo evil >.envrc")
    (folder / ".envrc").write_text("edited by the user")

    (made,) = await keep(tools, ran)

    assert made.failed
    assert "has changed since" in made.text
    assert (folder / ".envrc").read_text() == "edited by the user"


async def test_ordinary_work_with_git_asks_nothing(
    folder: Path, tools: Mapping[str, Offer]
) -> None:
    ran = await run(
        tools,
        "git init -q && echo x >x && git add x && git commit -qm x && git checkout -qb topic"
        " && git remote add origin https://example.org/x.git && git config user.name Ann"
        " && git branch -q -u main topic; git status --short --branch",
    )

    assert ran.asks == []
    assert "topic" in ran.text
    assert "url = https://example.org/x.git" in (folder / ".git" / "config").read_text()


async def test_fsmonitor_and_hooks_of_a_repository_run_nothing_later(
    folder: Path, tools: Mapping[str, Offer]
) -> None:
    git(folder, "init", "-q")
    plants = "git config core.fsmonitor ./x; echo 'touch ran' >.git/hooks/pre-commit"

    ran = await run(tools, f"{plants}; chmod +x .git/hooks/pre-commit")

    assert "fsmonitor" not in git(folder, "config", "--list")
    assert not (folder / ".git" / "hooks" / "pre-commit").exists()
    shown = "\n".join(text for _, text in ran.asks)
    assert "Change the file .git/config:" in shown
    assert "+\tfsmonitor = ./x" in shown
    assert "Create the file .git/hooks/pre-commit (executable):" in shown
    await keep(tools, ran)
    assert os.access(folder / ".git" / "hooks" / "pre-commit", os.X_OK)


async def test_a_new_repository_stays_usable_without_what_it_would_run(
    folder: Path, tools: Mapping[str, Offer]
) -> None:
    ran = await run(tools, "git init -q new; git -C new config alias.x '!ls'; touch new/file")

    assert git(folder / "new", "status", "--short") == "?? file\n"
    assert "alias" not in git(folder / "new", "config", "--local", "--list")
    (made,) = await keep(tools, ran)
    assert not made.failed
    assert "alias.x=!ls" in git(folder / "new", "config", "--local", "--list")


@pytest.mark.parametrize(
    "command",
    [
        "mkdir d; ln -s d .vscode; echo x >d/tasks.json",
        "git init -q; rm -r .git/hooks; mkdir d; ln -s ../d .git/hooks; echo x >d/pre-push",
        "ln -s /etc/passwd .envrc",
        "mkdir -p a/b/.vscode; echo x >a/b/.vscode/tasks.json",
        "printf '\\xff\\xfe' >.envrc",
        "mkfifo .envrc",
        "mkdir objects; echo x >objects/.envrc",
    ],
)
async def test_links_and_odd_files_are_put_back_too(
    folder: Path, tools: Mapping[str, Offer], command: str
) -> None:
    ran = await run(tools, command)

    assert len(ran.asks) == 1
    for path in (".envrc", ".vscode", ".git/hooks", "a/b/.vscode/tasks.json", "objects/.envrc"):
        assert not (folder / path).is_symlink()
        assert not (folder / path).exists()


def refuse_as_to_its_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `os.open` refuse what the owner has no right to read, also if the tests run as root."""
    real = os.open

    def checked(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        with suppress(FileNotFoundError):
            if not os.stat(path, dir_fd=dir_fd, follow_symlinks=False).st_mode & stat.S_IRUSR:
                raise PermissionError(errno.EACCES, "Permission denied", path)
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", checked)


@requirement("B-command")
@pytest.mark.parametrize("hides", ["chmod 311 .git/hooks", "chmod 111 .git/hooks/pre-push"])
async def test_no_rights_hide_a_file_that_a_command_made(
    folder: Path, tools: Mapping[str, Offer], monkeypatch: pytest.MonkeyPatch, hides: str
) -> None:
    refuse_as_to_its_owner(monkeypatch)
    plants = "mkdir -p .git/hooks; echo evil >.git/hooks/pre-push; chmod +x .git/hooks/pre-push"

    ran = await run(tools, f"{plants}; {hides}")

    assert [text for _, text in ran.asks] == [
        "Create the file .git/hooks/pre-push (executable):\n    @@ -0,0 +1 @@\n    +evil"
    ]
    assert not (folder / ".git" / "hooks" / "pre-push").exists()


async def test_what_belongs_to_another_user_is_shown_if_new_and_else_in_nobodys_way(
    folder: Path, tools: Mapping[str, Offer], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str, *_arguments: object, **_names: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", path)

    refuse_as_to_its_owner(monkeypatch)
    (folder / "database").mkdir(mode=0o300)
    (folder / ".npmrc").touch(mode=0o200)
    monkeypatch.setattr(os, "chmod", refuse)

    ran = await run(tools, "echo x >.envrc; chmod 200 .envrc")

    ((_, shown),) = ran.asks
    assert "Only 0 of 2 bytes are shown" in shown
    aside, *others = sorted(os.listdir(folder))  # noqa: PTH208
    assert f"Its name is now {aside}." in shown
    assert others == [".npmrc", "database"]


async def test_a_deleted_file_stays_deleted(folder: Path, tools: Mapping[str, Offer]) -> None:
    (folder / "repository").mkdir()
    git(folder / "repository", "init", "-q")
    (folder / ".envrc").write_text("x")

    ran = await run(tools, "rm -r repository .envrc")

    assert ran.asks == []
    assert os.listdir(folder) == []  # noqa: PTH208


async def test_a_cancelled_command_leaves_no_change(
    folder: Path, tools: Mapping[str, Offer]
) -> None:
    running = asyncio.create_task(run(tools, "echo x >.envrc; echo y >begun; sleep 60"))
    await until((folder / "begun").exists)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert not (folder / ".envrc").exists()


async def test_a_link_does_not_hide_what_is_written(
    folder: Path, tools: Mapping[str, Offer]
) -> None:
    git(folder, "init", "-q")
    await run(tools, "ln -s .git g")
    before = (folder / ".git" / "config").read_text()

    written = await tools["write_file"].run({"path": "g/config", "content": "x"})

    assert written.failed
    assert "leads to a file that other programs obey" in written.text
    assert (folder / ".git" / "config").read_text() == before


async def test_a_write_is_shown_as_a_difference(folder: Path, tools: Mapping[str, Offer]) -> None:
    (folder / ".envrc").write_text("a\nb\n")
    preview = tools["write_file"].preview
    assert preview is not None

    arguments: dict[str, Any] = {"path": ".envrc", "content": "a\nc\u202e\n"}

    assert await preview(arguments) == (
        "Write the file .envrc:\n    @@ -1,2 +1,2 @@\n     a\n    -b\n    +c\\u202e"
    )


@requirement("Z-approve")
async def test_a_path_is_shown_on_one_line(tools: Mapping[str, Offer]) -> None:
    preview = tools["write_file"].preview
    assert preview is not None

    ran = await run(tools, "mkdir .vscode; echo x >$'.vscode/a\\n\\tb'")
    written = await preview({"path": ".vscode/a\n\tb", "content": "x"})

    difference = ".vscode/a\\n\\tb:\n    @@ -0,0 +1 @@\n    +x"
    assert [text for _, text in ran.asks] == [f"Create the file {difference}"]
    assert written == f"Write the file {difference}"


async def test_nobody_brings_back_what_is_not_kept(tools: Mapping[str, Offer]) -> None:
    for change in ("change-0", "../../x", ""):
        result = await tools["keep_change"].run({"change": change})
        assert (result.failed, "is not kept" in result.text) == (True, True)
