"""Files with secrets: readable by their owner only, and written completely or not at all."""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path


def write_private_file(path: Path, chunks: Iterable[bytes], *, overwrite: bool) -> None:
    """Write a file with mode 0600; without `overwrite`, raise FileExistsError if it exists."""
    # `mkstemp` creates the file with mode 0600, so no other user can read it at any time.
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "wb") as file:  # noqa: PTH123 (it is a descriptor)
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        if overwrite:
            Path(draft).replace(path)
        else:
            # Unlike a rename, a hard link never replaces an existing file.
            path.hardlink_to(draft)
    finally:
        Path(draft).unlink(missing_ok=True)
