"""The folder that holds everything on this machine."""

import asyncio
import shutil
import tempfile
from pathlib import Path

from backburner.core.errors import MachineFailed


def prepare_data_folder(folder: Path) -> None:
    """Make the folder, for its owner alone, and see that it can be used."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(folder, error) from error
    check_writable(folder)


def check_writable(folder: Path) -> None:
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _unusable(folder, error) from error


async def remove_folder(above: Path, name: str) -> None:
    """Remove a folder with all that is in it, if it is there."""
    folder = above / name
    if folder.parent != above or not name.strip("."):
        raise MachineFailed(f"{name} is not the name of a folder.", permanent=True)
    if not folder.exists():
        return
    try:
        await asyncio.to_thread(shutil.rmtree, folder)
    except OSError as error:
        raise MachineFailed(
            f"The folder {folder} could not be removed: {(error.strerror or str(error)).lower()}.",
            hint="Remove it by hand; all else is erased.",
            permanent=True,
        ) from error


def _unusable(folder: Path, error: OSError) -> MachineFailed:
    reason = (error.strerror or str(error)).lower()
    return MachineFailed(
        f"The data folder {folder} cannot be used: {reason}.",
        hint="Choose another with --data.",
        permanent=True,
    )
