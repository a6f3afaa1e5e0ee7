"""Secrets that may not be seen, in every place that can hold one, and where to look for them."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from io import RawIOBase
from pathlib import Path

from support.programs.process_table import parent_of

#: Never written out where it could be found by itself.
_SIGN = re.compile(rb"canar[y]-[a-z-]+")
#: More than any region that holds anything.
_LARGEST = 512 * 2**20


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
    return found_in(b"\n".join(seen)) | found_in(b"\n".join(memory_of(pid)))


def memory_of(pid: int) -> Iterator[bytes]:
    """Read what a process has in memory, apart from the files that are its program."""
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for start, end in _regions(Path(f"/proc/{pid}/smaps").read_text()):
            memory.seek(start)
            yield _read(memory, end - start)


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
        if access.startswith("rw") and is_written and end - start <= _LARGEST:
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
