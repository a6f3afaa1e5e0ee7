"""Sessions of Claude Code: lines of its transcript, stored as entries of a session.

Only the database keeps them. Before a turn, the entries are written to the transcript that the
program resumes; during it, the SDK mirrors what the program adds.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from claude_agent_sdk import SessionKey, SessionStoreEntry, project_key_for_directory

from backburner.core.errors import SessionGone

#: Set in a line that only reports a failed call of the model.
API_ERROR_FIELD = "isApiErrorMessage"
#: The result of a call once more, for programs that show it; images make it long.
COPY_FIELD = "toolUseResult"
#: Project, session and the path below it.
_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenEntries:
    entries: tuple[str, ...]
    #: The ids of tool uses whose results are among them.
    results: tuple[str, ...]


class TranscriptMirror:
    """A `SessionStore` that collects what the program adds to its transcripts."""

    def __init__(self) -> None:
        self._added: list[tuple[_Key, SessionStoreEntry]] = []

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        self._added += [(_read_key(key), entry) for entry in entries]

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        # Earlier entries are in the transcript in the program's own folder.
        added = [entry for other, entry in self._added if other == _read_key(key)]
        return added or None

    def take(self, *, ended: bool) -> "TakenEntries":
        """Take the entries that a session can be resumed from: all of them at the end of a turn,
        before that only those up to the last complete results of calls.
        """
        complete = len(self._added) if ended else _count_complete(self._added)
        taken, self._added = self._added[:complete], self._added[complete:]
        kept = [(key[2], entry) for key, entry in taken if not entry.get(API_ERROR_FIELD)]
        return TakenEntries(
            entries=tuple(dump_entry(subpath, entry) for subpath, entry in kept),
            results=tuple(use for _, entry in kept for use in _results_in(entry)),
        )


def _read_key(key: SessionKey) -> _Key:
    return key["project_key"], key["session_id"], key.get("subpath", "")


def dump_entry(subpath: str, entry: SessionStoreEntry) -> str:
    if any(block.get("type") == "image" for block in _blocks_in(entry.get(COPY_FIELD))):
        entry = {name: value for name, value in entry.items() if name != COPY_FIELD}  # type: ignore[assignment]  # An entry from the SDK.
    return json.dumps([subpath, entry], ensure_ascii=False, separators=(",", ":"))


def load_entry(text: str) -> tuple[str, SessionStoreEntry]:
    try:
        subpath, entry = json.loads(text)
    except ValueError:
        raise SessionGone from None
    if not isinstance(subpath, str) or not isinstance(entry, dict):
        raise SessionGone
    return subpath, entry  # type: ignore[return-value]  # An entry from the SDK.


def write_transcripts(config: Path, cwd: Path, session: str, memory: Sequence[str]) -> None:
    """Write a session where a program that is started in `cwd` looks for it."""
    folder = config / "projects" / project_key_for_directory(cwd)
    lines: dict[Path, list[str]] = {}
    for text in memory:
        subpath, entry = load_entry(text)
        file = folder / session / f"{subpath}.jsonl" if subpath else folder / f"{session}.jsonl"
        if not file.is_relative_to(folder) or ".." in file.parts:
            raise SessionGone
        lines.setdefault(file, []).append(json.dumps(entry, ensure_ascii=False))
    for file, entries in lines.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(entries) + "\n", encoding="utf-8")


def _count_complete(added: Iterable[tuple[_Key, SessionStoreEntry]]) -> int:
    """Count the entries up to the last result of a call after which no call is open."""
    open_calls, complete = set[str](), 0
    for count, (_, entry) in enumerate(added, 1):
        for block in _blocks(entry):
            match block.get("type"):
                case "tool_use":
                    open_calls.add(str(block.get("id")))
                case "tool_result":
                    open_calls.discard(str(block.get("tool_use_id")))
                    complete = complete if open_calls else count
    return complete


def _results_in(entry: SessionStoreEntry) -> Iterable[str]:
    results = (block for block in _blocks(entry) if block.get("type") == "tool_result")
    return (str(block.get("tool_use_id")) for block in results)


def _blocks(entry: Any) -> Iterable[dict[str, Any]]:
    message = entry.get("message")
    return _blocks_in(message.get("content") if isinstance(message, dict) else None)


def _blocks_in(content: Any) -> Iterable[dict[str, Any]]:
    blocks = content if isinstance(content, list) else ()
    return (block for block in blocks if isinstance(block, dict))
