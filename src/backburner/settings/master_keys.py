"""The master keys that an environment variable gives to this process.

The variable is not a setting: it is read once and removed, so that no child inherits it.
"""

import os
import re

from backburner.data_folder import variable

MASTER_KEYS = variable("master_keys")
_taken = ""


def take_master_keys() -> str:
    """Return the text of the variable, also after it has been removed; empty if it was not set."""
    global _taken  # noqa: PLW0603 (an environment is one per process, and so is what was in it)
    if MASTER_KEYS in os.environ:
        _overwrite(MASTER_KEYS)
        _taken = os.environ.pop(MASTER_KEYS)
    return _taken


def master_key_texts() -> list[str]:
    """List the keys themselves, which must not appear in any output."""
    return [word.partition(":")[2] for word in re.split(r"[,\s]+", _taken) if ":" in word]


def _overwrite(name: str) -> None:
    """Overwrite a variable in place: the system shows what a process was started with (`/proc`)."""
    import ctypes  # noqa: PLC0415 (it takes 5 ms, and few have the variable)

    library = ctypes.CDLL(None)
    library.getenv.restype = ctypes.c_void_p
    if address := library.getenv(name.encode()):
        ctypes.memset(address, ord("x"), len(ctypes.string_at(address)))
