"""The owner of an install: made at the first start, and let in without anything being set up."""

import asyncio
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from backburner.actions.accounts import credentials, sign_in, users
from backburner.app.building import App
from backburner.core.errors import BadSetting
from backburner.store.dialect import is_sqlite

#: What the command line on this machine is let in with.
CLIENT_NAME = "client.toml"
_HEAD = "# Written anew by each `backburner up`. There is a secret in it.\n"


async def check_open(app: App) -> None:
    """Refuse to let other machines connect where nobody could sign in with a password."""
    if app.settings.is_open and not await users.anybody_has_password(app.deps):
        raise BadSetting(
            f"Other machines reach {app.settings.host}, and nobody has a password yet.",
            hint="Start it on 127.0.0.1 first, sign in, and set one.",
        )


async def welcome(app: App, address: str) -> str | None:
    """See that there is an owner; give a link for them while they have no password."""
    owner = await users.ensure_owner(app.deps)
    path = app.settings.data / CLIENT_NAME
    if owner is not None and is_sqlite(app.database.engine) and await users.is_alone(app.deps):
        token = await credentials.replace_local_token(app.deps, owner.id)
        await asyncio.to_thread(_keep, path, address, token)
    else:
        # One that lies there is of a time when the owner was alone.
        await asyncio.to_thread(path.unlink, missing_ok=True)
    if owner is None or owner.has_password or owner.disabled_at is not None:
        return None
    link = await sign_in.make_link(app.deps, owner.id)
    return f"{address}/sign-in#{link.secret}"


def _keep(path: Path, address: str, token: str) -> None:
    """Write the file, all of it or nothing, and at no moment for others to read."""
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "w", encoding="utf-8") as file:  # noqa: PTH123 (it is a descriptor)
            # Neither has anything that JSON and TOML write differently.
            file.write(f"{_HEAD}address = {json.dumps(address)}\ntoken = {json.dumps(token)}\n")
            file.flush()
            os.fsync(file.fileno())
        Path(draft).replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(draft).unlink()
        raise
