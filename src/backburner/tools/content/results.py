"""Tool for what was too long for the result of a call, or was not text: it was kept as a file."""

from collections.abc import Sequence

from pydantic import Field

from backburner.actions.deps import Deps
from backburner.actions.work import files
from backburner.core.content.file import StoredFile, format_size
from backburner.core.content.image import RASTER_TYPES
from backburner.core.errors import NotFound
from backburner.core.run import Turn
from backburner.core.tool_policy import RESULT_TOOL
from backburner.ports import MAX_SHOWN_CHARS, Blob, Offer, ToolResult
from backburner.tools.define import Arguments, define_tool


class ReadResult(Arguments):
    file: str = Field(description="The file, as the result names it.")
    offset: int = Field(default=0, ge=0)


def result_offers(deps: Deps, turn: Turn) -> Sequence[Offer]:
    tools = _Tools(deps, turn)
    return (
        define_tool(RESULT_TOOL, ReadResult, tools.read, free=True, read_only=True, outside=True),
    )


class _Tools:
    def __init__(self, deps: Deps, turn: Turn) -> None:
        self._deps = deps
        self._turn = turn

    async def read(self, arguments: ReadResult) -> ToolResult:
        """Read on in a result that was cut, or look again at an image that was kept."""
        user, here = self._turn.user_id, self._turn.conversation_id
        try:
            file = await files.find(self._deps, user, arguments.file, here)
            if file.media_type in RASTER_TYPES:
                return await self._show(file)
            part = await files.read_text(
                self._deps, user, file, offset=arguments.offset, limit=MAX_SHOWN_CHARS
            )
        except NotFound:
            raise NotFound(f"There is no file {arguments.file!r} here.") from None
        if part.next_offset is None:
            return ToolResult(part.text or "[The file ends before this offset.]")
        note = f"[{format_size(file.size - part.next_offset)} follow: offset {part.next_offset}.]"
        return ToolResult(f"{part.text}\n{note}")

    async def _show(self, file: StoredFile) -> ToolResult:
        data = await files.load_bytes(self._deps.store, self._turn.user_id, file.digest)
        if data is None:
            raise NotFound
        return ToolResult("", blobs=(Blob(data, file.media_type, file.name),))
