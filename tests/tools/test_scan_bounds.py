"""Workspaces made to be hard to look through: nothing stays hidden, and no look takes long."""

import asyncio
import os
import threading
import tracemalloc
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.doubles.tools import ALONE
from support.requirements import requirement
from support.stage.until import until

from backburner.core.errors import LimitReached
from backburner.gateway.network import CheckedNetwork
from backburner.ports import ToolResult
from backburner.process.shell import ConfinedShell
from backburner.tools import obeyed_scan, workspace
from backburner.tools.command_records import lock_records
from backburner.tools.obeyed_scan import scan
from backburner.tools.workspace import workspace_offers


@dataclass
class Place:
    folder: Path
    kept: Path

    async def call(self, tool: str, **arguments: Any) -> ToolResult:
        offers = workspace_offers(self.folder, self.kept, ConfinedShell(), CheckedNetwork(), ALONE)
        (offer,) = [offer for offer in offers if offer.tool.name == tool]
        return await offer.run(arguments)

    async def run(self, command: str) -> ToolResult:
        return await self.call("run_command", command=command)

    async def run_python(self, script: str) -> ToolResult:
        ran = await self.run(f"python3 - <<'END'\n{script}\nEND")
        assert "Exit code 0" in ran.text, ran.text
        return ran


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "folder").mkdir()
    return Place(tmp_path / "folder", tmp_path / "kept")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count calls of the system."""
    counted = Counter[str]()

    def count(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            counted[name] += 1
            return real(*arguments, **options)

        return call

    for name in ("open", "readlink"):
        monkeypatch.setattr(os, name, count(name, getattr(os, name)))
    return counted


def make_chain(folder: Path, name: str, length: int) -> int:
    """Make folders in each other, and return the last one, open."""
    opened = os.open(folder, os.O_RDONLY)
    for _ in range(length):
        os.mkdir(name, dir_fd=opened)
        below = os.open(name, os.O_RDONLY, dir_fd=opened)
        os.close(opened)
        opened = below
    return opened


def test_a_long_chain_of_folders_that_point_to_each_other_is_followed(place: Place) -> None:
    for number in range(400):
        folder = place.folder / f"a{number}"
        folder.mkdir()
        (folder / "next").symlink_to(f"../a{number + 1}")
    (place.folder / ".vscode").mkdir()
    (place.folder / ".vscode" / "first").symlink_to("../a0")
    (place.folder / "a399" / "last").touch()

    assert "a399/last" in scan(place.folder).files


def test_folders_far_down_are_opened_few_times(place: Place, calls: Counter[str]) -> None:
    last = make_chain(place.folder, "d", 48 + 6 * 49)
    for number in range(60):
        os.mkdir(f"s{number}", dir_fd=last)
        os.mkdir(f"s{number}/.vscode", dir_fd=last)
        os.close(os.open(f"s{number}/.vscode/tasks", os.O_CREAT | os.O_WRONLY, dir_fd=last))
    os.close(last)
    calls.clear()

    found = scan(place.folder)

    assert len(found.files) == 60
    assert calls["open"] < 1_500


def test_many_files_in_a_folder_take_little_memory(place: Place) -> None:
    for number in range(2_000):
        (place.folder / f"{'x' * 200}{number}").touch()
    tracemalloc.start()
    try:
        scan(place.folder)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 300_000


@requirement("B-command")
async def test_a_command_is_refused_in_a_folder_with_too_much_to_look_at(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(obeyed_scan, "MAX_STEPS", 200, raising=False)
    for number in range(250):
        (place.folder / str(number)).touch()

    ran = await place.run("touch ran")

    assert ran.failed
    assert "too many" in ran.text
    assert not (place.folder / "ran").exists()


@requirement("B-command")
async def test_all_that_a_command_made_is_looked_at_however_much(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(obeyed_scan, "MAX_STEPS", 200, raising=False)

    ran = await place.run(
        "for i in $(seq 100); do mkdir -p a/$i/.vscode; touch a/$i/{1,2,3}; done; touch a/9/.envrc"
    )

    assert len(ran.asks) == 1
    assert not (place.folder / "a/9/.envrc").exists()
    assert (await place.run("true")).failed


@requirement("B-command")
async def test_links_that_take_too_long_to_follow_are_put_back(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(obeyed_scan, "MAX_STEPS", 100, raising=False)

    ran = await place.run(
        "mkdir -p node_modules/{a,b}; for i in $(seq 40); do ln -s a node_modules/$i;"
        " ln -s node_modules/$i/../$i l$i; done; mkdir node_modules/a/.vscode;"
        " touch node_modules/a/.vscode/x"
    )

    assert len(ran.asks) > 1
    assert not [*place.folder.glob("l*/.vscode/x")]


def test_links_to_the_same_place_are_followed_once(place: Place, calls: Counter[str]) -> None:
    for name in ("chain", "heads"):
        (place.folder / name).mkdir()
    (place.folder / "chain" / "0").symlink_to(".")
    for number in range(1, 38):
        (place.folder / "chain" / str(number)).symlink_to(f"../chain/{number - 1}")
    first = place.folder / "heads" / "0"
    first.symlink_to("../chain/37")
    for number in range(1, 100):
        os.link(first, place.folder / "heads" / str(number), follow_symlinks=False)

    scan(place.folder)

    assert calls["readlink"] < 500


def test_links_that_lead_round_and_round_are_given_up(place: Place) -> None:
    (place.folder / "0").symlink_to(".")
    for number in range(1, 40):
        (place.folder / str(number)).symlink_to(f"{number - 1}/{number - 1}")
    (place.folder / ".vscode").symlink_to(".vscode")

    assert list(scan(place.folder).files) == [".vscode"]


def test_pointers_beyond_number_are_too_many(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(obeyed_scan, "MAX_STEPS", 5_000, raising=False)
    (place.folder / ".git").mkdir()
    settings = "".join(f"\tpath = x{number}\n" for number in range(5_000))
    (place.folder / ".git" / "config").write_text(f"[include]\n{settings}")

    with pytest.raises(LimitReached, match="too many"):
        scan(place.folder)


#: Makes a link to `node_modules/proj` whose own path is longer than the system takes.
LONG_LINK = """
import os
os.makedirs("node_modules/proj/.vscode")
fd, parts = os.open(".", os.O_RDONLY), ["d" * 200] * 20 + ["e" * 64]
for name in parts:
    os.mkdir(name, dir_fd=fd)
    fd = os.open(name, os.O_RDONLY, dir_fd=fd)
os.symlink("../" * len(parts) + "node_modules/proj", "l", dir_fd=fd)
os.symlink("/".join(parts) + "/l", "open")
open("open/.vscode/x", "w").close()
"""
#: Makes a folder deeper than any path, and links that lead there one after the other.
DEEP_LINK = """
import os
name = "d" * 100
part = "/".join([name] * 20)
folders = [os.open(".", os.O_RDONLY)]
for _ in range(HOPS):
    fd = folders[-1]
    for _ in range(20):
        os.mkdir(name, dir_fd=fd)
        fd = os.open(name, os.O_RDONLY, dir_fd=fd)
    folders.append(fd)
os.mkdir(".vscode", dir_fd=fd)
os.close(os.open(".vscode/x", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
for folder in folders[:-2]:
    os.symlink(f"{part}/open", "open", dir_fd=folder)
os.symlink(part, "open", dir_fd=folders[-2])
"""
#: Leads above the workspace, and back into it.
ROUND_LINK = """
import os
os.makedirs("node_modules/proj/.vscode")
os.symlink("../" + os.path.basename(os.getcwd()) + "/node_modules/proj", "open")
open("open/.vscode/x", "w").close()
"""


@requirement("B-command")
@pytest.mark.parametrize(
    "script",
    [
        LONG_LINK,
        DEEP_LINK.replace("HOPS", "3"),
        DEEP_LINK.replace("HOPS", "6"),
        ROUND_LINK,
        ROUND_LINK.replace('"../"', 'os.getcwd() + "/../"'),
    ],
    ids=["long", "deep", "deeper", "above and back", "above and back from the root"],
)
async def test_no_link_leads_to_what_a_command_planted(place: Place, script: str) -> None:
    ran = await place.run_python(script)

    assert ran.asks
    assert not (place.folder / "open" / ".vscode" / "x").exists()


@requirement("B-command")
async def test_large_settings_hide_no_pointers_of_others(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(obeyed_scan, "MAX_SCAN_BYTES", 1_000)
    for name in ("a", "b", "c"):
        (place.folder / name / ".git").mkdir(parents=True)
        settings = f"[user]\n\tname = {'x' * 2_000}\n[core]\n\thooksPath = h\n"
        (place.folder / name / ".git" / "config").write_text(settings)

    ran = await place.run("for x in a b c; do mkdir $x/h; touch $x/h/pre-commit; done")

    assert len(ran.asks) == 3


@requirement("B-command")
async def test_very_large_settings_are_asked_about(place: Place) -> None:
    ran = await place.run_python(
        "import os; os.makedirs('p/.git'); f = open('p/.git/config', 'w');"
        "f.write('[user]\\n\\tname = ' + 'x' * 300000)"
    )

    assert len(ran.asks) == 1


async def test_a_user_reads_while_commands_of_another_are_compared(place: Place) -> None:
    (place.folder / "x").write_text("hello")
    with lock_records(place.kept):
        commands = [asyncio.create_task(place.run("true")) for _ in range(40)]
        await asyncio.sleep(0)
        read = asyncio.create_task(place.call("read_file", path="x"))
        await asyncio.wait({read}, timeout=10)
        was_read = read.done()
    for command in commands:
        command.cancel()
    await asyncio.gather(*commands, return_exceptions=True)

    assert was_read
    assert "hello" in (await read).text


async def test_what_a_command_planted_is_put_back_though_it_is_cancelled_while_scans_wait(
    place: Place,
) -> None:
    running = asyncio.create_task(place.run("echo x >.envrc; touch begun; sleep 60"))
    await until((place.folder / "begun").exists)
    free = threading.Event()
    taken = [workspace._scans.submit(free.wait) for _ in range(workspace._scans._max_workers)]
    # Before that, one of these could be what waits.
    await until(lambda: all(thread.running() for thread in taken))
    running.cancel()
    await until(lambda: workspace._scans._work_queue.qsize() == 1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    free.set()

    await until(lambda: not (place.folder / ".envrc").exists())
