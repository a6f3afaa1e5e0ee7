"""Reading all sources into settings, and what is wrong with them in one line."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from backburner.core.errors import BadSetting
from backburner.settings.names import MODELS_NAME, NOT_OURS, OF_CLIENTS, PREFIX, variable
from backburner.settings.profiles import BadProfile
from backburner.settings.settings import Settings, secret_names, takes
from backburner.settings.sources import find_data, find_file, read_file, read_models, suggest


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
        if asked in OF_CLIENTS or name.startswith(NOT_OURS):
            continue
        if name.startswith(PREFIX) and asked not in known:
            # What is no secret has no file of its own.
            hint = suggest(asked.removesuffix("_FILE"), known, PREFIX)
            raise BadSetting(f"{name} is not a setting.", hint=hint)


def _explain(invalid: ValidationError, options: Mapping[str, Any]) -> BadSetting:
    """Put the first thing that is wrong into one line: where, what, and what would be right."""
    error = invalid.errors()[0]
    name = str(error["loc"][0])
    wrong = "is wrong" if name in secret_names() else f"cannot be {str(error['input'])[:100]!r}"
    cause = error.get("ctx", {}).get("error")
    reason = str(cause or "") or f"it takes {takes(name)}"
    source = _find_source(name, options)
    if isinstance(cause, BadProfile):
        source = _find_profile(cause.profile, options)
    return BadSetting(f"{source} {wrong}: {reason}.")


def _find_source(name: str, options: Mapping[str, Any]) -> str:
    if name in options:
        return f"--{name.replace('_', '-')}"
    for setting in (variable(name), f"{variable(name)}_FILE"):
        if os.environ.get(setting):
            return setting
    return next((f"`{name}` in {path}" for path, found in _files(options) if name in found), name)


def _find_profile(profile: str, options: Mapping[str, Any]) -> str:
    for path, found in _files(options):
        if profile in found.get("profiles", {}):
            return f"`profiles` in {path}"
    return _find_source("profiles", options)


def _files(options: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    found = read_file(options, Settings.model_fields)
    yield find_file(options)[0], found
    folder = find_data(options, found)
    yield folder / MODELS_NAME, read_models(folder)
