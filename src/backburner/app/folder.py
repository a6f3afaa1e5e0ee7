"""The folder that holds everything on this machine."""

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


def _unusable(folder: Path, error: OSError) -> MachineFailed:
    reason = (error.strerror or str(error)).lower()
    return MachineFailed(
        f"The data folder {folder} cannot be used: {reason}.",
        hint="Choose another with --data.",
        permanent=True,
    )
