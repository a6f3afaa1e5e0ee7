"""The programs with which people back up a PostgreSQL, from the wheel that has the server."""

import subprocess
import tempfile
from pathlib import Path

from support.servers.postgres_server import find_programs


def pg_dump(url: str, file: Path) -> None:
    """Make a backup as docs/how-to/backup.md says."""
    _run("pg_dump", "--format=custom", "--no-owner", f"--file={file}", url)


def pg_restore(url: str, file: Path) -> None:
    """Load a backup as docs/how-to/backup.md says."""
    _run("pg_restore", "--clean", "--if-exists", "--no-owner", f"--dbname={url}", str(file))


def _run(program: str, *arguments: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = find_programs(Path(folder)) / program
        done = subprocess.run([path, *arguments], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
