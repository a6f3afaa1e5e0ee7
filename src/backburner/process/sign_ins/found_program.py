"""Finds a program on the operator's PATH, and what has to be executed for it.

It must not be a file that an agent could have written, nor one behind a link or in a folder that it
could have changed.
"""

import os
import re
import stat
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from backburner.core.errors import ProcessFailed
from backburner.process.confinement import SYSTEM_FOLDERS

#: The loaders of programs, which the kernel starts for them.
_LOADERS = ("lib*/ld-*.so*", "lib/*/ld-*.so*", "usr/lib*/ld-*.so*", "usr/lib/*/ld-*.so*")
_INTERPRETERS = re.compile(r"python3?(\.\d+)?|node|nodejs")
#: Options of Python that change nothing about what it runs.
_FLAGS = re.compile(r"-[BEIs]+")
_ENV = "env"
_MAX_LINKS = 40
_MAX_FIRST_LINE = 256
#: Programs of git that fetch and push by HTTP need; it starts them itself.
_GIT_PROGRAMS = ("git", "git-remote-http", "git-remote-https")


@dataclass(frozen=True, slots=True)
class FoundProgram:
    path: Path
    #: The program, with its interpreter before it if it is a script.
    argv: tuple[str, ...]
    #: The only files that may be executed.
    executable: tuple[Path, ...]


def find_program(name: str, path: str, agents: Sequence[Path]) -> FoundProgram:
    """Find a program outside of the folders of `agents`; the first one on the PATH counts."""
    found = _resolve_trusted(_search(name, path), agents)
    with found.open("rb") as file:
        head = file.read(_MAX_FIRST_LINE)
    if not head.startswith(b"#!"):
        own = _git_programs(found) if name == "git" else ()
        return FoundProgram(found, (str(found),), (found, *own, *_find_loaders()))
    interpreter, flags = _interpreter(found, head, path, agents)
    argv = (str(interpreter), *flags, str(found))
    return FoundProgram(found, argv, (interpreter, *_find_loaders()))


def _search(name: str, path: str) -> Path:
    for folder in path.split(os.pathsep):
        candidate = Path(folder) / name
        # Others depend on the folder in which we were started.
        if candidate.is_absolute() and candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    raise ProcessFailed(
        f"{name} is not installed.",
        hint="Install it, on the PATH of the server.",
        permanent=True,
    )


def _resolve_trusted(path: Path, agents: Sequence[Path]) -> Path:
    """Follow each link to a program, and refuse what others could have put there."""
    roots = [root.resolve() for root in agents]
    seen, links = Path("/"), 0
    rest = list(path.parts[1:])
    while rest:
        part = rest.pop(0)
        if part == "..":
            seen = seen.parent
            continue
        seen = seen / part
        info = seen.lstat()
        if any(seen.is_relative_to(root) for root in roots):
            raise _untrusted(path, f"{seen} is in a folder that agents can write")
        if stat.S_ISLNK(info.st_mode):
            links += 1
            if links > _MAX_LINKS:
                raise _untrusted(path, "it has too many links")
            target = seen.readlink()
            seen = Path("/") if target.is_absolute() else seen.parent
            rest = [*target.parts[1 if target.is_absolute() else 0 :], *rest]
        elif info.st_mode & stat.S_IWOTH and not info.st_mode & stat.S_ISVTX:
            raise _untrusted(path, f"everybody can write {seen}")
        elif info.st_uid not in (0, os.getuid()):
            raise _untrusted(path, f"{seen} belongs to another user")
    return seen


def _untrusted(path: Path, why: str) -> ProcessFailed:
    return ProcessFailed(
        f"{path} is not used with a sign-in: {why}.",
        hint="Install the program where only its owner and root can write.",
        permanent=True,
    )


def _interpreter(
    script: Path, head: bytes, path: str, agents: Sequence[Path]
) -> tuple[Path, Sequence[str]]:
    words = head[2:].split(b"\n")[0].decode(errors="replace").split()
    named, flags = (Path(words[0]), words[1:]) if words else (Path(), [])
    if named.name == _ENV and len(flags) == 1:
        named, flags = _search(flags[0], path), []
    is_known = named.is_absolute() and all(map(_FLAGS.fullmatch, flags))
    real = _resolve_trusted(named, agents) if is_known else Path()
    if not _INTERPRETERS.fullmatch(real.name):
        raise ProcessFailed(
            f"{script} is a script of another program than Python or Node.js, and cannot be held.",
            hint="Install the program itself, not a wrapper script for it.",
            permanent=True,
        )
    if not any(real.is_relative_to(folder.resolve()) for folder in SYSTEM_FOLDERS):
        raise ProcessFailed(
            f"{script} needs {real}, which is in no system folder.",
            hint="Install it with the packages of the system.",
            permanent=True,
        )
    return real, flags


@cache
def _git_programs(git: Path) -> tuple[Path, ...]:
    asked = subprocess.run(  # noqa: S603 (a program that was checked before)
        [git, "--exec-path"], env={}, capture_output=True, check=False, timeout=20
    )
    folder = Path(asked.stdout.decode(errors="replace").strip() or "/nonexistent")
    return tuple(folder / name for name in _GIT_PROGRAMS)


@cache
def _find_loaders() -> tuple[Path, ...]:
    return tuple(sorted({path for pattern in _LOADERS for path in Path("/").glob(pattern)}))
