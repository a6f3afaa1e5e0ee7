"""Channels, commands, the network and child processes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol


class Channel(Protocol):
    async def send(self, target: str, text: str, *, key: str) -> str | None:
        """Send one part and give its id there. The same `key` is the same part, sent again.

        Raises `ChannelFailed`, permanent where trying again cannot help.
        """


class Launcher(Protocol):
    def write(
        self, path: Path, *, program: Path, keep: Iterable[str], writable: Sequence[Path]
    ) -> None:
        """Write a program that starts another one clean, and ends it with all that it started.

        It gets what is to be kept of its environment, and may write in some folders.
        """


#: How many characters of an output, a page or a file the agent is shown in one go.
MAX_SHOWN_CHARS = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """How a command ended: with a code or by a signal, by itself or not."""

    #: What it wrote on both streams; if that is long, beginning and end and what is left out.
    output: str
    code: int | None
    signal: int | None = None
    #: It took too long, and was ended.
    timed_out: bool = False
    #: It wrote too much, and was ended.
    output_exceeded: bool = False


class Shell(Protocol):
    async def run(self, line: str, *, folder: Path, within: timedelta) -> CommandResult:
        """Run one line in a folder; everything it started has ended when this does.

        Raises `ProcessFailed` where it could not be started.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPage:
    """What an address gave, as text."""

    #: Where it was found in the end.
    url: str
    status: int
    #: Such as `text/html`.
    content_type: str
    text: str
    #: There was more than this.
    truncated: bool = False


class Network(Protocol):
    async def fetch(self, url: str, *, other_hosts: bool = False) -> WebPage:
        """Get what an address gives, as text; follow where it points within the same host, or on.

        Raises `BadRequest` for what is no address to be fetched, `NotAllowed` where it leads into
        a network that is not public, `ConnectionFailed` for what did not work.
        """
