"""Finds commands that ended with their process, and what has changed since they began.

Only files that other programs obey are compared. Nobody can tell what a command has changed in them
from what their user has, so they are left as they are.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import structlog
from pydantic import Field

from backburner.core.errors import BackburnerError, NotFound
from backburner.core.tool_policy import COMMAND_TOOL, GrantMatch, ToolCall
from backburner.ports import InterruptedCommand, Offer
from backburner.tools.command_records import CommandRecord, left_behind
from backburner.tools.define import Arguments, define_tool
from backburner.tools.files import regain_rights
from backburner.tools.obeyed_files import ObeyedFiles

#: Begins the name of what is kept of one of the user's own folders.
KEPT_OF_FOLDER = "folder-"

_log = structlog.get_logger(__name__)


class UndoChange(Arguments):
    change: str = Field(description="The id of the change, from the question about it.")


def undo_change_offer(obeyed: ObeyedFiles) -> Offer:
    async def undo_change(arguments: UndoChange) -> str:
        """Put a file back to what it was before a command that was interrupted.

        Only after the user was asked about that change and has approved.
        """
        return await asyncio.to_thread(obeyed.undo, arguments.change)

    async def preview(arguments: Mapping[str, Any]) -> str:
        return await asyncio.to_thread(
            lambda: obeyed.find(str(arguments.get("change"))).show_undo()
        )

    return define_tool(
        "undo_change",
        UndoChange,
        undo_change,
        outside=True,
        preview=preview,
        grant_match=GrantMatch.NOTHING,
        belongs_to=COMMAND_TOOL,
    )


class InterruptedCommands:
    """Interrupted commands of all users whose workspaces are on this machine."""

    def __init__(self, workspaces: Path, kept: Path) -> None:
        self._workspaces = workspaces
        self._kept = kept
        #: Found at the last look. The processes of a command may outlive ours for some seconds.
        self._seen = frozenset[Path]()

    @asynccontextmanager
    async def take(self) -> AsyncIterator[Sequence[InterruptedCommand]]:
        """Yield them, and forget them afterwards unless there is an error."""
        records = await asyncio.to_thread(self._find)
        try:
            compared = await asyncio.to_thread(self._compare_all, records)
            yield [command for command in compared.values() if command is not None]
            for record in compared:
                await asyncio.to_thread(record.remove)
        finally:
            for record in records:
                record.release()

    def _find(self) -> Sequence[CommandRecord]:
        regain_rights(self._kept)
        kept = list(self._kept.iterdir()) if self._kept.exists() else []
        folders = [*kept, *(one for user in kept for one in user.glob(f"{KEPT_OF_FOLDER}*"))]
        found = list[CommandRecord]()
        for folder in folders:
            # What is wrong with one holds up no other one.
            try:
                found += left_behind(folder)
            except (BackburnerError, OSError) as error:
                _log.error("kept_changes.unreadable", folder=str(folder), error=repr(error))
        seen, self._seen = self._seen, frozenset(record.file for record in found)
        return [record for record in found if record.file in seen]

    def _compare_all(
        self, records: Sequence[CommandRecord]
    ) -> Mapping[CommandRecord, InterruptedCommand | None]:
        """Leave out what fails: it holds up nobody else, and is tried again at the next look."""
        compared = dict[CommandRecord, InterruptedCommand | None]()
        for record in records:
            try:
                compared[record] = self._compare(record)
            except (BackburnerError, OSError) as error:
                _log.warning("command_record.failed", file=str(record.file), error=repr(error))
        return compared

    def _compare(self, record: CommandRecord) -> InterruptedCommand | None:
        try:
            turn, line, before, folder = record.read()
        except (FileNotFoundError, ValueError, LookupError) as error:
            _log.warning("command_record.unreadable", file=str(record.file), error=repr(error))
            return None
        if folder is None:
            # The operator may have made it a link.
            folder = Path(os.path.realpath(self._workspaces / turn.user_id))
        obeyed = ObeyedFiles(folder, record.file.parent)
        tool = undo_change_offer(obeyed).tool
        calls = []
        with suppress(NotFound):
            calls = [
                (ToolCall(tool, {"change": change.id}), change.show(happened=True))
                for change in obeyed.keep_changes(before, source=record.file.stem)
            ]
        _log.info("command.interrupted", run=turn.run_id, changed_files=len(calls))
        if not calls:
            return None
        return InterruptedCommand(id=record.file.stem, turn=turn, line=line, calls=calls)
