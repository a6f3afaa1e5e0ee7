"""The data folder, and folders in it."""

import os
import tempfile
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from backburner.core.errors import MachineFailed
from backburner.process.removal import remove_tree
from backburner.store.failures import is_disk_full

#: For very many files.
REMOVAL_TIMEOUT = timedelta(minutes=5)


def prepare_data_folder(folder: Path) -> None:
    """Create the folder, accessible to its owner only, and check that it is writable."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(folder, error) from error
    check_writable(folder)


def check_writable(folder: Path) -> None:
    """Write some bytes to the disk: an empty file can be made on a full one."""
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            file.write(b"backburner")
            os.fsync(file.fileno())
    except OSError as error:
        raise _unusable(folder, error) from error


async def remove_folders(parents: Iterable[Path], name: str) -> None:
    for parent in parents:
        await remove_folder(parent, name)


async def remove_folder(parent: Path, name: str) -> None:
    """Delete a folder with its content, if it exists."""
    folder = parent / name
    if folder.parent != parent or not name.strip("."):
        raise MachineFailed(f"{name} is not a folder name.", permanent=True)
    if not folder.exists():
        return
    if not await remove_tree(folder, within=REMOVAL_TIMEOUT):
        raise MachineFailed(
            f"Cannot delete the folder {folder}.",
            hint="Delete it by hand, and erase again: the account is still there.",
            permanent=True,
        )


def _unusable(folder: Path, error: OSError) -> MachineFailed:
    if is_disk_full(error):
        reason, hint = "the disk is full", "Free some space, or choose another with --data."
    else:
        reason, hint = (error.strerror or str(error)).lower(), "Choose another with --data."
    return MachineFailed(
        f"Cannot use the data folder {folder}: {reason}.", hint=hint, permanent=True
    )
