"""Processes that a measurement starts, and what they take: time, memory, bytes written."""

import os
import queue
import subprocess
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

PAGE, TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
#: Seconds, for processes to start and to end.
START, END = 60.0, 15.0


class Memory(NamedTuple):
    """Bytes: with all that is shared, with a share of it, without any, and what is no file."""

    resident: int
    whole: int
    unique: int
    own: int


class Crew:
    """Processes that each write `ready`, and after `go` a line for each thing that they did."""

    def __init__(self, processes: Sequence["subprocess.Popen[str]"], log: IO[str]) -> None:
        self._processes = processes
        self._log = log
        self._lines = queue.SimpleQueue[str]()
        for process in processes:
            threading.Thread(target=self._read, args=(process,), daemon=True).start()

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes]

    def wait_until_ready(self) -> list[str]:
        """Wait for all of them; give what each wrote after `ready`."""
        return [line.removeprefix("ready").strip() for line in self.take(len(self.pids))]

    def tell(self, line: str) -> None:
        for stdin in (process.stdin for process in self._processes):
            if stdin is not None:
                stdin.write(f"{line}\n")
                stdin.flush()

    def take(self, count: int, *, within: float = START) -> list[str]:
        """Take the next lines, of whichever process; each has to come in time."""
        return [self._take(within) for _ in range(count)]

    def _take(self, within: float) -> str:
        with suppress(queue.Empty):
            if line := self._lines.get(timeout=within):
                return line
        self._log.seek(0)
        program = " ".join(str(part) for part in self._processes[0].args)  # type: ignore[union-attr]
        raise SystemExit(
            f"A process that is measured ended or was silent for {within:.0f} s: {program}\n"
            f"The end of what it wrote:\n{self._log.read()[-2000:]}"
        )

    def _read(self, process: "subprocess.Popen[str]") -> None:
        for line in process.stdout or ():
            self._lines.put(line.strip())
        self._lines.put("")


@contextmanager
def crew(*commands: Sequence[str | Path]) -> Iterator[Crew]:
    with ExitStack() as opened:
        log = opened.enter_context(tempfile.TemporaryFile("w+", errors="replace"))
        processes = []
        for command in commands:
            process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
            opened.callback(_end, process)
            processes.append(process)
        yield Crew(processes, log)


def _end(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    try:
        process.wait(END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()


def cpu_seconds(pid: int) -> float:
    return sum(_ticks(pid)[:2]) / TICKS


def family_cpu_seconds(pid: int) -> float:
    """Give the time of a process, of its descendants, and of those that it has seen end."""
    ticks = sum(_ticks(pid))
    for child in descendants(pid):
        # It may be gone by now; then it is counted next time.
        with suppress(OSError):
            ticks += sum(_ticks(child)[:2])
    return ticks / TICKS


def machine_seconds() -> float:
    """Give the time that all cores of the machine have worked, for whomever."""
    ticks = [int(part) for part in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    user, nice, system, _idle, _waits, irq, soft_irq = ticks[:7]
    return (user + nice + system + irq + soft_irq) / TICKS


def bytes_written(pid: int) -> int:
    """Give the bytes that a process has written, to files and to whatever else."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["wchar"])


def memory(pid: int) -> Memory:
    resident, shared = (
        int(pages) * PAGE for pages in Path(f"/proc/{pid}/statm").read_text().split()[1:3]
    )
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
        found = {name: int(size.split()[0]) * 1024 for name, size in (x.split(":") for x in lines)}
        unique = found["Private_Clean"] + found["Private_Dirty"]
        return Memory(resident, found["Pss"], unique, found["Pss_Anon"])
    except (OSError, KeyError):
        # Others may not look so closely; then it is what the process has for itself.
        return Memory(resident, resident, resident - shared, resident - shared)


def parent(pid: int) -> int:
    return int(_fields(pid)[1])


def descendants(pid: int) -> list[int]:
    children = defaultdict[int, list[int]](list)
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            children[parent(int(folder.name))].append(int(folder.name))
    found, left = list[int](), list(children[pid])
    while left:
        found.append(left.pop())
        left += children[found[-1]]
    return found


def _ticks(pid: int) -> list[int]:
    """Give what it has worked as user and as system, and the same of ended children."""
    return [int(field) for field in _fields(pid)[11:15]]


def _fields(pid: int) -> list[str]:
    # The name, in brackets, may hold anything.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
