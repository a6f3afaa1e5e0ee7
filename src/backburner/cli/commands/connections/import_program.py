"""A program to be imported: which file it is, what it would use, and how its user is asked."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from backburner.cli.output import printable
from backburner.core.connections.imports.client_server import ImportedProgram
from backburner.core.connections.imports.packages import pin, read_launch
from backburner.core.connections.imports.shown_program import find_paths, show_command
from backburner.core.connections.program import StdioProgram
from backburner.core.errors import BadRequest
from backburner.core.validation import escape_hidden
from backburner.core.work.folders import lies_in

#: Programs see these in any case.
_SYSTEM = tuple("/usr /bin /sbin /lib /lib32 /lib64 /libx32 /opt /nix/store".split())
#: In the folder of a project, above its scripts.
_PROJECT_FILES = ("package.json", "pyproject.toml")
_LEVELS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The options of the command for programs."""

    versions: dict[str, str]
    readable: Sequence[str] = ()
    writable: Sequence[str] = ()
    network: bool = False
    #: There is a terminal, and somebody to ask.
    may_ask: bool = False


def prepare(imported: ImportedProgram, choices: Choices) -> StdioProgram:
    """Find out exactly what would run. Raises `BadRequest` if that cannot be known."""
    launch = read_launch(imported.command)
    command = imported.command
    program = find_program(command[0])
    if launch is not None:
        versions = dict(choices.versions)
        if choices.may_ask:
            for package in launch.unpinned:
                if package.name not in versions:
                    versions[package.name] = _ask_version(imported.name, package.name)
        command = pin(launch, versions).command
    full = (program, *command[1:])
    readable = dict.fromkeys((*_used_by_program(Path(program)), *_used_paths(full[1:])))
    return StdioProgram(
        command=full,
        environment=imported.environment,
        # It fetches its package at each start: its home folder is made anew.
        network=choices.network or launch is not None,
        readable=(*readable, *map(_real, choices.readable)),
        writable=tuple(map(_real, choices.writable)),
    )


def show(imported: ImportedProgram, program: StdioProgram, source: str) -> str:
    """Describe all that would run, a word of the command a line.

    Values of variables are not shown, whatever they look like: a password can look like anything.
    """
    lines = [
        f"{imported.name}, a program on this machine ({source}):",
        *show_command(program.command),
        "It runs in a cage, with the network."
        if program.network
        else "It runs in a cage, without the network, which --network would give it.",
    ]
    if program.readable:
        lines.append(f"It may read {', '.join(program.readable)}.")
    if program.writable:
        lines.append(f"It may change {', '.join(program.writable)}.")
    if program.environment:
        lines.append("It is given these variables, with values that are not shown:")
        lines += [f"    {name}, from {imported.sources[name]}" for name in program.environment]
    # A path can have a line break, and must not look like a line of ours.
    return "\n".join(escape_hidden(line).replace("\n", "\\n") for line in lines)


def find_program(name: str) -> str:
    """Find a program as a shell would; its path begins with /."""
    found = shutil.which(name)
    if found is None:
        raise BadRequest(f"There is no program {name} on this machine.", hint="Install it first.")
    if not found.startswith("/"):
        raise BadRequest(f"{found} is found from the current folder.", hint="Write its whole path.")
    return found


def _ask_version(server: str, package: str) -> str:
    question = f"{server}: exact version of {package}, such as 1.2.3"
    version: str = click.prompt(printable(question), default="", show_default=False, err=True)
    return version.strip()


def _used_by_program(program: Path) -> Iterator[str]:
    """Yield what a program needs of its own installation, outside the system's folders."""
    for path in dict.fromkeys((program, program.resolve())):
        if any(lies_in(str(path), folder) for folder in _SYSTEM):
            continue
        above = path.parent.parent
        is_installation = path.parent.name == "bin" and above not in _shared_places()
        yield str((above if is_installation else path).resolve())


def _used_paths(words: Sequence[str]) -> Iterator[str]:
    for text in find_paths(words):
        path = Path(text).resolve()
        if not path.exists() or any(lies_in(str(path), folder) for folder in _SYSTEM):
            continue
        yield str(path if path.is_dir() else _find_project(path))


def _find_project(script: Path) -> Path:
    """Return the project that a script is part of, else the script alone."""
    for folder in script.parents[:_LEVELS]:
        if folder in _shared_places():
            break
        if any((folder / name).is_file() for name in _PROJECT_FILES):
            return folder
    return script


def _shared_places() -> tuple[Path, ...]:
    home = Path.home().resolve()
    return (Path("/"), home, home / ".local", *home.parents)


def _real(path: str) -> str:
    return str(Path(path).expanduser().resolve())
