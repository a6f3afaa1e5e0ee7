"""Removes folders that a command has written, whatever it left in them."""

import asyncio
import shutil
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from backburner.process.command import COMMAND_PATH, Command
from backburner.process.run import run


async def remove_tree(folder: Path, *, within: timedelta) -> bool:
    """Remove a folder with its content; False: something is left."""
    if await asyncio.to_thread(_remove, folder):
        return True
    # The shell removes what Python cannot: very deep folders, and folders without permissions.
    thorough = 'chmod -R u+rwx -- "$0"; rm -rf -- "$0"'
    argv = ("/bin/sh", "-c", thorough, str(folder))
    await run(Command(argv=argv, env={"PATH": COMMAND_PATH}, cwd=Path("/")), within=within)
    return not await asyncio.to_thread(folder.exists)


def _remove(folder: Path) -> bool:
    with suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()
