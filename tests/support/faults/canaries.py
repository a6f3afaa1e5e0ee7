"""Secrets that may not be seen, in every place that can hold one, and where to look for them."""

import re
from array import array
from collections.abc import Iterator, Mapping
from contextlib import suppress
from io import BufferedReader, RawIOBase
from itertools import groupby
from mmap import PAGESIZE
from pathlib import Path

from support.model_api import ModelApi, ModelRequest
from support.programs.process_table import parent_of

#: Never written out where it could be found by itself.
_SIGN = re.compile(rb"canar[y]-[a-z-]+")
#: More than any region that a program reserves.
_LARGEST = 64 * 2**30
#: In the entry of a page, that it is in memory or swapped out.
_HELD = 3 << 62


def canary(place: str) -> str:
    return f"canary-{place}-sings"


def found_in(data: bytes) -> set[str]:
    return {found.decode() for found in _SIGN.findall(data)}


def in_files(*folders: Path) -> set[str]:
    files = (path for folder in folders for path in folder.rglob("*"))
    return found_in(b"\n".join(path.read_bytes() for path in files if path.is_file()))


def descendants(pid: int) -> list[int]:
    """Give everybody that a process has started, and whom those have."""
    parents = dict(_parents())
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]


def in_process(pid: int) -> set[str]:
    """Look at all that a process was started with, has open, and has in memory."""
    folder = Path(f"/proc/{pid}")
    seen = [(folder / name).read_bytes() for name in ("cmdline", "environ")]
    for link in (folder / "fd").iterdir():
        # It may be closed while we look.
        with suppress(OSError):
            seen.append(bytes(link.readlink()))
            seen.append(link.read_bytes() if link.is_file() else b"")
    return found_in(b"\n".join(seen)).union(*map(found_in, memory_of(pid)))


def memory_of(pid: int) -> Iterator[bytes]:
    """Read what a process has in memory, apart from the files that are its program."""
    folder = Path(f"/proc/{pid}")
    with (
        (folder / "mem").open("rb", buffering=0) as memory,
        (folder / "pagemap").open("rb") as pages,
    ):
        for start, end in _regions((folder / "smaps").read_text()):
            for at, size in _held(pages, start, end):
                memory.seek(at)
                yield _read(memory, size)


def _held(pages: BufferedReader, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Find what a region really holds: the heap of Claude Code is a part of gigabytes."""
    assert end - start <= _LARGEST
    pages.seek(start // PAGESIZE * 8)
    entries = array("Q", pages.read((end - start) // PAGESIZE * 8))
    for is_held, group in groupby(entries, lambda entry: bool(entry & _HELD)):
        size = sum(1 for _ in group) * PAGESIZE
        if is_held:
            yield start, size
        start += size


def seen_by(model: ModelApi) -> set[str]:
    """Find what the model was told, apart from the header that is for its credential."""
    return {found for heard in model.received for found in found_in(_told(heard))}


def _told(heard: ModelRequest) -> bytes:
    shown = [
        f"{name}: {value}"
        for name, value in heard.headers.items()
        if name not in ("authorization", "x-api-key")
    ]
    return "\n".join([heard.path, *shown]).encode() + heard.raw


def _read(memory: RawIOBase, size: int) -> bytes:
    """Read as far as there is something."""
    data = bytearray()
    # It may be given back while it is read.
    with suppress(OSError):
        while len(data) < size and (more := memory.read(size - len(data))):
            data += more
    return bytes(data)


def _regions(smaps: str) -> Iterator[tuple[int, int]]:
    for entry in re.split(r"\n(?=[0-9a-f]+-[0-9a-f]+ )", smaps):
        head, _, facts = entry.partition("\n")
        bounds, access = head.split()[:2]
        start, end = (int(bound, 16) for bound in bounds.split("-"))
        is_written = re.search(r"^(Private_Dirty|Anonymous): +[1-9]", facts, re.MULTILINE)
        if access.startswith("rw") and is_written:
            yield start, end


def _parents() -> Iterator[tuple[int, int]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                yield int(folder.name), parent_of(int(folder.name))
            except OSError:
                continue


#: Looks for them as a command that wants to know: in its environment, in files, in other processes,
#: and by detours. With an argument it also goes through all there is, as far as it gets in a while.
SCAN = r"""
data={data} home={home} loose={loose} worker={worker}
{{
  env
  cat "$loose" "$home"/.*/* "$home"/* "$data"/* "$data"/agents/*/*/* ./* "$TMPDIR"/*
  cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline
  for pid in "$worker" self $PPID; do
    cat /proc/$pid/root/"$data"/* /proc/$pid/cwd/* /proc/$pid/task/*/environ
    for open in /proc/$pid/fd/*; do [ -f "$open" ] && cat "$open"; done
  done
  ln "$data/backburner.toml" taken && cat taken
  ln -s "$data/backburner.toml" pointed && cat pointed
  rm -f taken pointed
  [ -n "$1" ] && timeout 1 find / -xdev -path /proc -prune -o -type f -readable -size -64k \
    -exec cat {{}} +
}} 2>/dev/null | tr '\0' '\n' | grep -aoE 'canar[y]-[a-z-]+' | sort -u
"""


def write_scan(path: Path, places: Mapping[str, object]) -> None:
    path.write_text(SCAN.format(**places))
