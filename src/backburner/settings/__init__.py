"""Every setting, where it is read from, and how a wrong one is refused."""

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
    read_profile,
)
from backburner.settings.settings import Settings, secret_names, takes

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
    "load",
    "read_profile",
    "secret_names",
    "takes",
    "variable",
]
