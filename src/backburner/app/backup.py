"""Copies of the database: from a server that runs, of one at rest, and put back in its place."""

import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import IO

from backburner.app.clock import Clock
from backburner.core.errors import StoreFailed
from backburner.settings import Settings
from backburner.store.db import Database
from backburner.store.lifecycle import backup
from backburner.store.lifecycle.backup import RestoreResult
from backburner.store.lifecycle.check import find_faults
from backburner.store.lifecycle.opening import look_at_database, open_database
from backburner.store.lifecycle.restore import Restored


async def copy_to_a_file(database: Database, folder: Path) -> IO[bytes]:
    """Copy a database that is in use to a file without a name: it is gone once it is closed."""

    def copy() -> IO[bytes]:
        with tempfile.TemporaryDirectory(dir=folder, prefix="copy-") as place:
            file = Path(place) / "copy"
            backup.copy_in_use(database, file)
            return file.open("rb")

    return await asyncio.to_thread(copy)


def is_in_use(settings: Settings) -> bool:
    return look_at_database(_url(settings)).in_use


def copy_at_rest(settings: Settings, to: Path) -> None:
    if not _url(settings).startswith("sqlite"):
        raise backup.use_pg_dump()
    backup.copy_at_rest(_url(settings), to)


def put_back(settings: Settings, copy: Path) -> RestoreResult:
    return backup.put_back(_url(settings), copy, Clock().read)


def settle_loaded(settings: Settings) -> Restored:
    return backup.settle_loaded(_url(settings), Clock().read)


def migrate(settings: Settings) -> str:
    """Bring the tables up to date; give the revision they have then."""
    with closing(open_database(_url(settings), Clock().read)):
        pass
    return look_at_database(_url(settings)).newest


def check(settings: Settings) -> Sequence[str]:
    """Name what is wrong with the database."""
    found = look_at_database(_url(settings))
    if found.in_use:
        raise StoreFailed(
            "A Backburner that is running has the database open.",
            hint="Stop it, or make a copy with `backburner db backup FILE` and check that.",
        )
    if found.revision is None:
        return []
    with closing(open_database(_url(settings), Clock().read)) as database:
        return database.run(lambda tx: find_faults(tx.connection))


def check_copy(copy: Path) -> Sequence[str]:
    return backup.check_copy(copy)


def _url(settings: Settings) -> str:
    return settings.database.get_secret_value()
