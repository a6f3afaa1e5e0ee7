"""Sources that hold more than plain values: lists and tables in variables, profiles by name."""

import json
from typing import Any, get_origin

from pydantic.fields import FieldInfo
from pydantic_settings import EnvSettingsSource, InitSettingsSource

from backburner.core.errors import BadSetting
from backburner.settings.names import variable


class Variables(EnvSettingsSource):
    """The environment. A list has commas between its parts, a table is JSON."""

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        if get_origin(field.annotation) is tuple:
            return [part.strip() for part in str(value).split(",") if part.strip()]
        return decode_table(variable(field_name), str(value))


class Weaker(InitSettingsSource):
    """What counts where no source before it says anything.

    A profile comes from one source as a whole: a key must not go to an address from elsewhere.
    """

    def __call__(self) -> dict[str, Any]:
        found = super().__call__()
        tables = found.get("profiles")
        if isinstance(tables, str):
            tables = decode_table(f"{variable('profiles')}_FILE", tables)
        if isinstance(tables, dict):
            known = self.current_state.get("profiles", {})
            found["profiles"] = {name: tables[name] for name in tables if name not in known}
        return found


def decode_table(source: str, text: str) -> dict[str, Any]:
    try:
        table = json.loads(text)
    except ValueError:
        table = None
    if not isinstance(table, dict):
        # No part of it is quoted: it may hold secrets.
        raise BadSetting(
            f"{source} is not a table in JSON.", hint='Write {"name": ...}, or use a TOML file.'
        )
    return table
