"""Commands that plant a program for others to run: afterwards git runs nothing of theirs."""

import asyncio
import errno
import os
import shutil
import subprocess
import tracemalloc
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.doubles.tools import ALONE
from support.requirements import requirement
from support.stage.until import until

from backburner.gateway.network import CheckedNetwork
from backburner.ports import Offer, ToolResult
from backburner.process.shell import ConfinedShell
from backburner.tools import obeyed_files
from backburner.tools.workspace import workspace_offers

GIT = shutil.which("git") or "git"
BASH = shutil.which("bash") or "bash"
#: As long a folder as a path can name, without what is above it.
DEEP = "d/" * 80


@dataclass
class Place:
    folder: Path
    kept: Path
    mark: Path
    tools: Mapping[str, Offer]

    @property
    def evil(self) -> str:
        """A setting of a section `core` that runs a program."""
        return f'fsmonitor = "touch {self.mark}; false"'

    def git(self, *arguments: str, place: str = "proj") -> str:
        """Run git as the user does, outside any cage; it need not succeed."""
        home = {"HOME": str(self.mark.parent), "PATH": os.environ["PATH"]}
        names = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME",)}
        emails = {"GIT_AUTHOR_EMAIL": "x@x", "GIT_COMMITTER_EMAIL": "x@x"}
        done = subprocess.run(
            [GIT, *arguments],
            cwd=self.folder / place,
            check=False,
            capture_output=True,
            text=True,
            env=home | names | emails,
        )
        return done.stdout

    def prepare(self, line: str) -> None:
        subprocess.run([BASH, "-c", line], cwd=self.folder / "proj", check=True)

    async def run(self, command: str) -> ToolResult:
        arguments = {"command": command.replace("EVIL", self.evil).replace("MARK", str(self.mark))}
        return await self.tools["run_command"].run(arguments)

    async def keep(self, ran: ToolResult) -> list[ToolResult]:
        return [await self.tools["keep_change"].run(call.arguments) for call, _ in ran.asks]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    folder, kept = tmp_path / "folder", tmp_path / "kept"
    (folder / "proj").mkdir(parents=True)
    offers = workspace_offers(folder, kept, ConfinedShell(), CheckedNetwork(), ALONE)
    made = Place(folder, kept, tmp_path / "ran", {offer.tool.name: offer for offer in offers})
    made.git("init", "-q")
    made.git("commit", "-q", "--allow-empty", "-m", "x")
    return made


SETTINGS = "[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n"
SHAPE = "mkdir -p {0}/objects {0}/refs; echo 'ref: refs/heads/main' >{0}/HEAD; "


@requirement("B-command")
@pytest.mark.parametrize(
    ("command", "where"),
    [
        (
            (
                "cd proj; cp -r .git ../lib; printf '[core]\\n\\t%s\\n' 'EVIL' >>../lib/config;"
                " echo ../../lib >.git/commondir"
            ),
            "proj",
        ),
        (
            (
                f"{SHAPE.format('proj/docs')} printf '{SETTINGS}\\tworktree = ..\\n\\t%s\\n' 'EVIL'"
                " >proj/docs/config"
            ),
            "proj/docs",
        ),
        (
            (
                f"mkdir src; {SHAPE.format('.')}"
                f" printf '{SETTINGS}\\tworktree = .\\n\\t%s\\n' 'EVIL' >config"
            ),
            "src",
        ),
        (
            (
                f"{SHAPE.format('lib2')} mkdir lib; mv lib2/HEAD lib; echo ../lib2 >lib/commondir;"
                f" printf '{SETTINGS}\\tworktree = .\\n\\t%s\\n' 'EVIL' >lib2/config"
            ),
            "lib",
        ),
        (
            (
                "cd proj; head -c 4200000 /dev/zero | tr '\\0' '\\n' >>.git/config;"
                " printf '[core]\\n\\t%s\\n' 'EVIL' >>.git/config"
            ),
            "proj",
        ),
        *(
            (
                (
                    f"mkdir -p {hidden}; mv proj {hidden}/proj; ln -s {hidden}/proj proj;"
                    " printf '[core]\\n\\t%s\\n' 'EVIL' >>proj/.git/config"
                ),
                "proj",
            )
            for hidden in ("node_modules", "x/node_modules/y", DEEP, f"node_modules/{DEEP}")
        ),
        (
            (
                "mkdir -p old/.git/objects; mv proj old/.git/objects/proj;"
                " ln -s old/.git/objects/proj proj; printf '[core]\\n\\t%s\\n' 'EVIL'"
                " >>proj/.git/config"
            ),
            "proj",
        ),
    ],
    ids=[
        *("commondir", "shape below", "shape above", "shape with commondir", "large settings"),
        *("skipped", "skipped deeper", "deep", "deep and skipped", "objects"),
    ],
)
async def test_settings_that_a_command_planted_run_nothing(
    place: Place, command: str, where: str
) -> None:
    ran = await place.run(command)
    place.git("status", place=where)

    assert not place.mark.exists()
    assert ran.asks


@requirement("B-command")
@pytest.mark.parametrize(
    ("before", "command"),
    [
        (
            "mkdir scripts; touch scripts/pc; ln -s ../../scripts/pc .git/hooks/pre-commit",
            "printf '#!/bin/sh\\ntouch MARK\\n' >scripts/pc; chmod +x scripts/pc",
        ),
        (
            (
                "mkdir tools; touch tools/pc; ln -s tools scripts;"
                " ln -s ../../scripts/pc .git/hooks/pre-commit"
            ),
            (
                "rm scripts; mkdir scripts; printf '#!/bin/sh\\ntouch MARK\\n' >scripts/pc;"
                " chmod +x scripts/pc"
            ),
        ),
        (
            "mkdir -p a/b; touch a/b/pc; ln -s ../../a/b/pc .git/hooks/pre-commit",
            (
                "mv a a2; mkdir c c/b; printf '#!/bin/sh\\ntouch MARK\\n' >c/b/pc; chmod +x c/b/pc;"
                " ln -s c a"
            ),
        ),
        (
            "rm -r .git/hooks; mkdir shared; ln -s ../shared .git/hooks",
            "printf '#!/bin/sh\\ntouch MARK\\n' >shared/pre-commit; chmod +x shared/pre-commit",
        ),
        (
            "git config core.hooksPath .githooks",
            (
                "mkdir .githooks; printf '#!/bin/sh\\ntouch MARK\\n' >.githooks/pre-commit;"
                " chmod +x .githooks/pre-commit"
            ),
        ),
        (
            "git config core.hooksPath .githooks; git worktree add -q ../tree",
            (
                "cd ../tree; mkdir .githooks; cd .githooks;"
                " printf '#!/bin/sh\\ntouch MARK\\n' >pre-commit; chmod +x pre-commit"
            ),
        ),
        (
            "git config include.path ../settings; touch settings",
            "printf '[core]\\n\\t%s\\n' 'EVIL' >>settings",
        ),
        (
            "git config include.path ../settings; printf '[include]\\n\\tpath = more\\n' >settings",
            "printf '[core]\\n\\t%s\\n' 'EVIL' >>more",
        ),
        (
            (
                "git config core.fsmonitor tools/watch; mkdir tools; touch tools/watch;"
                " chmod +x tools/watch"
            ),
            "printf '#!/bin/sh\\ntouch MARK\\n' >>tools/watch",
        ),
        (
            "mv .git store; echo 'gitdir: store' >.git",
            "printf '[core]\\n\\t%s\\n' 'EVIL' >>store/config",
        ),
    ],
    ids=[
        *("linked hook", "link on the way", "folder on the way", "linked hooks", "hooksPath"),
        *("hooksPath of a worktree", "include", "include twice", "program", "gitdir"),
    ],
)
async def test_what_a_watched_file_points_to_is_watched_too(
    place: Place, before: str, command: str
) -> None:
    place.prepare(before)

    ran = await place.run(f"cd proj; {command}")
    for where in ("proj", "tree"):
        if (place.folder / where).exists():
            place.git("status", place=where)
            place.git("commit", "-q", "--allow-empty", "-m", "y", place=where)

    assert not place.mark.exists()
    assert ran.asks


async def test_a_new_link_makes_nothing_watched_that_is_there_already(place: Place) -> None:
    (place.folder / "src").mkdir()
    for number in range(3):
        (place.folder / "src" / f"{number}.py").touch()

    ran = await place.run("ln -s src .vscode; mkdir .idea; ln -s .. .idea/up")

    assert len(ran.asks) == 2
    assert len(os.listdir(place.folder / "src")) == 3  # noqa: PTH208


async def test_a_file_that_becomes_obeyed_by_what_surrounds_it_stays_in_its_folder(
    place: Place,
) -> None:
    (place.folder / "config").write_text("of the user")

    ran = await place.run(SHAPE.format("."))

    (aside,) = place.folder.glob("config.set-aside-*")
    assert aside.read_text() == "of the user"
    (made,) = await place.keep(ran)
    assert not made.failed
    assert (place.folder / "config").read_text() == "of the user"


@pytest.mark.parametrize("again", ["echo 'echo evil' >.envrc", "echo other >.envrc"])
async def test_of_two_commands_at_once_neither_takes_the_others_file_for_old(
    place: Place, again: str
) -> None:
    begun, go, ended = (place.folder / name for name in ("begun", "go", "ended"))
    wait = "for i in $(seq 400); do test -e {} && break; sleep 0.05; done"
    first = asyncio.create_task(
        place.run(f"echo 'echo evil' >.envrc; touch begun; {wait.format('go')}")
    )
    await until(begun.exists)
    second = asyncio.create_task(place.run(f"touch go; {wait.format('ended')}; {again}"))
    asked = [(await first).asks]
    assert go.exists()
    ended.touch()
    asked.append((await second).asks)

    assert not (place.folder / ".envrc").exists()
    assert [len(asks) for asks in asked] == [1, 1]


async def test_an_approved_change_stays_while_another_command_runs(place: Place) -> None:
    ran = await place.run("echo approved >.envrc")
    running = asyncio.create_task(
        place.run("touch begun; for i in $(seq 400); do test -e go && break; sleep 0.05; done")
    )
    await until((place.folder / "begun").exists)
    await place.keep(ran)
    await place.tools["write_file"].run({"path": ".npmrc", "content": "approved"})
    (place.folder / "go").touch()

    assert (await running).asks == []
    assert (place.folder / ".envrc").read_text() == "approved\n"
    assert (place.folder / ".npmrc").read_text() == "approved"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EAGAIN])
async def test_a_change_that_cannot_be_kept_is_renamed_and_so_are_the_others(
    place: Place, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(*_arguments: object) -> None:
        raise OSError(number, os.strerror(number))

    (place.folder / ".npmrc").write_text("old")
    monkeypatch.setattr(obeyed_files.ObeyedFiles, "_keep", fail)

    ran = await place.run("echo evil >.envrc; echo evil >.npmrc; echo evil >CLAUDE.md")

    assert not (place.folder / ".envrc").exists()
    assert not (place.folder / "CLAUDE.md").exists()
    assert (place.folder / ".npmrc").read_text() == "old"
    assert len(list(place.folder.glob("*.set-aside-*"))) == 3
    assert ran.text.count(".set-aside-") == 3


async def test_a_file_that_cannot_be_read_does_not_keep_others_from_being_put_back(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def refuse(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "leased":
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        return real(path, flags, mode, dir_fd=dir_fd)

    (place.folder / ".vscode").mkdir()
    (place.folder / ".vscode" / "leased").write_text("old")
    monkeypatch.setattr(os, "open", refuse)

    ran = await place.run("echo evil >.envrc")

    assert not (place.folder / ".envrc").exists()
    assert len(ran.asks) == 1


@pytest.mark.parametrize("path", ["docs/HEAD", "docs/refs/x", "hooks/pre-commit", "scripts/pc"])
async def test_no_write_makes_a_repository_or_changes_what_git_runs(
    place: Place, path: str
) -> None:
    docs = place.folder / "docs"
    for name in ("objects", "refs"):
        (docs / name).mkdir(parents=True)
    (docs / "HEAD").touch()
    (docs / "config").touch()
    if path == "docs/refs/x":
        (docs / "refs").rmdir()
    if path == "docs/HEAD":
        (docs / "HEAD").unlink()
    place.git("config", "core.hooksPath", "../hooks")
    (place.folder / "proj" / ".git" / "hooks" / "pre-push").symlink_to("../../../scripts/pc")

    written = await place.tools["write_file"].run({"path": path, "content": "x"})

    assert written.failed
    assert "run_command" in written.text
    assert not (place.folder / path).exists()


async def test_a_changed_address_of_a_remote_is_put_back_and_a_new_one_is_not(
    place: Place,
) -> None:
    place.git("remote", "add", "origin", "https://good.example/r")

    ran = await place.run(
        "cd proj; git remote set-url origin https://evil.example/r;"
        " git remote add other https://other.example/r"
    )

    assert place.git("remote", "get-url", "origin") == "https://good.example/r\n"
    (shown,) = [text for _, text in ran.asks]
    assert "+\turl = https://evil.example/r" in shown
    assert (await place.run("cd proj; git remote add other https://other.example/r")).asks == []


async def test_a_rebase_that_stops_asks_only_if_it_would_run_something(place: Place) -> None:
    stops = (
        "cd proj; for x in 1 2; do echo $x >file; git add file; git commit -qm $x; done;"
        " GIT_SEQUENCE_EDITOR='sed -i \"1s/^pick/edit/\"' git rebase -q -i HEAD~2"
    )
    assert (await place.run(stops)).asks == []
    assert (place.folder / "proj/.git/rebase-merge/git-rebase-todo").exists()

    ran = await place.run("cd proj; echo 'exec touch MARK' >>.git/rebase-merge/git-rebase-todo")
    place.git("rebase", "--continue")

    assert len(ran.asks) == 1
    assert not place.mark.exists()


async def test_very_much_to_keep_is_renamed_and_takes_little_memory(place: Place) -> None:
    tracemalloc.start()
    try:
        ran = await place.run(
            "mkdir .vscode; for i in $(seq 70); do truncate -s 4M .vscode/$i; done"
        )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    left = os.listdir(place.folder / ".vscode")  # noqa: PTH208
    assert all(".set-aside-" in name for name in left)
    assert len(ran.asks) <= obeyed_files.MAX_CHANGES
    assert "more" in ran.text
    assert peak < 80 * 2**20
    assert sum(file.stat().st_size for file in place.kept.iterdir()) < 40 * 2**20


async def test_a_large_difference_does_not_hold_up_the_event_loop(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown_in = list[bool]()
    real = obeyed_files.show_difference

    def note(old: str, new: str) -> str:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            shown_in.append(False)
        else:
            shown_in.append(True)
        return real(old, new)

    monkeypatch.setattr(obeyed_files, "show_difference", note)
    ran = await place.run("head -c 300000 /dev/zero | tr '\\0' '\\n' >.envrc")
    ((call, _),) = ran.asks
    preview = place.tools["keep_change"].preview
    assert preview is not None
    await preview(call.arguments)

    assert shown_in == [False, False]
