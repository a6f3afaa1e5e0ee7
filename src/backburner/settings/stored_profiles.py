"""The models file: profiles that `backburner setup` stores in the data folder."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from backburner.private_file import write_private_file
from backburner.settings.profiles import DEMO
from backburner.settings.sources import MODELS_FILE

_HEADER = "# Written by `backburner setup`; use it to make changes. This file contains secrets.\n"


def replace_profile(
    stored: Mapping[str, Any], name: str, table: Mapping[str, Any], *, background: bool
) -> tuple[dict[str, Any], str]:
    """Replace the profile of chats or of background work.

    Returns the new content, and the name of the profile: a different one if the profile of the
    other role already has this name.
    """
    role, other_role = "profile", "background_profile"
    if background:
        role, other_role = other_role, role
    other_name = stored.get(other_role)
    others = {key: value for key, value in stored.get("profiles", {}).items() if key == other_name}
    if name in others:
        name = f"{name}-{'background' if background else 'chat'}"
    content: dict[str, Any] = {role: name, "profiles": {**others}}
    if others or other_name == DEMO:
        content[other_role] = other_name
    if name != DEMO:
        content["profiles"][name] = dict(table)
    return content, name


def write_models_file(folder: Path, content: Mapping[str, Any]) -> Path:
    path = folder / MODELS_FILE
    write_private_file(path, [_as_toml(content).encode()], overwrite=True)
    return path


def _as_toml(content: Mapping[str, Any]) -> str:
    lines = [_pair(name, value) for name, value in content.items() if name != "profiles"]
    for name, table in content["profiles"].items():
        lines += ["", f"[profiles.{_text(name)}]"]
        lines += [_pair(key, value) for key, value in table.items()]
    return _HEADER + "".join(f"{line}\n" for line in lines)


def _pair(name: str, value: str | int) -> str:
    return f"{name} = {_text(value) if isinstance(value, str) else value}"


def _text(text: str) -> str:
    # A JSON string is a valid TOML string, except for the character DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
