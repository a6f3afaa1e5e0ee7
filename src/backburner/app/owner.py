"""The owner of an installation: created at the first start, and helped to sign in."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from backburner.actions.accounts import credentials, profile, sign_in, users
from backburner.actions.accounts.credentials import IssuedCredential
from backburner.actions.deps import Deps
from backburner.app.build import App
from backburner.app.clock import Clock
from backburner.app.local_zone import find_local_zone
from backburner.app.machines import NoTools
from backburner.app.urls import server_url
from backburner.core.accounts import ON_THE_SERVER, User, ZoneSource
from backburner.core.errors import BadSetting, NotFound
from backburner.core.ids import UserId
from backburner.data_folder import CLIENT_FILE
from backburner.private_file import write_private_file
from backburner.settings import Settings
from backburner.store.dialect import is_sqlite
from backburner.store.lifecycle.opening import look_at_database, open_database

_HEADER = "# Rewritten by each `backburner up`. This file contains a secret.\n"


@dataclass(frozen=True, slots=True)
class UserLink:
    user: User
    link: str = field(repr=False)


async def check_open(app: App) -> None:
    """Refuse connections from other machines while no account has a password."""
    if app.settings.is_open and not await users.has_any_password(app.deps):
        raise BadSetting(
            f"Other machines can reach {app.settings.host}, but no account has a password yet.",
            hint="Start on 127.0.0.1 first, sign in, and set a password.",
        )


async def welcome(app: App, address: str) -> str | None:
    """Create the owner if needed; return a sign-in link while the owner has no password."""
    owner = await users.ensure_owner(app.deps)
    zone = await asyncio.to_thread(find_local_zone)
    if owner is not None and zone is not None:
        await profile.note_zone(app.deps, owner.id, zone, ZoneSource.TERMINAL)
    path = app.settings.data / CLIENT_FILE
    if (
        owner is not None
        and is_sqlite(app.database.engine)
        and await users.has_only_owner(app.deps)
    ):
        token = await credentials.issue_local_token(app.deps, owner.id)
        await asyncio.to_thread(_write_client_file, path, address, token.secret)
        # After it is in the file: commands may be started at any time.
        await credentials.revoke_other_local_tokens(app.deps, owner.id, token)
    else:
        # An existing file is from a time when the owner was the only user.
        await asyncio.to_thread(path.unlink, missing_ok=True)
    if owner is None or owner.has_password or owner.disabled_at is not None:
        return None
    link = await sign_in.issue_link(app.deps, owner.id)
    return f"{address}/sign-in#{link.secret}"


def make_sign_in_link(settings: Settings, login: str | None) -> UserLink:
    """Create a sign-in link directly in the database; without a login, for the owner."""
    return _make_link(settings, login, sign_in.issue_link, "sign-in")


def make_reset_link(settings: Settings, login: str | None) -> UserLink:
    """Create a password-reset link directly in the database; without a login, for the owner."""
    reset = partial(users.reset_password, actor=ON_THE_SERVER)
    return _make_link(settings, login, reset, "reset")


def _make_link(
    settings: Settings,
    login: str | None,
    issue: Callable[[Deps, UserId], Awaitable[IssuedCredential]],
    page: str,
) -> UserLink:
    # Without authentication: an operator who can write the database could do the same by hand.
    async def work(deps: Deps) -> UserLink:
        user = await users.find(deps, login)
        issued = await issue(deps, user.id)
        return UserLink(user, f"{server_url(settings)}/{page}#{issued.secret}")

    url = settings.database.get_secret_value()
    state = look_at_database(url)
    if state.revision is None and not state.in_use:
        raise NotFound("Found no Backburner database.", hint="Select its folder with --data.")
    with closing(open_database(url, Clock().read)) as database:
        deps = Deps(store=database, engines={}, default_profile="", toolbox=NoTools())
        return asyncio.run(work(deps))


def _write_client_file(path: Path, address: str, token: str) -> None:
    # For these values JSON and TOML strings are the same.
    content = f"{_HEADER}address = {json.dumps(address)}\ntoken = {json.dumps(token)}\n"
    write_private_file(path, [content.encode()], overwrite=True)
