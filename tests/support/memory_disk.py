"""A disk in memory for the files of tests: there, a commit waits for no real one.

A copied PostgreSQL database takes a seventh of the time.
"""

import os
import shutil
from pathlib import Path

MEMORY = Path("/dev/shm")  # noqa: S108 (each folder in it is private)
#: A run of all tests takes less than half of that. In a container there may be next to nothing.
NEEDED_BYTES = 2**30


def memory_disk() -> Path | None:
    """Return where to make folders; None if they have to be on a real disk."""
    if not os.access(MEMORY, os.W_OK) or shutil.disk_usage(MEMORY).free < NEEDED_BYTES:
        return None
    return MEMORY
