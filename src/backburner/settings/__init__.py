"""Every setting, its sources, and its validation."""

from backburner.settings.loading import find_data_folder, load
from backburner.settings.prices import PriceList
from backburner.settings.profiles import (
    CLAUDE_ADDRESS,
    CLAUDE_MODEL,
    DEFAULT_SEATS,
    LOCAL_SEATS,
    Profile,
    clean_address,
    clean_secret,
    is_near,
    read_profile,
    read_profiles,
)
from backburner.settings.settings import Settings, secret_names, takes
from backburner.settings.sources import (
    CLIENT_FILE,
    MODELS_FILE,
    PREFIX,
    SETTINGS_FILE,
    find_settings_file,
    read_models_file,
    variable,
)
from backburner.settings.stored_profiles import replace_profile, write_models_file

__all__ = [
    "CLAUDE_ADDRESS",
    "CLAUDE_MODEL",
    "CLIENT_FILE",
    "DEFAULT_SEATS",
    "LOCAL_SEATS",
    "MODELS_FILE",
    "PREFIX",
    "SETTINGS_FILE",
    "PriceList",
    "Profile",
    "Settings",
    "clean_address",
    "clean_secret",
    "find_data_folder",
    "find_settings_file",
    "is_near",
    "load",
    "read_models_file",
    "read_profile",
    "read_profiles",
    "replace_profile",
    "secret_names",
    "takes",
    "variable",
    "write_models_file",
]
