"""Sources of settings: variables, the settings file, the models file, secret files."""

import json
import os
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_origin

from platformdirs import user_data_path
from pydantic.fields import FieldInfo
from pydantic_settings import EnvSettingsSource, InitSettingsSource

from backburner.core.errors import BadSetting

PREFIX = "BACKBURNER_"
#: Variables of this project's tests, which are not settings.
TEST_PREFIX = "BACKBURNER_TEST_"
#: Variables of the commands that talk to a server, without the prefix.
CLIENT_VARIABLES = ("URL", "TOKEN", "COMMAND")
SETTINGS_FILE = "backburner.toml"
#: Written by `backburner setup`, and the settings that it may contain.
MODELS_FILE = "models.toml"
MODELS_SETTINGS = ("profile", "background_profile", "profiles")
#: Written by each `backburner up`: the address and a token for the command line of this machine.
CLIENT_FILE = "client.toml"


class Variables(EnvSettingsSource):
    """Environment variables. Lists are comma-separated, tables are JSON."""

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        if get_origin(field.annotation) is tuple:
            return [part.strip() for part in str(value).split(",") if part.strip()]
        return _decode_table(variable(field_name), str(value))


class FallbackSource(InitSettingsSource):
    """Values used where no earlier source sets them.

    A profile is taken from one source as a whole: a key must not be sent to an address from
    another source.
    """

    def __call__(self) -> dict[str, Any]:
        values = super().__call__()
        tables = values.get("profiles")
        if isinstance(tables, str):
            tables = _decode_table(f"{variable('profiles')}_FILE", tables)
        if isinstance(tables, dict):
            set_before = self.current_state.get("profiles", {})
            values["profiles"] = {name: tables[name] for name in tables if name not in set_before}
        return values


def variable(name: str) -> str:
    return PREFIX + name.upper()


def read_secret_files(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Read the secrets whose `BACKBURNER_<NAME>_FILE` is set."""
    for name in names:
        path = os.environ.get(f"{variable(name)}_FILE")
        if not path:
            continue
        if os.environ.get(variable(name)):
            raise BadSetting(
                f"{variable(name)} and {variable(name)}_FILE are both set.", hint="Set only one."
            )
        yield name, read_text(Path(path), f"{variable(name)}_FILE").removesuffix("\n")


def read_settings_file(options: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    path, chosen = find_settings_file(options)
    # `os.path.exists` does not raise; a folder without access is reported when it is used.
    if not chosen and not os.path.exists(path):  # noqa: PTH110
        return {}
    values = _read_toml(path, [name for name in names if name != "config"])
    if "data" in values and not chosen:
        raise BadSetting(
            f"`data` cannot be set in {path}, which is itself in the data folder.",
            hint=f"Set {variable('data')} instead.",
        )
    return values


def read_models_file(folder: Path) -> dict[str, Any]:
    """Read the models that `backburner setup` stored."""
    path = folder / MODELS_FILE
    # As above.
    return _read_toml(path, MODELS_SETTINGS) if os.path.exists(path) else {}  # noqa: PTH110


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


def suggest(name: str, names: Iterable[str], prefix: str = "") -> str:
    # Compared without the prefix: sharing it would make all names look close.
    matches = get_close_matches(name, list(names), n=1)
    if matches:
        return f"Did you mean {prefix}{matches[0]}?"
    return "docs/reference/settings.md lists all settings."


def _read_toml(path: Path, names: Collection[str]) -> dict[str, Any]:
    text = read_text(path, "The settings file")
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadSetting(f"{path} is not TOML: {error}.") from None
    for name in values:
        if name not in names:
            raise BadSetting(f"`{name}` in {path} is not a setting.", hint=suggest(name, names))
    return values


def _decode_table(source: str, text: str) -> dict[str, Any]:
    try:
        table = json.loads(text)
    except ValueError:
        table = None
    if not isinstance(table, dict):
        # The text is not quoted: it may contain secrets.
        raise BadSetting(
            f"{source} is not a JSON object.", hint='Write {"name": ...}, or use a TOML file.'
        )
    return table
