"""Save a download to a new file that only its owner can read."""

from collections.abc import Iterable
from pathlib import Path

from backburner.core.content.file import format_size
from backburner.core.errors import BadRequest, Conflict
from backburner.private_file import write_private_file


def save(chunks: Iterable[bytes], path: Path) -> str:
    """Save to a new file; return its name and size."""
    # Checked before the download as well, so that nothing is downloaded in vain.
    if path.exists():
        raise _already_exists(path)
    try:
        write_private_file(path, chunks, overwrite=False)
    except FileExistsError:
        raise _already_exists(path) from None
    except OSError as error:
        raise BadRequest(f"Cannot write {path}: {error.strerror}.") from None
    return f"{path} ({format_size(path.stat().st_size)})"


def _already_exists(path: Path) -> Conflict:
    return Conflict(f"{path} already exists.", hint="Choose another name.")
