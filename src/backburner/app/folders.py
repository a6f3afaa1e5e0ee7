"""Folders on this machine: its id, the places that no folder may hold, and what is in a folder."""

import asyncio
import os
import pwd
import re
import secrets
import socket
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from backburner.actions.deps import FolderRules
from backburner.core.errors import BadRequest, BadSetting, NotAllowed, NotFound
from backburner.core.work.folder_templates import check_templates
from backburner.core.work.folders import (
    INSTRUCTION_FILES,
    MAX_INSTRUCTION_CHARS,
    ForbiddenPlaces,
)
from backburner.ports import FolderContent
from backburner.private_file import write_private_file
from backburner.process.sign_ins.sign_in import find_sign_in_places
from backburner.settings import Settings, find_secret_files
from backburner.store.lifecycle.opening import file_of
from backburner.tools.files import read_start

MACHINE_ID = "machine-id"
#: As the kernel allows.
MAX_LINKS = 40
#: Accounts with lower ids, apart from root, are not of people.
FIRST_PERSON = 1000
#: Below a home: other places of sign-ins begin with a dot.
_SIGN_INS = ("Library/Keychains",)


def folder_rules(settings: Settings) -> FolderRules:
    """Build the rules for folders; refuse a setting that gives folders which nobody may have."""
    forbidden = check_given_folders(settings)
    is_file = settings.database.get_secret_value().startswith("sqlite")
    return FolderRules(
        machine=load_machine_id(settings.data),
        machine_name=socket.gethostname(),
        may_be_added=is_file,
        templates=settings.folders,
        is_shared=settings.folders_shared,
        forbidden=forbidden,
        read=lambda path: asyncio.to_thread(read_folder, path),
        of_agents=lambda: asyncio.to_thread(find_places_of_agents, settings),
        trace=lambda path: asyncio.to_thread(trace_path, path),
    )


def check_given_folders(settings: Settings) -> ForbiddenPlaces:
    """Check the folders that the settings give to accounts; return the places to keep out of."""
    forbidden = find_forbidden_places(settings)
    for template in settings.folders:
        parts = PurePosixPath(template).parts
        parent = PurePosixPath(*parts[: next(i for i, part in enumerate(parts) if "{" in part)])
        real = os.path.realpath(parent)
        if real != str(parent):
            # Tools refuse a folder that is reached through a link: somebody may have placed it.
            rest = PurePosixPath(template).relative_to(parent)
            raise BadSetting(
                f"The setting folders cannot have {template}: {parent} leads to {real}.",
                hint=f"Write {PurePosixPath(real) / rest}.",
            )
    check_templates(settings.folders, forbidden)
    return forbidden


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
    sign_ins = [*(Path.home() / place for place in _SIGN_INS), *find_sign_in_places(os.environ)]
    url = settings.database.get_secret_value()
    private: dict[Path | None, str] = {
        **dict.fromkeys(sign_ins, "a place of sign-ins"),
        **dict.fromkeys(find_secret_files(), "a secret in Backburner's settings"),
        settings.workspaces: "the private workspaces",
        settings.config: "Backburner's settings",
        settings.tls_key: "a key of the server",
        settings.master_key_file: "the master keys of the vault",
        file_of(url) if url.startswith("sqlite") else None: "Backburner's database",
        settings.data: "Backburner's data folder",
    }
    return ForbiddenPlaces(
        homes=sorted(homes),
        private={
            os.path.realpath(path): meaning for path, meaning in private.items() if path is not None
        },
    )


def find_places_of_agents(settings: Settings) -> Mapping[str, str]:
    """Find where agents write, apart from folders of users. A private workspace may be a link."""
    workspaces = [settings.workspaces, *settings.workspaces.glob("*")]
    return {
        os.path.realpath(settings.data): "Backburner's data folder",
        **{os.path.realpath(path): "the private workspaces" for path in workspaces},
    }


def trace_path(path: str) -> Sequence[str]:
    """Return each link on the way along a path, and its end, all as paths without links.

    Whoever can change a link decides what lies at its end.
    """
    found = list[str]()
    left = deque(PurePosixPath("/", path).parts[1:])
    at = "/"
    while left:
        name = left.popleft()
        if name == "..":
            at = os.path.dirname(at)  # noqa: PTH120 (a path without links)
            continue
        here = os.path.join(at, name)  # noqa: PTH118
        try:
            target = str(Path(here).readlink())
        except OSError:
            at = here
            continue
        found.append(here)
        if len(found) > MAX_LINKS:
            raise BadRequest(f"{path} has too many links.")
        at = "/" if target.startswith("/") else at
        left.extendleft(reversed([part for part in target.split("/") if part not in ("", ".")]))
    return [*found, at]


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
