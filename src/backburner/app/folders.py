"""Folders on this machine: its id, the places that no folder may hold, and what is in a folder."""

import asyncio
import os
import pwd
import re
import secrets
import socket
from collections.abc import Mapping
from pathlib import Path

from backburner.actions.deps import FolderRules
from backburner.core.errors import NotAllowed, NotFound
from backburner.core.work.folders import (
    INSTRUCTION_FILES,
    MAX_INSTRUCTION_CHARS,
    ForbiddenPlaces,
)
from backburner.ports import FolderContent
from backburner.private_file import write_private_file
from backburner.settings import Settings
from backburner.tools.files import read_start

MACHINE_ID = "machine-id"
#: Accounts with lower ids, apart from root, are not of people.
FIRST_PERSON = 1000
#: Below a home: other places of sign-ins begin with a dot.
_SIGN_INS = ("Library/Keychains",)


def folder_rules(settings: Settings) -> FolderRules:
    is_file = settings.database.get_secret_value().startswith("sqlite")
    return FolderRules(
        machine=load_machine_id(settings.data),
        machine_name=socket.gethostname(),
        may_be_added=is_file,
        templates=settings.folders,
        is_shared=settings.folders_shared,
        forbidden=find_forbidden_places(settings),
        read=lambda path: asyncio.to_thread(read_folder, path),
    )


def load_machine_id(data: Path) -> str:
    """Read the id of this machine from its data folder; the first start makes one."""
    file = data / MACHINE_ID
    known = file.read_text().strip() if file.exists() else ""
    if re.fullmatch(r"[0-9a-f]{16}", known):
        return known
    made = secrets.token_hex(8)
    write_private_file(file, [f"{made}\n".encode()], overwrite=True)
    return made


def find_forbidden_places(settings: Settings) -> ForbiddenPlaces:
    # Accounts of the system have folders such as / or /bin for a home.
    people = (entry for entry in pwd.getpwall() if not 0 < entry.pw_uid < FIRST_PERSON)
    homes = {str(Path.home().resolve()), *(entry.pw_dir for entry in people)} - {"/"}
    private: dict[Path | None, str] = {
        settings.data: "Backburner's data folder",
        settings.workspaces: "the private workspaces",
        settings.config: "Backburner's settings",
        settings.tls_key: "a key of the server",
        **{Path.home() / place: "a place of sign-ins" for place in _SIGN_INS},
    }
    return ForbiddenPlaces(
        homes=sorted(homes),
        private={
            os.path.realpath(path): meaning for path, meaning in private.items() if path is not None
        },
    )


def read_folder(path: str) -> FolderContent:
    """Find a folder without links in its path, and read its instructions."""
    real = os.path.realpath(path)
    if not Path(real).is_dir():
        raise NotFound(f"There is no folder {path}.", hint="Create it first.")
    if not os.access(real, os.R_OK | os.X_OK):
        raise NotAllowed(f"Backburner may not read {path}.", hint="Change its permissions.")
    return FolderContent(path=real, instructions=_read_instructions(Path(real)))


def _read_instructions(folder: Path) -> Mapping[str, str]:
    texts = {
        name: read_start(folder, name, limit=MAX_INSTRUCTION_CHARS) for name in INSTRUCTION_FILES
    }
    return {name: text for name, text in texts.items() if text.strip()}
