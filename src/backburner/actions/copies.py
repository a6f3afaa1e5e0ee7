"""A copy of the whole database, for those who see to the whole."""

from typing import IO

from backburner.actions.deps import Deps


async def copy(deps: Deps) -> IO[bytes]:
    """Copy the database while it is in use; the file is gone once it is closed."""
    return await deps.copy_database()
