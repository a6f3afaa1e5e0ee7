"""Where settings are read from, apart from the environment: files, and the files of secrets."""

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from backburner.core.errors import BadSetting
from backburner.settings.names import FILE_NAME, variable
from backburner.settings.values import absolute, default_data


def read_secret_files(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        path = os.environ.get(f"{variable(name)}_FILE")
        if not path:
            continue
        if os.environ.get(variable(name)):
            raise BadSetting(
                f"{variable(name)} and {variable(name)}_FILE are both set.", hint="Set one of them."
            )
        yield name, _read_text(Path(path), f"{variable(name)}_FILE").removesuffix("\n")


def read_file(options: Mapping[str, Any], known: Iterable[str]) -> dict[str, Any]:
    path, chosen = find_file(options)
    # A folder that may not be entered is for whoever makes the data folder to explain.
    if not chosen and not os.path.exists(path):  # noqa: PTH110 (does not raise)
        return {}
    text = _read_text(path, "The settings file")
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadSetting(f"{path} is not TOML: {error}.") from None
    for name in found:
        if name not in known or name == "config":
            hint = suggest(name, known)
            raise BadSetting(f"`{name}` in {path} is not a setting.", hint=hint)
    if "data" in found and not chosen:
        raise BadSetting(
            f"`data` cannot be set in {path}, which is found through it.",
            hint=f"Set {variable('data')} instead.",
        )
    return found


def find_file(options: Mapping[str, Any]) -> tuple[Path, bool]:
    """Tell which file is read, and whether somebody chose it."""
    if chosen := options.get("config") or os.environ.get(variable("config")):
        return absolute(chosen), True
    data = options.get("data") or os.environ.get(variable("data")) or default_data()
    return absolute(data) / FILE_NAME, False


def _read_text(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadSetting(f"{what} {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise BadSetting(f"{what} {path} is not UTF-8 text.") from None


def suggest(asked: str, known: Iterable[str], prefix: str = "") -> str:
    # The prefix, which all share, would make everything look close.
    close = get_close_matches(asked, list(known), n=1)
    return f"Did you mean {prefix}{close[0]}?" if close else "docs/reference/settings.md has all."
