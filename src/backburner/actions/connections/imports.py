"""Servers in the file of another client, added from a browser: looked at first, then one by one.

The file is sent again with each, and nothing of it is kept but what is added: its secrets are
sealed as those of a connection that is added by its address, on the same path.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from backburner.actions.accounts import consent
from backburner.actions.connections import manage
from backburner.actions.connections.definitions import Check
from backburner.actions.connections.manage import NewConnection
from backburner.actions.deps import Deps
from backburner.core.accounts import Caller
from backburner.core.connections.connection import Connection
from backburner.core.connections.imports.choices import ImportChoice, fill_in, list_choices
from backburner.core.connections.imports.client_files import parse
from backburner.core.connections.imports.client_server import ClientFile
from backburner.core.connections.naming import is_same_url, make_name
from backburner.core.errors import Conflict

_FILE = "The file"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenServer:
    """A server of a file that its user has agreed to."""

    content: str = field(repr=False)
    number: int
    #: The address that was agreed to.
    url: str
    #: Values that the file only refers to; secret.
    values: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedServer:
    """A server of a file, and the connection to it that there is already."""

    choice: ImportChoice
    known: Connection | None


async def preview(deps: Deps, caller: Caller, content: str) -> Sequence[OfferedServer]:
    """List the servers of a file without their secrets. Nothing is stored."""
    consent.check_scope(caller)
    choices = await asyncio.to_thread(_list_choices, content)
    known = await deps.store.read(lambda tx: tx.connections.list(caller.user))
    return [OfferedServer(choice=one, known=_find_same(known, one)) for one in choices]


async def add(deps: Deps, caller: Caller, chosen: ChosenServer) -> Check:
    """Add a connection to a server of a file, with its secrets; the server is asked for its tools.

    Raises `Conflict` if the address is not the one that was agreed to, or is there already.
    """
    consent.check_scope(caller)
    file = await asyncio.to_thread(_parse, chosen.content)
    server = fill_in(file, chosen.number, chosen.values)
    if server.url != chosen.url:
        raise Conflict("The file has another address there.", hint="Look at the file again.")
    known = await deps.store.read(lambda tx: tx.connections.list(caller.user))
    same = _find(known, server.url, server.headers)
    if same is not None:
        raise Conflict(f"You have this server already as {same.name}.")
    new = NewConnection(
        url=server.url,
        # Other headers for an address that is there: a second account.
        name=make_name(server.name, {one.name for one in known}),
        title=server.name,
        headers=server.headers,
    )
    return await manage.add(deps, caller, new)


def _parse(content: str) -> ClientFile:
    return parse(content, _FILE)


def _list_choices(content: str) -> Sequence[ImportChoice]:
    return list_choices(_parse(content))


def _find_same(known: Iterable[Connection], choice: ImportChoice) -> Connection | None:
    return _find(known, choice.url, choice.headers) if choice.url else None


def _find(known: Iterable[Connection], url: str, headers: Iterable[str]) -> Connection | None:
    """Find the connection to an address that has all of these headers."""
    wanted = {name.casefold() for name in headers}
    for one in known:
        has_all = wanted <= {name.casefold() for name in one.headers}
        if one.url and has_all and is_same_url(one.url, url):
            return one
    return None
