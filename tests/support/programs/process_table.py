"""Which processes there are, found by a word among their arguments; forked ones keep those."""

import os
import select
from pathlib import Path
from time import monotonic

#: How many seconds everybody has to be gone.
SOON = 5.0


def alive(word: str) -> list[int]:
    """Give the ids of all that have the word among their arguments; the dead have none."""
    return [
        int(folder.name)
        for folder in Path("/proc").iterdir()
        if folder.name.isdecimal() and word in arguments_of(folder)
    ]


def arguments_of(folder: Path) -> list[str]:
    try:
        return (folder / "cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return []


def environment_of(pid: int) -> dict[str, str]:
    shown = Path(f"/proc/{pid}/environ").read_text()
    return dict(variable.split("=", 1) for variable in shown.split("\0") if variable)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def state_of(pid: int) -> str:
    """Give the letter of a process's state: R, S, D, T where it is stopped, Z."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def zombies() -> list[int]:
    """Give our own children that have ended, but were not waited for."""
    gone = [folder for folder in Path("/proc").iterdir() if folder.name.isdecimal()]
    return [int(folder.name) for folder in gone if is_our_zombie(folder)]


def is_our_zombie(folder: Path) -> bool:
    try:
        state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return False
    return state == "Z" and int(parent) == os.getpid()


def wait_until_gone(word: str) -> None:
    deadline = monotonic() + SOON
    while pids := alive(word):
        for pid in pids:
            wait_for_end(pid, deadline - monotonic())


def wait_for_end(pid: int, seconds: float) -> None:
    assert seconds > 0, f"Process {pid} is still there."
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        select.select([fd], [], [], seconds)
    finally:
        os.close(fd)
