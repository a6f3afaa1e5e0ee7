"""Reads all sources into `Settings`, and explains the first invalid value in one line."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from backburner.core.errors import BadSetting
from backburner.data_folder import (
    PREFIX,
    find_data,
    find_settings_file,
    read_settings_file,
    suggest,
    variable,
)
from backburner.settings.master_keys import take_master_keys
from backburner.settings.profiles import BadProfile
from backburner.settings.settings import Settings, secret_names, takes
from backburner.settings.sources import (
    CLIENT_VARIABLES,
    MODELS_FILE,
    TEST_PREFIX,
    read_models_file,
)


def load(**options: Any) -> Settings:
    """Read all sources; `options` are those of a command, None where not given."""
    options = _without_none(options)
    take_master_keys()
    _refuse_unknown_variables()
    try:
        return Settings(**options)
    except ValidationError as invalid:
        raise _explain(invalid, options) from None


def _without_none(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _refuse_unknown_variables() -> None:
    names = [name.upper() for name in Settings.model_fields]
    names += [f"{name.upper()}_FILE" for name in secret_names()]
    for variable_name in sorted(os.environ):
        name = variable_name.removeprefix(PREFIX)
        if name in CLIENT_VARIABLES or variable_name.startswith(TEST_PREFIX):
            continue
        if variable_name.startswith(PREFIX) and name not in names:
            # Only secrets can be in a file; for other settings, suggest the plain variable.
            hint = suggest(name.removesuffix("_FILE"), names, PREFIX)
            raise BadSetting(f"{variable_name} is not a setting.", hint=hint)


def _explain(invalid: ValidationError, options: Mapping[str, Any]) -> BadSetting:
    """Describe the first invalid value: its source, the value, and what is valid."""
    error = invalid.errors()[0]
    name = str(error["loc"][0])
    # A table may have a secret in it.
    is_secret = name in secret_names() or isinstance(error["input"], Mapping)
    problem = "is invalid" if is_secret else f"cannot be {str(error['input'])[:100]!r}"
    cause = error.get("ctx", {}).get("error")
    reason = str(cause or "") or f"use {takes(name).text}"
    source = _find_source(name, options)
    if isinstance(cause, BadProfile):
        source = _find_profile_source(cause.profile, options)
    return BadSetting(f"{source} {problem}: {reason}.")


def _find_source(name: str, options: Mapping[str, Any]) -> str:
    if name in options:
        return f"--{name.replace('_', '-')}"
    for variable_name in (variable(name), f"{variable(name)}_FILE"):
        if os.environ.get(variable_name):
            return variable_name
    return next((f"`{name}` in {path}" for path, values in _files(options) if name in values), name)


def _find_profile_source(profile: str, options: Mapping[str, Any]) -> str:
    for path, values in _files(options):
        if profile in values.get("profiles", {}):
            return f"`profiles` in {path}"
    return _find_source("profiles", options)


def _files(options: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    values = read_settings_file(options, Settings.model_fields)
    yield find_settings_file(options)[0], values
    folder = find_data(options, values)
    yield folder / MODELS_FILE, read_models_file(folder)
