"""The models file: profiles that operators store in the data folder, and their roles."""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from backburner.data_folder import find_settings_file, read_settings_file, variable
from backburner.private_file import write_private_file
from backburner.settings.profiles import DEMO
from backburner.settings.settings import Settings
from backburner.settings.sources import MODELS_FILE, decode_table, read_secret_files

CHAT_ROLE, BACKGROUND_ROLE = "profile", "background_profile"
_HEADER = (
    "# Written by `backburner setup` and by the page; use these to make changes. This file contains"
    " secrets.\n"
)


@dataclass(frozen=True, slots=True)
class Overrides:
    """The profiles and roles that other sources than the models file set, each with its source."""

    profiles: Mapping[str, str]
    roles: Mapping[str, str]


def find_overrides(settings: Settings) -> Overrides:
    options = {"config": settings.config, "data": settings.data}
    file, path = read_settings_file(options), find_settings_file(options)[0]
    profiles: dict[str, str] = dict.fromkeys(file.get("profiles", {}), f"`profiles` in {path}")
    for _, text in read_secret_files(["profiles"]):
        source = f"{variable('profiles')}_FILE"
        profiles |= dict.fromkeys(decode_table(source, text), source)
    if tables := os.environ.get(variable("profiles")):
        source = variable("profiles")
        profiles |= dict.fromkeys(decode_table(source, tables), source)
    roles = {
        role: variable(role) if os.environ.get(variable(role)) else f"`{role}` in {path}"
        for role in (CHAT_ROLE, BACKGROUND_ROLE)
        if os.environ.get(variable(role)) or file.get(role)
    }
    return Overrides(profiles, roles)


def replace_profile(
    stored: Mapping[str, Any], name: str, table: Mapping[str, Any], *, background: bool
) -> tuple[dict[str, Any], str]:
    """Replace the profile of chats or of background work.

    Returns the new content, and the name of the profile: a different one if another profile
    already has this name.
    """
    role, other_role = CHAT_ROLE, BACKGROUND_ROLE
    if background:
        role, other_role = other_role, role
    before, other_name = stored.get(role), stored.get(other_role)
    profiles = stored.get("profiles", {})
    others = {key: profiles[key] for key in profiles if key != before or key == other_name}
    if name in others:
        name = _find_free(f"{name}-{'background' if background else 'chat'}", others)
    content: dict[str, Any] = {role: name, "profiles": others}
    if other_name in (*others, DEMO):
        content[other_role] = other_name
    if name != DEMO:
        others[name] = dict(table)
    return content, name


def _find_free(name: str, taken: Mapping[str, Any]) -> str:
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(free for free in names if free not in taken)


@contextmanager
def lock_models_file(folder: Path) -> Iterator[None]:
    """Hold others off who change the models of this folder at the same time."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Some network file systems lock no folders.
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def write_models_file(folder: Path, content: Mapping[str, Any]) -> Path:
    path = folder / MODELS_FILE
    write_private_file(path, [_as_toml(content).encode()], overwrite=True)
    return path


def _as_toml(content: Mapping[str, Any]) -> str:
    lines = [_pair(name, value) for name, value in content.items() if name != "profiles"]
    for name, table in content.get("profiles", {}).items():
        lines += ["", f"[profiles.{_text(name)}]"]
        lines += [_pair(key, value) for key, value in table.items()]
    return _HEADER + "".join(f"{line}\n" for line in lines)


def _pair(name: str, value: str | int) -> str:
    # JSON writes texts, integers and booleans as TOML does.
    return f"{name} = {_text(value) if isinstance(value, str) else json.dumps(value)}"


def _text(text: str) -> str:
    # A JSON string is a valid TOML string, except for the character DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
