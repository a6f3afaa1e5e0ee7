"""Folders: where they are, what instructions are in them, and who works there."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import PurePosixPath

from backburner.actions.work.folders import FolderUse
from backburner.core.ids import ConversationId
from backburner.core.work.folders import INSTRUCTION_FILES, instructions_digest
from backburner.web.off_loop import check_off_loop
from backburner.web.rendering import capitalize_first, load_words
from backburner.web.views.connect.line_diff import DiffLine, compare_lines

MAX_CONVERSATIONS = 5


@dataclass(frozen=True, slots=True)
class FileChange:
    name: str
    lines: Sequence[DiffLine]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFolder:
    #: Of its element; nothing in it is of the path.
    key: str
    path: str
    name: str
    facts: str
    is_here: bool
    from_settings: bool
    changes: Sequence[FileChange]
    #: Instructions were accepted before.
    has_accepted: bool
    digest: str
    conversations: Sequence[tuple[ConversationId, str]]
    has_more: bool


def show_folder(use: FolderUse) -> ShownFolder:
    state, words = use.state, load_words().folders
    folder, changed = state.folder, state.changed
    facts = [
        words.on.format(machine=folder.machine_name) if folder.machine_name else words.shared,
        words.read_only if folder.read_only else words.writes,
        words.settings if folder.from_settings else "",
    ]
    names = ", ".join(folder.instructions)
    facts.append(words.instructions.format(files=names) if names else words.no_instructions)
    shown = list(use.conversations.items())
    return ShownFolder(
        key=sha256(folder.path.encode()).hexdigest()[:16],
        path=folder.path,
        name=PurePosixPath(folder.path).name,
        facts=capitalize_first(" · ".join(fact for fact in facts if fact)),
        is_here=state.is_here,
        from_settings=folder.from_settings,
        changes=[] if changed is None else list(compare(folder.instructions, changed)),
        has_accepted=bool(folder.instructions),
        digest="" if changed is None else instructions_digest(changed),
        conversations=shown[:MAX_CONVERSATIONS],
        has_more=len(shown) > MAX_CONVERSATIONS,
    )


def compare(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[FileChange]:
    """Compare the instructions of each file; all of what has changed is shown."""
    check_off_loop()
    for name in dict.fromkeys([*INSTRUCTION_FILES, *before, *after]):
        old, new = before.get(name, ""), after.get(name, "")
        if old != new:
            yield FileChange(name, list(compare_lines(old.splitlines(), new.splitlines())))
