"""Every setting, where it is read from, and how a wrong one is refused."""

from backburner.settings.keeping import find_data_folder, keep_models, put_in
from backburner.settings.loading import load
from backburner.settings.names import FILE_NAME, MODELS_NAME, PREFIX, variable
from backburner.settings.prices import LIST_PRICES
from backburner.settings.profiles import (
    CLAUDE_ADDRESS,
    CLAUDE_MODEL,
    LOCAL_SEATS,
    SEATS,
    Profile,
    clean_address,
    clean_secret,
    is_near,
    read_profile,
    read_profiles,
)
from backburner.settings.settings import Settings, secret_names, takes
from backburner.settings.sources import find_file, read_models

__all__ = [
    "CLAUDE_ADDRESS",
    "CLAUDE_MODEL",
    "FILE_NAME",
    "LIST_PRICES",
    "LOCAL_SEATS",
    "MODELS_NAME",
    "PREFIX",
    "SEATS",
    "Profile",
    "Settings",
    "clean_address",
    "clean_secret",
    "find_data_folder",
    "find_file",
    "is_near",
    "keep_models",
    "load",
    "put_in",
    "read_models",
    "read_profile",
    "read_profiles",
    "secret_names",
    "takes",
    "variable",
]
