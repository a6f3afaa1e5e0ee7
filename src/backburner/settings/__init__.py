"""Every setting, where it is read from, and how a wrong one is refused."""

from backburner.settings.loading import load
from backburner.settings.names import FILE_NAME, PREFIX, variable
from backburner.settings.settings import Settings, secret_names, takes

__all__ = ["FILE_NAME", "PREFIX", "Settings", "load", "secret_names", "takes", "variable"]
