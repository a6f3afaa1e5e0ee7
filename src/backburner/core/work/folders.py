"""Folders: the users' own projects, in which conversations may work.

A folder is bound to the machine on which it was added, unless all machines share it. Folders of one
user never overlap, so two runs that write in different folders never meet.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from backburner.core.conversation import WorkFolder
from backburner.core.errors import BadRequest, Conflict
from backburner.core.validation import canonical_json, check_text

MAX_FOLDERS = 50
MAX_PATH_CHARS = 1_000
#: Read by agents that work in the folder, in this order.
INSTRUCTION_FILES = ("AGENTS.md", "CLAUDE.md")
#: Of each such file; the rest is left out.
MAX_INSTRUCTION_CHARS = 24_000

#: Folders of the system; those below them are too.
SYSTEM_FOLDERS = frozenset(
    "bin boot dev etc lib lib32 lib64 libx32 proc root run sbin snap sys usr System Library".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder that its user has added, or that the settings give them."""

    path: str
    read_only: bool
    #: The id of its machine; empty: all machines share it.
    machine: str
    #: In words.
    machine_name: str
    created_at: datetime
    from_settings: bool = False
    #: The instructions that its user has accepted, by file.
    instructions: Mapping[str, str] = field(default_factory=dict)
    #: Digest of changed instructions that its user was told about.
    reported: str = ""

    @property
    def for_work(self) -> WorkFolder:
        return WorkFolder(self.path, machine=self.machine, read_only=self.read_only)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForbiddenPlaces:
    """Paths on this machine that no folder may contain or lie in."""

    #: Home folders; folders below them may be added.
    homes: Sequence[str] = ()
    #: By path, a word for each: the data folder, settings, sign-ins.
    private: Mapping[str, str] = field(default_factory=dict)


def check_machine_id(machine: str) -> str:
    if re.fullmatch(r"[0-9a-z]*", machine) is None:
        raise BadRequest("The id of a machine has letters and digits only.")
    return machine


def lies_in(path: str, folder: str) -> bool:
    """Return whether a path without links is a folder, or lies in it."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def overlap(path: str, other: str) -> bool:
    return lies_in(path, other) or lies_in(other, path)


def check_place(path: str, forbidden: ForbiddenPlaces) -> None:
    """Refuse a folder that is too much, or that commands must never see. `path` has no links."""
    check_text("The folder", path, limit=MAX_PATH_CHARS)
    first = path.strip("/").split("/")[0]
    if not first:
        raise BadRequest("/ is the whole machine.", hint="Add the folder of one project.")
    for home in forbidden.homes:
        if lies_in(home, path):
            raise BadRequest(
                f"{path} is or contains a home folder, with sign-ins and private files.",
                hint="Add the folder of one project in it.",
            )
    own_home = next((home for home in forbidden.homes if lies_in(path, home)), None)
    if own_home is not None and path.removeprefix(own_home).startswith("/."):
        raise BadRequest(
            f"{path} is where programs keep their settings and sign-ins.",
            hint="Add the folder of a project.",
        )
    if own_home is None and first in SYSTEM_FOLDERS:
        raise BadRequest(
            f"{path} is a folder of the system.", hint="Add the folder of one project."
        )
    for private, meaning in forbidden.private.items():
        if lies_in(path, private):
            raise BadRequest(f"{path} lies in {meaning}.", hint="Add another folder.")
        if lies_in(private, path):
            raise BadRequest(
                f"{path} contains {meaning}, which agents must not see.",
                hint="Add a folder below it.",
            )


def check_overlap(path: str, others: Iterable[Folder], machine: str) -> None:
    """Refuse a folder in another one of the same machine, or around it."""
    for other in others:
        is_elsewhere = bool(machine and other.machine) and other.machine != machine
        if is_elsewhere or other.path == path:
            continue
        if lies_in(path, other.path):
            raise Conflict(
                f"{path} lies in {other.path}, which was added.",
                hint=f"Use that folder, or remove it: `backburner folders remove {other.path}`.",
            )
        if lies_in(other.path, path):
            raise Conflict(
                f"{path} contains {other.path}, which was added.",
                hint=f"Remove that first: `backburner folders remove {other.path}`.",
            )


def instructions_digest(instructions: Mapping[str, str]) -> str:
    text = canonical_json(dict(instructions))
    return hashlib.sha256(text.encode()).hexdigest()
