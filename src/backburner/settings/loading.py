"""Reading all sources into settings, and what is wrong with them in one line."""

import os
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from backburner.core.errors import BadSetting
from backburner.settings.names import NOT_OURS, PREFIX, variable
from backburner.settings.settings import Settings, secret_names, takes
from backburner.settings.sources import find_file, read_file, suggest


def load(**options: Any) -> Settings:
    """Read all sources; `options` are those of a command, None where one was not used."""
    given = {name: value for name, value in options.items() if value is not None}
    _refuse_unknown_variables()
    try:
        return Settings(**given)
    except ValidationError as invalid:
        raise _explain(invalid, given) from None


def _refuse_unknown_variables() -> None:
    known = [name.upper() for name in Settings.model_fields]
    known += [f"{name.upper()}_FILE" for name in secret_names()]
    for name in sorted(os.environ):
        asked = name.removeprefix(PREFIX)
        if name.startswith(PREFIX) and not name.startswith(NOT_OURS) and asked not in known:
            hint = suggest(asked, known, PREFIX)
            raise BadSetting(f"{name} is not a setting.", hint=hint)


def _explain(invalid: ValidationError, options: Mapping[str, Any]) -> BadSetting:
    """Put the first thing that is wrong into one line: where, what, and what would be right."""
    error = invalid.errors()[0]
    name = str(error["loc"][0])
    wrong = "is wrong" if name in secret_names() else f"cannot be {str(error['input'])[:100]!r}"
    reason = str(error.get("ctx", {}).get("error", "")) or f"it takes {takes(name)}"
    return BadSetting(f"{_find_source(name, options)} {wrong}: {reason}.")


def _find_source(name: str, options: Mapping[str, Any]) -> str:
    if name in options:
        return f"--{name.replace('_', '-')}"
    for setting in (variable(name), f"{variable(name)}_FILE"):
        if os.environ.get(setting):
            return setting
    return (
        f"`{name}` in {find_file(options)[0]}"
        if name in read_file(options, Settings.model_fields)
        else f"`{name}`"
    )
