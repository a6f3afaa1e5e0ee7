"""Every setting, its sources, and its validation."""

from backburner.settings.loading import load
from backburner.settings.master_keys import MASTER_KEYS, take_master_keys
from backburner.settings.prices import PriceList
from backburner.settings.profiles import (
    CLAUDE_ADDRESS,
    CLAUDE_MODEL,
    DEFAULT_SEATS,
    DEMO,
    LOCAL_SEATS,
    Profile,
    clean_address,
    clean_secret,
    is_near,
    read_profile,
    read_profiles,
)
from backburner.settings.settings import Settings, find_secret_files, secret_names, takes
from backburner.settings.sources import MODELS_FILE, read_models_file
from backburner.settings.stored_profiles import (
    BACKGROUND_ROLE,
    CHAT_ROLE,
    Overrides,
    find_overrides,
    lock_models_file,
    replace_profile,
    write_models_file,
)

__all__ = [
    "BACKGROUND_ROLE",
    "CHAT_ROLE",
    "CLAUDE_ADDRESS",
    "CLAUDE_MODEL",
    "DEFAULT_SEATS",
    "DEMO",
    "LOCAL_SEATS",
    "MASTER_KEYS",
    "MODELS_FILE",
    "Overrides",
    "PriceList",
    "Profile",
    "Settings",
    "clean_address",
    "clean_secret",
    "find_overrides",
    "find_secret_files",
    "is_near",
    "load",
    "lock_models_file",
    "read_models_file",
    "read_profile",
    "read_profiles",
    "replace_profile",
    "secret_names",
    "take_master_keys",
    "takes",
    "write_models_file",
]
