"""Helps somebody in who cannot sign in, from the machine itself.

It asks nobody who they are: whoever may write the database may do anything here anyway.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, field

from backburner.actions.accounts import sign_in, users
from backburner.actions.accounts.credentials import IssuedCredential
from backburner.actions.deps import Deps
from backburner.app.clock import Clock
from backburner.app.machines import NoTools
from backburner.app.serving import in_url
from backburner.core.accounts import User
from backburner.core.errors import NotFound
from backburner.core.ids import UserId
from backburner.settings import Settings
from backburner.store.lifecycle.opening import look_at_database, open_database


@dataclass(frozen=True, slots=True)
class WayIn:
    user: User
    link: str = field(repr=False)


def make_link(settings: Settings, login: str | None) -> WayIn:
    """Make a link that signs somebody in once; without a login, the owner."""
    return _make(settings, login, sign_in.make_link, "sign-in")


def make_reset(settings: Settings, login: str | None) -> WayIn:
    """Make a link with which somebody sets a new password; without a login, the owner."""
    return _make(settings, login, users.reset_password, "reset")


def _make(
    settings: Settings,
    login: str | None,
    make: Callable[[Deps, UserId], Awaitable[IssuedCredential]],
    page: str,
) -> WayIn:
    async def work(deps: Deps) -> WayIn:
        user = await users.find(deps, login)
        made = await make(deps, user.id)
        return WayIn(user, f"{_address(settings)}/{page}#{made.secret}")

    url = settings.database.get_secret_value()
    found = look_at_database(url)
    if found.revision is None and not found.in_use:
        raise NotFound("There is no database of Backburner here.", hint="Name its folder: --data.")
    with closing(open_database(url, Clock().read)) as database:
        deps = Deps(store=database, engines={}, default_profile="", toolbox=NoTools())
        return asyncio.run(work(deps))


def _address(settings: Settings) -> str:
    """Give the address where a server with these settings is found."""
    scheme = "https" if settings.tls_certificate else "http"
    host = "localhost" if settings.host in ("0.0.0.0", "::") else in_url(settings.host)  # noqa: S104
    return settings.public_url or f"{scheme}://{host}:{settings.port}"
