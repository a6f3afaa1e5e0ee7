"""Commands, the network and child processes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from backburner.core.commands import Cage
from backburner.core.run import Turn
from backburner.core.tool_policy import ToolCall


class Launcher(Protocol):
    def write(
        self,
        path: Path,
        *,
        program: Path,
        keep: Iterable[str],
        writable: Sequence[Path],
        limit_report: Path,
        readable: Sequence[Path] = (),
        direct: Sequence[Path] = (),
    ) -> None:
        """Write a wrapper script for a program that ends with all its child processes.

        The program gets only the environment variables in `keep`, and may write to `writable`. It
        does not start if a link has become part of the path of a folder that is `direct`. If
        it is ended because it uses too much, the file `limit_report` says of what: `memory`,
        `processes`, `disk` or `files`.
        """


#: Characters of an output, a page or a file that the agent is shown at once.
MAX_SHOWN_CHARS = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """The output of a command and how it ended."""

    #: Both streams; long output is cut in the middle.
    output: str
    code: int | None
    signal: int | None = None
    #: Ended after the timeout.
    timed_out: bool = False
    #: Ended after too much output.
    output_exceeded: bool = False
    #: What it used too much of, in words for the agent: it was ended for that.
    exceeded: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandBounds:
    """The bounds of one command, which the kernel holds."""

    cage: Cage
    network: bool = False
    #: Also processes of others on this machine.
    sees_processes: bool = True
    #: A folder of attached files to read; `$ATTACHMENTS` names it.
    attachments: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptedCommand:
    """A command that ended with its process, after which files that are obeyed differ."""

    id: str
    turn: Turn
    line: str
    #: A call for each file that puts it back, with the difference since the command began.
    calls: Sequence[tuple[ToolCall, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderContent:
    """A folder on this machine, and the instructions for agents in it."""

    #: Without links.
    path: str
    #: By file.
    instructions: Mapping[str, str]


class Shell(Protocol):
    #: Why commands cannot be caged on this system; None: they can.
    cage_missing: str | None

    async def run(
        self, line: str, *, folder: Path, within: timedelta, bounds: CommandBounds
    ) -> CommandResult:
        """Run one shell line in a folder; all its processes have ended on return.

        Raises `ProcessFailed` if it could not be started.
        """


@dataclass(frozen=True, slots=True)
class SignInState:
    """The sign-in of a program: an account, or why it cannot be used."""

    program: str
    account: str = ""
    missing: str = ""
    hint: str = ""


class SignIns(Protocol):
    def describe(
        self, program: str, folder: Path | None = None, *, agents: Sequence[Path] = ()
    ) -> str:
        """Name the account of a program's sign-in, as far as its own settings tell. Blocking.

        `agents` are further folders that agents write. Raises `ProcessFailed` with the reason if
        it cannot be used in this folder.
        """

    async def run(
        self,
        program: str,
        arguments: Sequence[str],
        *,
        folder: Path,
        below: str,
        within: timedelta,
        cage: Cage,
        agents: Sequence[Path] = (),
    ) -> CommandResult:
        """Run a program with its own sign-in in a folder, at the path `below` it.

        All its processes have ended on return. Raises `ProcessFailed` if it could not be started,
        `BadRequest` for a path that is no folder there.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPage:
    """The content of a URL, as text."""

    #: After redirects.
    url: str
    status: int
    #: Such as `text/html`.
    content_type: str
    text: str
    truncated: bool = False


class Network(Protocol):
    async def fetch(self, url: str, *, other_hosts: bool = False) -> WebPage:
        """Fetch a URL as text. Redirects stay on the same host unless `other_hosts`.

        Raises `BadRequest` for an invalid URL, `NotAllowed` for an address that is not public,
        `ConnectionFailed` if the request failed.
        """
