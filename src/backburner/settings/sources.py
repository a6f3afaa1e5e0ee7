"""Sources of settings: variables, the settings file, the models file, secret files."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_origin

from pydantic.fields import FieldInfo
from pydantic_settings import EnvSettingsSource, InitSettingsSource

from backburner.core.errors import BadSetting
from backburner.data_folder import read_text, read_toml, variable

#: Variables of this project's tests, which are not settings.
TEST_PREFIX = "BACKBURNER_TEST_"
#: Variables of the commands that talk to a server, without the prefix.
CLIENT_VARIABLES = ("URL", "TOKEN", "COMMAND")
#: Written by `backburner setup`, and the settings that it may contain.
MODELS_FILE = "models.toml"
MODELS_SETTINGS = ("profile", "background_profile", "profiles")


class Variables(EnvSettingsSource):
    """Environment variables. Lists are comma-separated, tables are JSON."""

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        if get_origin(field.annotation) is tuple:
            return [part.strip() for part in str(value).split(",") if part.strip()]
        return decode_table(variable(field_name), str(value))


class FallbackSource(InitSettingsSource):
    """Values used where no earlier source sets them.

    A profile is taken from one source as a whole: a key must not be sent to an address from
    another source.
    """

    def __call__(self) -> dict[str, Any]:
        values = super().__call__()
        tables = values.get("profiles")
        if isinstance(tables, str):
            tables = decode_table(f"{variable('profiles')}_FILE", tables)
        if isinstance(tables, dict):
            set_before = self.current_state.get("profiles", {})
            values["profiles"] = {name: tables[name] for name in tables if name not in set_before}
        return values


def secret_files(names: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Yield the file of each secret whose `BACKBURNER_<NAME>_FILE` is set."""
    for name in names:
        if path := os.environ.get(f"{variable(name)}_FILE"):
            yield name, Path(path)


def read_secret_files(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name, path in secret_files(names):
        if os.environ.get(variable(name)):
            raise BadSetting(
                f"{variable(name)} and {variable(name)}_FILE are both set.", hint="Set only one."
            )
        yield name, read_text(path, f"{variable(name)}_FILE").removesuffix("\n")


def read_models_file(folder: Path) -> dict[str, Any]:
    """Read the models that `backburner setup` stored."""
    path = folder / MODELS_FILE
    # `os.path.exists` does not raise; a folder without access is reported when it is used.
    return read_toml(path, MODELS_SETTINGS) if os.path.exists(path) else {}  # noqa: PTH110


def decode_table(source: str, text: str) -> dict[str, Any]:
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
