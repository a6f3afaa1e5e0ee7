"""The guard of files that other programs obey, and commands that attack the guard itself."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from support.doubles.tools import ALONE
from support.requirements import requirement
from support.stage.until import until

from backburner.core.commands import Cage
from backburner.gateway.network import CheckedNetwork
from backburner.ports import Offer, ToolResult
from backburner.process.shell import ConfinedShell
from backburner.tools import workspace
from backburner.tools.workspace import CommandTerms, workspace_offers

#: Waits until the test has made a file.
WAIT = "for i in $(seq 400); do test -e go && break; sleep 0.05; done"
#: Becomes a user without privileges, for whom commands are played that take our rights away by
#: changing modes. That user may not be able to read where we are installed.
TAKES_RIGHTS = """
import asyncio, encodings.ascii, json, os, sys
from pathlib import Path
from support.doubles.tools import ALONE
from backburner.gateway.network import CheckedNetwork
from backburner.ports import CommandResult
from backburner.tools.command_records import record_command
from backburner.tools.interrupted_commands import InterruptedCommands
from backburner.tools.obeyed_files import ObeyedFiles
from backburner.tools.workspace import workspace_offers

class Played:
    cage_missing = None

    def __init__(self, data, taken):
        self.data, self.taken = data, taken
        self.folder, self.kept = (data / name / "u_user" for name in ("workspaces", "kept_changes"))
        self.folder.mkdir(parents=True)

    async def run(self, line="", **bounds):
        (self.folder / ".envrc").write_text("evil")
        for path in sorted(self.data.glob(self.taken), reverse=True):
            path.chmod(0)
        return CommandResult(output="", code=0)

    async def end(self):
        offers = workspace_offers(self.folder, self.kept, self, CheckedNetwork(), ALONE)
        run = {offer.tool.name: offer for offer in offers}["run_command"].run
        ran = await run({"command": "true"})
        for path in (self.data, self.folder.parent, self.folder):
            path.chmod(0o700)
        return [ran.text, len(ran.asks), (self.folder / ".envrc").exists()]

    async def crash(self):
        record = record_command(
            self.kept, ObeyedFiles(self.folder, self.kept).scan, ALONE.turn, "true"
        )
        await self.run()
        record.release()
        commands = InterruptedCommands(self.folder.parent, self.kept.parent)
        for _ in range(2):
            async with commands.take() as found:
                pass
        return [len(command.calls) for command in found]

async def main(top, how, taken):
    print(json.dumps([await getattr(Played(top / str(n), one), how)() for n, one in taken]))

asyncio.run(asyncio.to_thread(int))
if os.geteuid() == 0:
    os.chown(sys.argv[1], 65534, -1)
    os.setresuid(65534, 65534, 65534)
asyncio.run(main(Path(sys.argv[1]), sys.argv[2], enumerate(sys.argv[3:])))
"""
#: Of a data folder: what a command takes our rights to away.
TAKEN = (
    "kept_changes/*",
    "kept_changes",
    "kept_changes/*/.lock",
    "kept_changes/*/*",
    "workspaces",
    "*",
    "**/*",
)


@dataclass
class Place:
    folder: Path
    kept: Path
    tools: Mapping[str, Offer]

    async def run(self, command: str, *, network: bool = False) -> ToolResult:
        return await self.tools["run_command"].run({"command": command, "network": network})

    async def write(self, path: str, content: str) -> ToolResult:
        return await self.tools["write_file"].run({"path": path, "content": content})

    async def start(self, command: str, *, network: bool = False) -> "asyncio.Task[ToolResult]":
        """Start a command that waits for `let_go` after it has done this."""
        line = f"{command}; touch begun; {WAIT}"
        running = asyncio.create_task(self.run(line, network=network))
        await until((self.folder / "begun").exists)
        return running

    def let_go(self) -> None:
        (self.folder / "go").touch()


def make_place(folder: Path, kept: Path, terms: CommandTerms = ALONE) -> Place:
    offers = workspace_offers(folder, kept, ConfinedShell(), CheckedNetwork(), terms)
    return Place(folder, kept, {offer.tool.name: offer for offer in offers})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "folder").mkdir()
    return make_place(tmp_path / "folder", tmp_path / "kept")


def play(how: str) -> list[list[object]]:
    with TemporaryDirectory() as top:
        ran = subprocess.run(
            [sys.executable, "-c", TAKES_RIGHTS, top, how, *TAKEN],
            capture_output=True,
            text=True,
            check=False,
            env={"PYTHONPATH": ":".join(sys.path), "PATH": os.environ["PATH"]},
        )
    assert ran.returncode == 0, ran.stderr
    return list(json.loads(ran.stdout.splitlines()[-1]))


@requirement("B-command")
def test_what_a_command_planted_is_put_back_though_it_took_our_rights_away() -> None:
    ended = {taken: (asks, left) for taken, (_, asks, left) in zip(TAKEN, play("end"), strict=True)}

    assert ended == dict.fromkeys(TAKEN, (1, False))


def test_an_interrupted_command_is_found_though_it_took_our_rights_away() -> None:
    assert play("crash") == [[1]] * len(TAKEN)


@requirement("B-command")
async def test_what_a_command_planted_is_renamed_if_nothing_can_be_kept(place: Place) -> None:
    running = await place.start("echo evil >.envrc")
    place.kept.rename(place.kept.with_name("gone"))
    place.kept.touch()
    place.let_go()
    ran = await running

    assert not (place.folder / ".envrc").exists()
    assert ".envrc is now .envrc.set-aside-" in ran.text
    assert (await place.run("true")).failed


@requirement("B-command")
@pytest.mark.parametrize("by", ["write_file", "keep_change"])
async def test_only_what_was_shown_counts_as_approved(
    place: Place, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    ran = await place.run("echo good >.envrc")
    ((change, _),) = ran.asks
    running = await place.start("true")
    real = os.fsync

    def swap(descriptor: int) -> None:
        """Write to the file that is being prepared, as a command can."""
        for file in place.folder.glob(".new-*"):
            file.write_text("evil")
        real(descriptor)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", swap)
        if by == "keep_change":
            await place.tools["keep_change"].run(change.arguments)
        else:
            await place.write(".envrc", "good\n")
    assert (place.folder / ".envrc").read_text() == "evil"
    place.let_go()

    assert len((await running).asks) == 1
    assert not (place.folder / ".envrc").exists()


@requirement("B-command")
async def test_an_approved_write_has_the_mode_from_before_the_commands_that_run(
    place: Place,
) -> None:
    hook = place.folder / "proj" / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(parents=True)
    hook.write_text("old")
    hook.chmod(0o644)
    running = await place.start(f"chmod 755 {hook}")
    await place.write("proj/.git/hooks/pre-commit", "new")
    place.let_go()

    assert (await running).asks == []
    assert hook.read_text() == "new"
    assert hook.stat().st_mode & 0o777 == 0o644


async def test_a_large_change_is_made_again_when_no_command_runs(place: Place) -> None:
    ran = await place.run("truncate -s 5M .envrc")
    ((change, _),) = ran.asks
    running = await place.start("true")
    keep = place.tools["keep_change"].run
    meanwhile = await keep(change.arguments)
    place.let_go()
    await running

    assert meanwhile.failed
    assert "when they have ended" in meanwhile.text
    assert not (await keep(change.arguments)).failed


async def test_an_approved_write_stays_whatever_the_path_looks_like(place: Place) -> None:
    running = await place.start("true")
    await place.write(str(place.folder / ".envrc"), "good")
    place.let_go()

    assert (await running).asks == []
    assert (place.folder / ".envrc").read_text() == "good"


@requirement("B-command")
@pytest.mark.parametrize(
    ("path", "missing"),
    [
        ("new/../docs/HEAD", "HEAD"),
        ("to_head", "HEAD"),
        ("to_objects/x", "objects"),
        ("docs/objects/x", "objects"),
        ("docs/objects/.envrc", "objects"),
    ],
)
async def test_no_path_hides_that_a_write_makes_a_repository(
    place: Place, path: str, missing: str
) -> None:
    docs = place.folder / "docs"
    for name in {"objects", "refs", "HEAD"} - {missing}:
        (docs / name).mkdir(parents=True)
    (place.folder / "to_head").symlink_to("docs/HEAD")
    (place.folder / "to_objects").symlink_to("docs/objects")

    written = await place.write(path, "x")

    assert written.failed, written.text
    assert not (docs / missing).exists()


async def test_a_path_that_goes_up_is_refused_in_words(place: Place) -> None:
    written = await place.write("new/../notes.txt", "x")

    assert written.failed
    assert "without `..`" in written.text
    assert not (place.folder / "new").exists()


@requirement("B-command")
@pytest.mark.parametrize(
    ("network", "cage"), [(False, Cage.WORK), (False, Cage.LOOK), (True, Cage.WORK)]
)
async def test_commands_with_and_without_the_network_do_not_run_at_once(
    place: Place, cage: Cage, *, network: bool
) -> None:
    other = make_place(place.folder, place.kept, replace(ALONE, cage=cage))
    running = await place.start("echo evil >.envrc", network=network)
    waiting = asyncio.create_task(other.run("cat .envrc", network=not network))
    # Long enough for one that does not wait.
    await asyncio.wait({waiting}, timeout=0.5)
    assert not waiting.done()
    place.let_go()

    assert len((await running).asks) == 1
    ran = await waiting
    assert "evil" not in ran.text
    assert ".envrc: No such file" in ran.text


async def test_a_command_that_waited_too_long_for_others_is_refused_in_words(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace, "MAX_WAIT_SECONDS", 0, raising=False)
    running = await place.start("true")
    refused = await place.run("true", network=True)
    place.let_go()
    await running

    assert refused.failed
    assert refused.text == (
        "A command without the network runs in this folder, and one with it cannot run at the same"
        " time. Run it again when the other has ended."
    )
    assert not (await place.run("true", network=True)).failed
