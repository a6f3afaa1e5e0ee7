"""Back up, restore, check and migrate the database."""

import asyncio
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import IO

from backburner.app.clock import Clock
from backburner.core.errors import BadRequest, StoreFailed
from backburner.settings import Settings
from backburner.store.db import Database
from backburner.store.lifecycle import backup
from backburner.store.lifecycle.backup import RestoreResult
from backburner.store.lifecycle.check import find_faults
from backburner.store.lifecycle.opening import look_at_database, open_database
from backburner.store.lifecycle.restore import Restored


async def back_up_to_unnamed_file(database: Database, folder: Path) -> IO[bytes]:
    """Back up a database in use to a deleted file, whose space is freed when it is closed."""
    return await asyncio.to_thread(backup.copy_to_unnamed_file, database, folder)


def is_sqlite(settings: Settings) -> bool:
    return _url(settings).startswith("sqlite")


def is_in_use(settings: Settings) -> bool:
    return look_at_database(_url(settings)).in_use


def back_up_offline(settings: Settings, file: Path) -> None:
    """Back up a database that no server has open."""
    if not is_sqlite(settings):
        raise backup.use_pg_dump()
    backup.copy_at_rest(_url(settings), file)


def restore(settings: Settings, file: Path) -> RestoreResult:
    return backup.put_back(_url(settings), file, Clock().read)


def settle_loaded(settings: Settings) -> Restored:
    """Finish a restore for which another program has loaded the data."""
    # Connections that a pooler keeps would count as others.
    return backup.settle_loaded(_direct_url(settings), Clock().read)


def migrate(settings: Settings) -> str:
    """Update the tables; return their revision."""
    with closing(open_database(_url(settings), Clock().read)):
        pass
    return look_at_database(_url(settings)).newest


def check(settings: Settings) -> Sequence[str]:
    """Return the errors found in the database."""
    # Behind a pooler transactions begin with settings, after which no snapshot can be taken.
    url = _direct_url(settings)
    state = look_at_database(url)
    if state.in_use:
        raise StoreFailed(
            "The database is in use by a running server.",
            hint="Stop it, or run `backburner db backup FILE` and check the backup.",
        )
    if state.revision is None:
        raise _no_database(url)
    with closing(open_database(url, Clock().read)) as database:
        return database.run(lambda tx: find_faults(tx.connection))


def check_backup(file: Path) -> Sequence[str]:
    return backup.check_copy(file)


def _no_database(url: str) -> BadRequest:
    if url.startswith("sqlite"):
        path = url.removeprefix("sqlite:///")
        return BadRequest(f"There is no database at {path}.", hint="Name its folder with --data.")
    return BadRequest("The database is empty.", hint="Create its tables: `backburner db migrate`.")


def _url(settings: Settings) -> str:
    return settings.database.get_secret_value()


def _direct_url(settings: Settings) -> str:
    return (settings.database_direct_url or settings.database).get_secret_value()
