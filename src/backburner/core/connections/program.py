"""Programs that the operator has defined as MCP servers."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioProgram:
    """An MCP server that the operator has defined as a program on this machine."""

    command: tuple[str, ...]
    #: Complete, but for HOME, LANG, PATH and TMPDIR, which it has anyway.
    environment: Mapping[str, str] = field(default_factory=dict)
    network: bool = False
    #: Folders that it may read, and write.
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
