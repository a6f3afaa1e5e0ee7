"""Where settings are read from, apart from the environment: files, and the files of secrets."""

import os
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from backburner.core.errors import BadSetting
from backburner.settings.names import FILE_NAME, MODELS_NAME, OF_MODELS, variable
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
        yield name, read_text(Path(path), f"{variable(name)}_FILE").removesuffix("\n")


def read_file(options: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Read the operator's file."""
    path, chosen = find_file(options)
    # A folder that may not be entered is for whoever makes the data folder to explain.
    if not chosen and not os.path.exists(path):  # noqa: PTH110 (does not raise)
        return {}
    found = _read_toml(path, [name for name in known if name != "config"])
    if "data" in found and not chosen:
        raise BadSetting(
            f"`data` cannot be set in {path}, which is found through it.",
            hint=f"Set {variable('data')} instead.",
        )
    return found


def read_models(folder: Path) -> dict[str, Any]:
    """Read what `backburner setup` has kept in the data folder."""
    path = folder / MODELS_NAME
    return _read_toml(path, OF_MODELS) if os.path.exists(path) else {}  # noqa: PTH110 (as above)


def find_file(options: Mapping[str, Any]) -> tuple[Path, bool]:
    """Tell which file is read, and whether somebody chose it."""
    if chosen := options.get("config") or os.environ.get(variable("config")):
        return absolute(chosen), True
    return find_data(options, {}) / FILE_NAME, False


def find_data(options: Mapping[str, Any], file: Mapping[str, Any]) -> Path:
    """Tell which folder is the data folder, as far as that can be told before all is checked."""
    said = options.get("data") or os.environ.get(variable("data")) or file.get("data")
    return absolute(said) if said and isinstance(said, str | Path) else absolute(default_data())


def read_text(path: Path, what: str) -> str:
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


def _read_toml(path: Path, known: Collection[str]) -> dict[str, Any]:
    text = read_text(path, "The settings file")
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadSetting(f"{path} is not TOML: {error}.") from None
    for name in found:
        if name not in known:
            raise BadSetting(f"`{name}` in {path} is not a setting.", hint=suggest(name, known))
    return found
