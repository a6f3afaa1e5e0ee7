"""What the agent's program remembers: lines of a transcript, kept as entries of a session.

The database is the only memory. Before a turn the entries are written where the program looks for
them; during it, what the program adds comes back through the SDK's way to mirror it.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from claude_agent_sdk import SessionKey, SessionStoreEntry, project_key_for_directory

from backburner.core.errors import SessionGone

#: A line that only says that a call of the model failed.
FAILED = "isApiErrorMessage"


class Mirror:
    """Gathers what the program adds to its transcripts, until it is taken: a `SessionStore`."""

    def __init__(self) -> None:
        self._added: list[tuple[str, SessionStoreEntry]] = []

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        self._added += [(key.get("subpath", ""), entry) for entry in entries]

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        # Whatever was there before has been written to the program's own folder.
        found = [entry for subpath, entry in self._added if subpath == key.get("subpath", "")]
        return found or None

    def take(self, *, ended: bool) -> tuple[str, ...]:
        """Take what the session can go on from: all of it at the end of a turn, before that only
        what was said up to the results of calls.
        """
        good = len(self._added) if ended else _closed(self._added)
        taken, self._added = self._added[:good], self._added[good:]
        return tuple(to_memory(*one) for one in taken if not one[1].get(FAILED))


def to_memory(subpath: str, entry: SessionStoreEntry) -> str:
    return json.dumps([subpath, entry], ensure_ascii=False, separators=(",", ":"))


def from_memory(text: str) -> tuple[str, SessionStoreEntry]:
    """Read an entry of a session; what cannot be read is gone."""
    try:
        subpath, entry = json.loads(text)
    except ValueError:
        raise SessionGone from None
    if not isinstance(subpath, str) or not isinstance(entry, dict):
        raise SessionGone
    return subpath, entry  # type: ignore[return-value]  # What was taken from the SDK.


def write_transcripts(config: Path, cwd: Path, session: str, memory: Sequence[str]) -> None:
    """Put a session where a program that is started in `cwd` looks for it."""
    folder = config / "projects" / project_key_for_directory(cwd)
    lines: dict[Path, list[str]] = {}
    for text in memory:
        subpath, entry = from_memory(text)
        file = folder / session / f"{subpath}.jsonl" if subpath else folder / f"{session}.jsonl"
        if not file.is_relative_to(folder) or ".." in file.parts:
            raise SessionGone
        lines.setdefault(file, []).append(json.dumps(entry, ensure_ascii=False))
    for file, found in lines.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(found) + "\n", encoding="utf-8")


def _closed(added: Iterable[tuple[str, SessionStoreEntry]]) -> int:
    """Count the entries up to the last result of a call after which no other waits for its own."""
    open_calls, good = set[str](), 0
    for count, (_, entry) in enumerate(added, 1):
        for block in _blocks(entry):
            match block.get("type"):
                case "tool_use":
                    open_calls.add(str(block.get("id")))
                case "tool_result":
                    open_calls.discard(str(block.get("tool_use_id")))
                    good = good if open_calls else count
    return good


def _blocks(entry: Any) -> Iterable[dict[str, Any]]:
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return (block for block in content or () if isinstance(block, dict))
