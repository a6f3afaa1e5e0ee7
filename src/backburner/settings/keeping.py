"""The models that `backburner setup` keeps in the data folder, for their owner alone."""

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from backburner.settings.names import MODELS_NAME
from backburner.settings.profiles import DEMO
from backburner.settings.settings import Settings
from backburner.settings.sources import find_data, read_file

_HEAD = "# Written by `backburner setup`, which is how to change it. There are secrets in it.\n"


def find_data_folder(**options: Any) -> Path:
    """Tell which folder is the data folder, whatever else is wrong with the settings."""
    given = {name: value for name, value in options.items() if value is not None}
    return find_data(given, read_file(given, Settings.model_fields))


def put_in(
    kept: Mapping[str, Any], name: str, table: Mapping[str, Any], *, background: bool
) -> tuple[dict[str, Any], str]:
    """Put a model in place of the one that chats or the background had; tell how it is called."""
    role, other = "profile", "background_profile"
    if background:
        role, other = other, role
    name_of_other = kept.get(other)
    stays = {one: it for one, it in kept.get("profiles", {}).items() if one == name_of_other}
    if name in stays:
        name = f"{name}-{'background' if background else 'chat'}"
    content: dict[str, Any] = {role: name, "profiles": {**stays}}
    if stays or name_of_other == DEMO:
        content[other] = name_of_other
    if name != DEMO:
        content["profiles"][name] = dict(table)
    return content, name


def keep_models(folder: Path, content: Mapping[str, Any]) -> Path:
    """Write the file, all of it or nothing, and at no moment for others to read."""
    path = folder / MODELS_NAME
    # It is for its owner alone from the beginning.
    handle, draft = tempfile.mkstemp(dir=folder, prefix=f".{MODELS_NAME}.")
    try:
        with open(handle, "w", encoding="utf-8") as file:  # noqa: PTH123 (it is a descriptor)
            file.write(_as_toml(content))
            file.flush()
            os.fsync(file.fileno())
        Path(draft).replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(draft).unlink()
        raise
    return path


def _as_toml(content: Mapping[str, Any]) -> str:
    lines = [_pair(name, value) for name, value in content.items() if name != "profiles"]
    for name, table in content["profiles"].items():
        lines += ["", f"[profiles.{_text(name)}]"]
        lines += [_pair(key, value) for key, value in table.items()]
    return _HEAD + "".join(f"{line}\n" for line in lines)


def _pair(name: str, value: str | int) -> str:
    return f"{name} = {_text(value) if isinstance(value, str) else value}"


def _text(text: str) -> str:
    # What JSON makes of text, TOML reads as the same text, but for one character.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
