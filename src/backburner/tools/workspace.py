"""The tools for the workspace, the folder in which the agent works for its user."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from pydantic import Field

from backburner.core.tool_policy import GrantMatch
from backburner.ports import CommandResult, Network, Offer, Shell, WebPage
from backburner.tools.define import Arguments, define_tool
from backburner.tools.files import MOST_LINES, read_lines, write_text
from backburner.tools.listing import list_files
from backburner.tools.workspace_paths import found

USUAL_SECONDS = 120
MOST_SECONDS = 600


class ReadFile(Arguments):
    path: str = Field(description="Path of the file, from the workspace.")
    offset: int = Field(default=1, ge=1, description="The first line to show, counted from 1.")
    limit: int = Field(default=MOST_LINES, ge=1, le=MOST_LINES, description="How many lines.")


class WriteFile(Arguments):
    path: str = Field(description="Path of the file, from the workspace. Folders are made.")
    content: str = Field(description="All that the file is to hold.")


class ListFiles(Arguments):
    path: str = Field(default=".", description="Path of the folder, from the workspace.")
    glob: str | None = Field(
        default=None,
        description="Which files, such as `*.txt` in this folder or `**/*.py` at any depth.",
    )


class RunCommand(Arguments):
    command: str = Field(min_length=1, description="The line to run.")
    timeout: int = Field(
        default=USUAL_SECONDS, ge=1, le=MOST_SECONDS, description="Seconds it may take."
    )


class FetchUrl(Arguments):
    url: str = Field(description="An address that begins with http:// or https://.")


def workspace_offers(folder: Path, shell: Shell, network: Network) -> Sequence[Offer]:
    """Offer the tools for one folder, which is made when it is first needed."""
    tools = _Workspace(folder.absolute(), shell, network)
    return (
        define_tool(
            "read_file", ReadFile, tools.read_file, free=True, read_only=True, outside=True
        ),
        define_tool("write_file", WriteFile, tools.write_file, free=True),
        define_tool(
            "list_files", ListFiles, tools.list_files, free=True, read_only=True, outside=True
        ),
        define_tool(
            "run_command",
            RunCommand,
            tools.run_command,
            outside=True,
            grant_match=GrantMatch.COMMAND,
        ),
        define_tool(
            "fetch_url",
            FetchUrl,
            tools.fetch_url,
            read_only=True,
            outside=True,
            grant_match=GrantMatch.HOST,
        ),
    )


class _Workspace:
    def __init__(self, folder: Path, shell: Shell, network: Network) -> None:
        self._folder = folder
        self._shell = shell
        self._network = network

    async def read_file(self, asked: ReadFile) -> str:
        """Read a text file of the workspace, at most 2,000 lines and 50 kB at once.

        If there is more, the result says from which offset on.
        """
        return await asyncio.to_thread(
            read_lines, self._folder, asked.path, offset=asked.offset, limit=asked.limit
        )

    async def write_file(self, asked: WriteFile) -> str:
        """Make a text file in the workspace, or replace all of one. At most 400 kB."""
        return await asyncio.to_thread(write_text, self._folder, asked.path, asked.content)

    async def list_files(self, asked: ListFiles) -> str:
        """List files and folders of the workspace with sizes and times, at most 500.

        Without a glob, what is in the one folder.
        """
        return await asyncio.to_thread(list_files, self._folder, asked.path, asked.glob)

    async def run_command(self, asked: RunCommand) -> str:
        """Run a line in bash in the workspace. Needs consent unless it was given before.

        It sees the workspace, $TMPDIR and the programs of the system, but no other files. There is
        nothing on stdin. Everything it starts ends with it, so nothing stays in the background. Of
        long output you get the beginning and the end, 50 kB in all; past 20 MB it is ended.
        """
        await asyncio.to_thread(self._make)
        ran = await self._shell.run(
            asked.command, folder=self._folder, within=timedelta(seconds=asked.timeout)
        )
        return _ran(ran, asked.timeout)

    async def fetch_url(self, asked: FetchUrl) -> str:
        """Get a public web page or file as text; of HTML, the text and where links lead.

        Needs consent unless it was given before, for each host. At most 2 MB are read and 50 kB
        shown, within 20 seconds. Images, archives and the like are refused.
        """
        return _fetched(await self._network.fetch(asked.url))

    def _make(self) -> None:
        with found(self._folder, "."):
            pass


def _ran(ran: CommandResult, seconds: int) -> str:
    gap = "" if ran.output.endswith("\n") or not ran.output else "\n"
    return f"{ran.output}{gap}[{_ending(ran, seconds)}]"


def _ending(ran: CommandResult, seconds: int) -> str:
    if ran.flooded:
        return "It was ended, because it wrote too much. Let it write to a file, or less."
    if ran.timed_out:
        return f"It was ended, because it took longer than {seconds} seconds."
    if ran.signal is not None:
        return f"It was ended by signal {ran.signal}."
    return f"Exit code {ran.code}."


def _fetched(page: WebPage) -> str:
    cut = "\n[There is more.]" if page.cut else ""
    return f"{page.url} ({page.kind}, status {page.status})\n\n{page.text}{cut}"
