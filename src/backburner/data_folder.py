"""The data folder, and the settings file that may name it.

Commands that talk to a server need no more of the settings than this, so nothing here is slow to
import.
"""

import os
import tomllib
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from platformdirs import user_data_path

from backburner.core.errors import BadSetting

PREFIX = "BACKBURNER_"
SETTINGS_FILE = "backburner.toml"
#: Written by each `backburner up`: the address and a token for the command line of this machine.
CLIENT_FILE = "client.toml"
#: The folder of log files.
LOG_FOLDER = "log"


def find_data_folder(**options: Any) -> Path:
    """Return the data folder, even if other settings are invalid."""
    return find_data(options, read_settings_file(options))


def read_settings_file(
    options: Mapping[str, Any], names: Collection[str] | None = None
) -> dict[str, Any]:
    """Read the settings file; with `names`, refuse others."""
    path, chosen = find_settings_file(options)
    # `os.path.exists` does not raise; a folder without access is reported when it is used.
    if not chosen and not os.path.exists(path):  # noqa: PTH110
        return {}
    values = read_toml(path, names and [name for name in names if name != "config"])
    if "data" in values and not chosen:
        raise BadSetting(
            f"`data` cannot be set in {path}, which is itself in the data folder.",
            hint=f"Set {variable('data')} instead.",
        )
    return values


def find_settings_file(options: Mapping[str, Any]) -> tuple[Path, bool]:
    """Return the path of the settings file, and whether the operator chose it."""
    if chosen := options.get("config") or os.environ.get(variable("config")):
        return absolute(chosen), True
    return find_data(options, {}) / SETTINGS_FILE, False


def find_data(options: Mapping[str, Any], file: Mapping[str, Any]) -> Path:
    """Return the data folder, before the settings are validated."""
    data = options.get("data") or os.environ.get(variable("data")) or file.get("data")
    return absolute(data) if data and isinstance(data, str | Path) else absolute(default_data())


def default_data() -> Path:
    try:
        return user_data_path("backburner", appauthor=False)
    except RuntimeError:
        # The user has no home folder: refused with a message where it is needed.
        return Path("~/backburner")


def absolute(path: Path | str) -> Path:
    # Unlike `Path.resolve` these keep symbolic links, and unlike `Path.expanduser` never raise.
    return Path(os.path.abspath(os.path.expanduser(path)))  # noqa: PTH100, PTH111


def read_text(path: Path, description: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadSetting(f"{description} {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise BadSetting(f"{description} {path} is not UTF-8 text.") from None


def read_toml(path: Path, names: Collection[str] | None) -> dict[str, Any]:
    text = read_text(path, "The settings file")
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadSetting(f"{path} is not TOML: {error}.") from None
    for name in values:
        if names is not None and name not in names:
            raise BadSetting(f"`{name}` in {path} is not a setting.", hint=suggest(name, names))
    return values


def suggest(name: str, names: Iterable[str], prefix: str = "") -> str:
    # Compared without the prefix: sharing it would make all names look close.
    matches = get_close_matches(name, list(names), n=1)
    if matches:
        return f"Did you mean {prefix}{matches[0]}?"
    return "docs/reference/settings.md lists all settings."


def variable(name: str) -> str:
    return PREFIX + name.upper()
