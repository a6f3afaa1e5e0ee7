"""Control groups of commands: where one is given, its limits, and that none is left behind."""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.programs.families import PATH, SOON
from support.programs.process_table import parent_of, wait_until_gone

from backburner.core.commands import Cage
from backburner.ports import CommandBounds, CommandResult
from backburner.process.command import Command
from backburner.process.confinement import ProcessLimits, control_groups
from backburner.process.control_group import (
    find_parents,
    make_groups,
    own_groups,
    reached_limit,
    remove_groups,
)
from backburner.process.shell import ConfinedShell
from backburner.process.tree import ProcessTree, spawn

READABLE = [Path(sys.prefix), Path(sys.base_prefix)]
GREEDY = f"{sys.executable} -c 'x = bytearray(2**29); print(2**20 + 1)'; sleep 60"
FORKS = f"""{sys.executable} -c '
import os, signal
try:
    for _ in range(10):
        os.fork() or signal.pause()
except BlockingIOError:
    print("refused")
'"""
MANY = "for i in $(seq 200); do sleep 60 & echo started; done; wait"


async def sh(
    folder: Path, line: str, limits: ProcessLimits | None = None, **bounds: Any
) -> CommandResult:
    shell = ConfinedShell(limits=limits, readable=READABLE)
    return await shell.run(
        line, folder=folder, within=SOON, bounds=CommandBounds(cage=Cage.WORK, **bounds)
    )


def groups_of(tree: ProcessTree) -> Sequence[Path]:
    """Name the groups of a command, which has them from its outer reaper."""
    name = f"backburner-{parent_of(parent_of(tree.pid))}"
    return [Path(parent, name) for parent in control_groups()]


def sleeper(word: str) -> Command:
    limits = ProcessLimits(groups=control_groups())
    argv = ("sh", "-c", "echo ready; kill -STOP $$", word)
    return Command(argv=argv, env={"PATH": PATH}, cwd=Path("/"), limits=limits)


def test_commands_can_join_the_groups_that_are_found() -> None:
    assert control_groups() == find_parents()


@pytest.mark.parametrize("sees_processes", [True, False])
async def test_commands_are_in_a_group_where_one_is_given(
    tmp_path: Path, *, sees_processes: bool
) -> None:
    ran = await sh(tmp_path, "cat /proc/self/cgroup", sees_processes=sees_processes)

    assert ran.output.count("/backburner-") == len(control_groups())


async def test_memory_is_held_by_the_group_with_the_words_of_the_reaper(tmp_path: Path) -> None:
    limits = ProcessLimits(max_memory_bytes=2**28, groups=control_groups())

    ran = await sh(tmp_path, GREEDY, limits)

    assert ran.exceeded == "its processes used more than 0.2 GB of memory"
    assert not control_groups() or "1048577" not in ran.output


async def test_a_limit_that_ends_the_command_itself_is_named(tmp_path: Path) -> None:
    limits = ProcessLimits(max_memory_bytes=2**28, groups=control_groups())

    ran = await sh(tmp_path, f"exec {GREEDY}", limits)

    assert not control_groups() or ran.exceeded.endswith("GB of memory")


async def test_processes_are_held_by_the_group_with_the_words_of_the_reaper(
    tmp_path: Path,
) -> None:
    limits = ProcessLimits(max_processes=20, groups=control_groups())

    ran = await sh(tmp_path, MANY, limits, sees_processes=False)

    assert ran.exceeded == "it had more than 20 processes"
    assert not control_groups() or ran.output.count("started") < 20


async def test_where_a_group_cannot_be_made_the_reaper_measures(tmp_path: Path) -> None:
    limits = ProcessLimits(max_processes=20, groups=(str(tmp_path / "missing"),))

    ran = await sh(tmp_path, MANY, limits)

    assert ran.exceeded == "it had more than 20 processes"


async def test_a_group_is_there_while_its_command_runs(word: str) -> None:
    async with spawn(sleeper(word), grace=timedelta(0)) as tree:
        await tree.stdout.readline()
        groups = groups_of(tree)
        for group in groups:
            members = await asyncio.to_thread((group / "cgroup.procs").read_text)
            assert str(tree.pid) in members.split()

    assert [group for group in groups if group.exists()] == []


@pytest.mark.parametrize("generations", [1, 2])
async def test_no_group_is_left_if_a_reaper_is_killed(word: str, generations: int) -> None:
    async with spawn(sleeper(word), grace=timedelta(0)) as tree:
        await tree.stdout.readline()
        groups, inner = groups_of(tree), parent_of(tree.pid)
        outer = parent_of(inner)
        os.kill((inner, outer)[generations - 1], signal.SIGKILL)
        await asyncio.to_thread(wait_until_gone, word)

    assert [group for group in groups if group.exists()] == []


async def test_a_group_whose_reapers_were_killed_is_removed_by_the_next_command(word: str) -> None:
    async with spawn(sleeper(word), grace=timedelta(0)) as tree:
        await tree.stdout.readline()
        groups, inner = groups_of(tree), parent_of(tree.pid)
        pids = (parent_of(inner), inner, tree.pid)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        await asyncio.to_thread(wait_until_gone, word)
    assert all(group.exists() for group in groups)

    async with spawn(sleeper(word), grace=timedelta(0)) as tree:
        await tree.stdout.readline()

    assert [group for group in groups if group.exists()] == []


class FakeSystem:
    """What /proc and the folders of control groups look like on other systems."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.process = root / "proc"
        self.process.mkdir()

    def mount(self, lines: str, cgroup: str) -> str:
        (self.process / "mountinfo").write_text(lines.format(root=self.root))
        (self.process / "cgroup").write_text(cgroup)
        return str(self.process)

    def group(self, path: str, **files: str) -> Path:
        folder = self.root / path
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / f"cgroup.{name}").write_text(text)
        return folder


@pytest.fixture
def system(tmp_path: Path) -> FakeSystem:
    return FakeSystem(tmp_path)


VERSION_2 = "1 0 0:1 / {root}/fs rw - cgroup2 cgroup2 rw,nsdelegate\n"


@pytest.mark.parametrize(("enabled", "written"), [("", "+memory +pids"), ("cpu memory pids", "")])
def test_in_version_2_a_group_is_made_beside_ours_if_the_folder_above_is_delegated(
    system: FakeSystem, enabled: str, written: str
) -> None:
    process = system.mount(VERSION_2, "0::/bb.service/server\n")
    above = system.group("fs/bb.service", subtree_control=enabled)
    system.group("fs/bb.service/server", subtree_control="")

    found = find_parents(process, lambda folder: folder == str(above))

    assert found == (str(above),)
    assert (above / "cgroup.subtree_control").read_text() == (written or enabled)
    (trial,) = above.glob("backburner-*")
    limits = {file.name: file.read_text() for file in trial.iterdir()}
    assert limits == {"memory.max": str(2**30), "pids.max": "100"}


def test_in_version_2_nothing_is_made_where_nothing_is_delegated(system: FakeSystem) -> None:
    process = system.mount(VERSION_2, "0::/system.slice/bb.service\n")
    above = system.group("fs/system.slice", subtree_control="memory pids")
    system.group("fs/system.slice/bb.service", subtree_control="")

    assert find_parents(process) == ()
    assert [path.name for path in above.iterdir() if path.is_dir()] == ["bb.service"]


def test_in_version_2_the_root_may_have_processes_and_groups(system: FakeSystem) -> None:
    process = system.mount(VERSION_2, "0::/\n")
    root = system.group("fs", subtree_control="cpu memory pids")

    assert find_parents(process) == (str(root),)


def test_in_version_1_groups_are_made_below_ours_also_in_a_container(system: FakeSystem) -> None:
    process = system.mount(
        "1 0 0:1 / {root}/pids rw - cgroup cgroup rw,pids\n"
        "2 0 0:1 /docker/a {root}/memory ro shared:1 - cgroup cgroup rw,memory\n" + VERSION_2,
        "3:pids:/one\n2:memory:/docker/a/two\n1:cpu,cpuacct:/\n0::/\n",
    )
    pids, memory = system.group("pids/one"), system.group("memory/two")

    assert own_groups(process) == {
        "pids": str(pids),
        "memory": str(memory),
        "": str(system.root / "fs"),
    }
    assert find_parents(process) == (str(memory), str(pids))


@pytest.mark.parametrize("cgroup", ["", "0::/gone\n", "2:memory:/\n", "nonsense\n"])
def test_nothing_is_given_where_nothing_is_mounted(system: FakeSystem, cgroup: str) -> None:
    assert find_parents(system.mount("", cgroup)) == ()
    assert find_parents(system.mount(VERSION_2, cgroup)) == ()


V1_LIMIT = {
    "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
    "memory.limit_in_bytes": "100000\n",
}


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({"memory.events": "low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\n"}, "memory"),
        ({"memory.events": "low 0\nhigh 0\nmax 7\noom 0\noom_kill 1\n"}, ""),
        (V1_LIMIT | {"memory.max_usage_in_bytes": "99000\n"}, "memory"),
        (V1_LIMIT | {"memory.memsw.max_usage_in_bytes": "99000\n"}, "memory"),
        # By the kernel for others, or for a group above.
        (V1_LIMIT | {"memory.max_usage_in_bytes": "50000\n"}, ""),
        ({"pids.events": "max 1\n", "pids.max": "20\n", "pids.peak": "20\n"}, "processes"),
        ({"pids.events": "max 1\n", "pids.max": "20\n", "pids.peak": "9\n"}, ""),
        # Where there is no peak, the look comes a little later than the refusal.
        ({"pids.events": "max 1\n", "pids.max": "20\n", "pids.current": "18\n"}, "processes"),
        ({"pids.events": "max 1\n", "pids.max": "20\n", "pids.current": "5\n"}, ""),
        ({"pids.events": "max 0\n", "pids.max": "20\n", "pids.peak": "20\n"}, ""),
    ],
)
def test_the_counters_of_a_group_say_which_limit_of_its_own_was_reached(
    tmp_path: Path, files: dict[str, str], limit: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    assert reached_limit([str(tmp_path)]) == limit


async def test_a_command_is_not_ended_for_processes_of_others(tmp_path: Path, word: str) -> None:
    """In version 1 our group counts the forks that one above it refused."""
    if len(parents := control_groups()) != 2:
        return
    above = Path(parents[1], word)
    await asyncio.to_thread(above.mkdir)
    try:
        await asyncio.to_thread((above / "pids.max").write_text, "5")
        limits = ProcessLimits(max_processes=100, groups=(parents[0], str(above)))
        ran = await sh(tmp_path, FORKS, limits)
    finally:
        await asyncio.to_thread(above.rmdir)

    assert (ran.output, ran.exceeded) == ("refused\n", "")


def test_groups_of_processes_that_live_are_kept(tmp_path: Path) -> None:
    for name in (f"backburner-{os.getppid()}", "backburner-99999999", "other-1", "backburner-x"):
        (tmp_path / name).mkdir()

    made = make_groups([str(tmp_path)], max_memory=0, max_processes=5)

    assert made == [str(tmp_path / f"backburner-{os.getpid()}")]
    assert (Path(made[0]) / "memory.max").read_text() == "max"
    assert not (tmp_path / "backburner-99999999").exists()
    assert len(list(tmp_path.iterdir())) == 4
    remove_groups(made)
