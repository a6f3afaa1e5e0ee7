"""Tools for the workspace: the folder in which the agent works for its user."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import structlog
from pydantic import Field

from backburner.core.commands import Cage
from backburner.core.content.file import DEFAULT_LIMITS, FileReference, format_size
from backburner.core.conversation import WorkFolder
from backburner.core.errors import BackburnerError, LimitReached, NotAllowed
from backburner.core.obeyed_files import is_obeyed
from backburner.core.run import Turn
from backburner.core.tool_policy import (
    COMMAND_TOOL,
    HAND_OVER_TOOL,
    WRITING_TOOL,
    GrantMatch,
    ToolCall,
)
from backburner.ports import (
    CommandBounds,
    CommandResult,
    Network,
    Offer,
    Shell,
    SignIns,
    ToolResult,
    WebPage,
)
from backburner.tools.command_records import (
    CommandRecord,
    FolderInUse,
    lock_records,
    record_command,
)
from backburner.tools.content.attachments import AttachmentFolder, split_path
from backburner.tools.define import Arguments, define_tool
from backburner.tools.files import (
    MAX_LINES,
    read_bytes,
    read_image,
    read_lines,
    regain_rights,
    write_text,
)
from backburner.tools.interrupted_commands import undo_change_offer
from backburner.tools.listing import list_files
from backburner.tools.obeyed_files import (
    KeptChange,
    ObeyedFiles,
    show_difference,
    show_path,
)
from backburner.tools.signed_in import WatchedFolder, signed_in_offers
from backburner.tools.workspace_paths import PASS_FOLDER, explain_errors, open_root

T = TypeVar("T")
#: Keeps bytes under a name, of at most so many megabytes as are allowed.
KeepFile = Callable[[bytes, str], Awaitable[FileReference]]

FETCH_TOOL = "fetch_url"
#: Of one run.
MAX_HANDED_OVER = 20
#: Of files that were renamed.
MAX_LISTED = 10
DEFAULT_TIMEOUT_SECONDS = 120
MAX_TIMEOUT_SECONDS = 600
#: For other commands in the folder.
MAX_WAIT_SECONDS = 120
_LOOK_SECONDS = 0.25
#: A scan may take long, or wait for another one of its folder: nothing else waits for it.
_scans = ThreadPoolExecutor(4, thread_name_prefix="scans")

_log = structlog.get_logger(__name__)


class ReadFile(Arguments):
    path: str = Field(description="Path of the file, from the workspace.")
    offset: int = Field(default=1, ge=1, description="The first line to show, counted from 1.")
    limit: int = Field(
        default=MAX_LINES, ge=1, le=MAX_LINES, description="The maximum number of lines."
    )


class WriteFile(Arguments):
    path: str = Field(
        description="Path of the file, from the workspace. Missing folders are created."
    )
    content: str = Field(description="The whole content of the file.")


class ListFiles(Arguments):
    path: str = Field(default=".", description="Path of the folder, from the workspace.")
    glob: str | None = Field(
        default=None,
        description="A pattern, such as `*.txt` in this folder or `**/*.py` at any depth.",
    )


class RunCommand(Arguments):
    command: str = Field(min_length=1, description="The command line to run.")
    timeout: int = Field(
        default=DEFAULT_TIMEOUT_SECONDS,
        ge=1,
        le=MAX_TIMEOUT_SECONDS,
        description="Timeout in seconds.",
    )
    network: bool = Field(
        default=False,
        description="Whether it needs the network, also to listen on this machine. Asks the user.",
    )


class KeepChange(Arguments):
    change: str = Field(description="The id of the change, from the result of run_command.")


async def no_programs() -> frozenset[str]:
    return frozenset()


async def no_folders() -> Sequence[Path]:
    return ()


@dataclass(frozen=True, slots=True)
class CommandTerms:
    #: The run whose commands they are.
    turn: Turn
    cage: Cage
    #: Whether there are other users, whose processes are none of this one's business.
    has_others: Callable[[], Awaitable[bool]]
    #: The user's own folder in which they run; None: the private workspace.
    folder: WorkFolder | None = None
    #: Whether programs may use the sign-ins of the user.
    may_sign_in: bool = False
    #: Programs whose sign-in a lasting grant of the conversation is for.
    signed_in: Callable[[], Awaitable[frozenset[str]]] = no_programs
    #: All folders of the user that agents work in.
    folders: Callable[[], Awaitable[Sequence[Path]]] = no_folders
    #: The files of the messages; None: there is no place for them.
    attachments: AttachmentFolder | None = None
    #: Keeps a file for the user; None: agents cannot hand over any.
    keep: KeepFile | None = None
    max_file_bytes: int = DEFAULT_LIMITS.file


class HandOver(Arguments):
    path: str = Field(description="Path of the file, from the workspace.")
    name: str = Field(
        default="", max_length=200, description="Its name for the user; by default its own."
    )


class FetchUrl(Arguments):
    url: str = Field(description="An address that begins with http:// or https://.")


def workspace_offers(
    folder: Path,
    kept: Path,
    shell: Shell,
    network: Network,
    terms: CommandTerms,
    sign_ins: SignIns | None = None,
) -> Sequence[Offer]:
    """Return the tools for one folder; the private workspace is created when it is first needed.

    Changes to files that other programs obey are kept in another one.
    """
    if terms.folder is None:
        # The operator may have made it a link.
        folder = Path(os.path.realpath(folder))
    may_write = terms.folder is None or not terms.folder.read_only
    return [
        _prepare(offer, folder, terms)
        for offer in _folder_offers(folder, kept, shell, network, terms, sign_ins)
        if may_write or offer.tool.name != WRITING_TOOL
    ]


def _prepare(offer: Offer, folder: Path, terms: CommandTerms) -> Offer:
    """Mark a tool for the check of the gate, or create the private workspace before each call."""
    if offer.tool.name == FETCH_TOOL:
        return offer
    if terms.folder is not None:
        return replace(offer, in_folder=True)

    async def run(arguments: Mapping[str, Any]) -> ToolResult:
        try:
            await asyncio.to_thread(_make_private, folder)
        except BackburnerError as error:
            return ToolResult(str(error), failed=True)
        return await offer.run(arguments)

    return replace(offer, run=run)


def _make_private(folder: Path) -> None:
    with explain_errors(str(folder)):
        # Each of them private: `parents` alone would make the outer one for everybody.
        if not folder.parent.exists():
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)


def check_folder(folder: Path, *, removed: bool) -> None:
    """Check that a folder is still the one that its user added."""
    if removed:
        raise NotAllowed(
            f"The folder {folder} was removed from those that agents may use.",
            hint="Tell the user: `backburner folders add` adds it again.",
        )
    with explain_errors(str(folder)):
        os.close(open_root(folder, PASS_FOLDER))


def _folder_offers(
    folder: Path,
    kept: Path,
    shell: Shell,
    network: Network,
    terms: CommandTerms,
    sign_ins: SignIns | None,
) -> Sequence[Offer]:
    tools = _Workspace(ObeyedFiles(folder, kept), shell, network, terms)
    missing = shell.cage_missing
    # Where nothing holds other commands, they could take a sign-in.
    may_write = terms.folder is None or not terms.folder.read_only
    may_sign_in = terms.may_sign_in and missing is None and may_write
    return (
        *(signed_in_offers(tools.watched_folder(), sign_ins) if sign_ins and may_sign_in else ()),
        define_tool(
            "read_file", ReadFile, tools.read_file, free=True, read_only=True, outside=True
        ),
        define_tool(
            "write_file",
            WriteFile,
            tools.write_file,
            preview=tools.preview_write,
            free=True,
            grant_match=GrantMatch.NOTHING,
            guards_files=True,
        ),
        define_tool(
            "list_files", ListFiles, tools.list_files, free=True, read_only=True, outside=True
        ),
        define_tool(
            COMMAND_TOOL,
            RunCommand,
            tools.run_command,
            outside=True,
            grant_match=GrantMatch.COMMAND,
            cage=None if missing else terms.cage,
            cage_missing=missing or "",
        ),
        tools.keep_change_offer,
        undo_change_offer(tools.obeyed),
        *tools.hand_over_offers(),
        define_tool(
            FETCH_TOOL,
            FetchUrl,
            tools.fetch_url,
            read_only=True,
            outside=True,
            grant_match=GrantMatch.HOST,
        ),
    )


class _Workspace:
    def __init__(
        self, obeyed: ObeyedFiles, shell: Shell, network: Network, terms: CommandTerms
    ) -> None:
        self.obeyed = obeyed
        self._folder = obeyed.folder
        self._terms = terms
        self.keep_change_offer = define_tool(
            "keep_change",
            KeepChange,
            self.keep_change,
            outside=True,
            preview=self.preview_change,
            grant_match=GrantMatch.NOTHING,
            belongs_to=COMMAND_TOOL,
        )
        self._shell = shell
        self._network = network
        self._handed_over = 0

    def hand_over_offers(self) -> Sequence[Offer]:
        if self._terms.keep is None:
            return ()
        return (
            define_tool(
                HAND_OVER_TOOL,
                HandOver,
                self.hand_over,
                free=True,
                # It keeps a copy: made again, it is the same file.
                read_only=True,
                belongs_to=WRITING_TOOL,
            ),
        )

    async def _find(self, path: str) -> tuple[Path, str]:
        """Return the folder that a path is in, and the path from there."""
        attached = split_path(path)
        if attached is None or self._terms.attachments is None:
            return self._folder, path
        return await self._terms.attachments.require(), attached

    async def read_file(self, arguments: ReadFile) -> str | ToolResult:
        """Read a text file of the workspace, at most 2,000 lines and 50 kB at once.

        If there is more, the result names the offset to continue with. Attached images are shown.
        """
        folder, path = await self._find(arguments.path)
        if folder != self._folder:
            image = await asyncio.to_thread(read_image, folder, path)
            if image is not None:
                return ToolResult("", blobs=(image,))
        return await asyncio.to_thread(
            read_lines, folder, path, offset=arguments.offset, limit=arguments.limit
        )

    async def hand_over(self, arguments: HandOver) -> ToolResult:
        """Give the user a file: it is attached to your message, and they can download it.

        Use it for results that are files, such as reports, tables and images.
        """
        keep = self._terms.keep
        if keep is None or self._handed_over >= MAX_HANDED_OVER:
            raise LimitReached(
                f"Limit reached: {MAX_HANDED_OVER} files of a run.", hint="Pack them into one."
            )
        folder, path = await self._find(arguments.path)
        data = await asyncio.to_thread(read_bytes, folder, path, limit=self._terms.max_file_bytes)
        file = await keep(data, arguments.name.strip() or path)
        self._handed_over += 1
        size = format_size(file.size)
        return ToolResult(
            f"Handed over: {file.name}, {file.media_type}, {size}.", handed_over=(file,)
        )

    async def write_file(self, arguments: WriteFile) -> str:
        """Create a text file in the workspace, or replace its content. At most 400 kB.

        Files that other programs obey, such as .envrc or git hooks, need approval.
        """
        if split_path(arguments.path) is not None and self._terms.attachments is not None:
            raise NotAllowed("Attached files can only be read.", hint="Write to the workspace.")
        return await _scan_in_thread(self._write, arguments.path, arguments.content)

    async def list_files(self, arguments: ListFiles) -> str:
        """List files and folders of the workspace with sizes and times, at most 500.

        Without a glob, the contents of one folder.
        """
        folder, path = await self._find(arguments.path)
        return await asyncio.to_thread(list_files, folder, path, arguments.glob)

    async def preview_write(self, arguments: Mapping[str, Any]) -> str:
        write = WriteFile.model_validate(dict(arguments))

        def show() -> str:
            difference = show_difference(self.obeyed.read_text(write.path), write.content)
            return f"Write the file {show_path(write.path)}:\n{difference}"

        return await asyncio.to_thread(show)

    async def run_command(self, arguments: RunCommand) -> ToolResult:
        """Run a command line in bash, in the workspace. With network it needs approval.

        It can use the workspace and the programs of the system, but no other files. $HOME and
        $TMPDIR are empty, and removed afterwards. Stdin is empty. Background processes end with it.
        Of long output you get the beginning and the end, 50 kB in all; a command that writes more
        than 20 MB is ended.
        """

        within = timedelta(seconds=arguments.timeout)
        given = self._terms.attachments
        attachments = None if given is None else await given.open()

        async def run() -> CommandResult:
            return await self._shell.run(
                arguments.command,
                folder=self._folder,
                within=within,
                bounds=CommandBounds(
                    cage=self._terms.cage,
                    network=arguments.network,
                    sees_processes=not await self._terms.has_others(),
                    attachments=attachments,
                ),
            )

        return await self._run_watched(
            run,
            lambda result: _describe_run(result, within) + self._hint(result, arguments),
            arguments.command,
            network=arguments.network,
        )

    def watched_folder(self) -> WatchedFolder:
        return WatchedFolder(
            folder=self._folder,
            cage=self._terms.cage,
            has_others=self._terms.has_others,
            signed_in=self._terms.signed_in,
            folders=self._terms.folders,
            run_watched=self._run_watched,
            describe=_describe_run,
        )

    async def _run_watched(
        self,
        run: Callable[[], Awaitable[CommandResult]],
        describe: Callable[[CommandResult], str],
        line: str,
        **kind: bool,
    ) -> ToolResult:
        """Run a command, and put back the files that other programs obey.

        `kind` says beside which others it may run; see `record_command`.
        """
        record = await self._wait_to_begin(line, **kind)
        try:
            result = await run()
        finally:
            # Also if the run is cancelled, however often, and though this may have to wait.
            changes = await asyncio.shield(_scan_in_thread(self._end, record))
        asks = await asyncio.to_thread(self._ask, changes)
        return ToolResult(describe(result) + _describe_changes(changes), asks=asks)

    async def keep_change(self, arguments: KeepChange) -> str:
        """Make a change again that a command made to a file which other programs obey.

        Such changes are put back after the command, because they need approval.
        """
        return await asyncio.to_thread(self.obeyed.make_again, arguments.change)

    async def preview_change(self, arguments: Mapping[str, Any]) -> str:
        return await asyncio.to_thread(
            lambda: self.obeyed.find(str(arguments.get("change"))).show()
        )

    async def fetch_url(self, arguments: FetchUrl) -> ToolResult:
        """Fetch a public web page or file as text; of HTML, the text and the link targets.

        Needs approval for each host unless already granted. At most 2 MB are read and 50 kB shown,
        within 20 seconds. Images, archives and other binary files are refused.
        """
        try:
            return ToolResult(_describe_page(await self._network.fetch(arguments.url)))
        except BackburnerError as error:
            # It may quote the server, such as the target of a redirect.
            return ToolResult(str(error), failed=True, outside=True)

    def _hint(self, result: CommandResult, arguments: RunCommand) -> str:
        if result.code == 0 or arguments.network or self._shell.cage_missing is not None:
            return ""
        network = "It had no network. If it needs it, run it with network; that asks the user."
        writing = " It could not write in the workspace." if self._terms.cage is Cage.LOOK else ""
        return f"\n[{network}{writing}]"

    def _write(self, path: str, content: str) -> str:
        if is_obeyed(path):
            written = self.obeyed.write_approved(path, content)
        else:
            written = write_text(self._folder, path, content, guard=self.obeyed)
        verb = "Created" if written.is_new else "Replaced"
        return f"{verb} {path}: {len(written.data):,} bytes."

    async def _wait_to_begin(self, line: str, **kind: bool) -> CommandRecord | None:
        """Begin a command once none runs that it must not run beside."""
        waited = 0.0
        while True:
            try:
                return await _scan_in_thread(partial(self._begin, line, **kind))
            except FolderInUse:
                if waited >= MAX_WAIT_SECONDS:
                    raise
            await asyncio.sleep(_LOOK_SECONDS)
            waited += _LOOK_SECONDS

    def _begin(self, line: str, **kind: bool) -> CommandRecord | None:
        regain_rights(self._folder)
        if self._only_looks and not any(kind.values()):
            return None
        kept, scan, own = self.obeyed.kept, self.obeyed.scan, self._terms.folder
        folder = None if own is None else own.path
        return record_command(kept, scan, self._terms.turn, line, folder=folder, **kind)

    @property
    def _only_looks(self) -> bool:
        """Whether commands cannot change anything."""
        return self._terms.cage is Cage.LOOK and self._shell.cage_missing is None

    def _end(self, record: CommandRecord | None) -> Sequence[KeptChange]:
        if record is None:
            return ()
        with ExitStack() as locked:
            try:
                locked.enter_context(lock_records(self.obeyed.kept))
            except BackburnerError as error:
                # Nothing that was planted stays in force because something went wrong.
                _log.error("command_record.not_locked", error=repr(error))
            changes = () if self._only_looks else self.obeyed.put_back(record.before)
            try:
                record.remove()
            except OSError as error:
                # It is taken for one left behind, after which nothing has changed.
                _log.error("command_record.not_removed", error=repr(error))
                record.release()
        return changes

    def _ask(self, changes: Sequence[KeptChange]) -> Sequence[tuple[ToolCall, str]]:
        tool = self.keep_change_offer.tool
        return [
            (ToolCall(tool, {"change": change.id}), change.show())
            for change in changes
            if change.is_kept
        ]


async def _scan_in_thread(call: Callable[..., T], *arguments: Any) -> T:
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_scans, partial(copy_context().run, call, *arguments))


def _describe_run(result: CommandResult, within: timedelta) -> str:
    gap = "" if result.output.endswith("\n") or not result.output else "\n"
    return f"{result.output}{gap}[{_describe_end(result, within)}]"


def _describe_changes(changes: Sequence[KeptChange]) -> str:
    if not changes:
        return ""
    kept = [f"{change.path} ({change.id})" for change in changes if change.is_kept]
    moved = [f"{change.path} is now {change.aside}" for change in changes if not change.is_kept]
    text = ""
    if kept:
        text += (
            f"\n[Put back, because other programs obey these files: {', '.join(kept)}. The user is"
            " asked. After a yes, call keep_change.]"
        )
    if moved:
        more = len(moved) - MAX_LISTED
        listed = "; ".join(moved[:MAX_LISTED]) + (f"; and {more:,} more" if more > 0 else "")
        text += (
            "\n[Renamed, because other programs obey these files, and they could not be kept:"
            f" {listed}. Tell the user.]"
        )
    return text


def _describe_end(result: CommandResult, within: timedelta) -> str:
    if result.output_exceeded:
        return "Ended: it wrote too much output. Redirect the output to a file, or reduce it."
    if result.exceeded:
        return f"Ended: {result.exceeded}."
    if result.timed_out:
        return f"Ended: timeout after {within.total_seconds():.0f} seconds."
    if result.signal is not None:
        return f"Ended by signal {result.signal}."
    return f"Exit code {result.code}."


def _describe_page(page: WebPage) -> str:
    cut = "\n[The page is longer; the rest is left out.]" if page.truncated else ""
    return f"{page.url} ({page.content_type}, status {page.status})\n\n{page.text}{cut}"
