"""Sessions with the servers of connections, and what becomes known of a connection by its use."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from backburner.actions.connections.imported_session import ImportedSession
from backburner.actions.connections.oauth_access import OAuthAccess
from backburner.actions.deps import Deps
from backburner.core.connections import scopes
from backburner.core.connections.connection import AuthKind, Connection
from backburner.core.connections.own_program import IMPORTED
from backburner.core.errors import ConnectionFailed, NotFound, SignedOut
from backburner.core.ids import ConnectionId
from backburner.core.validation import escape_hidden, replace_invalid_characters
from backburner.ports import Authorization, EventKind, ToolServer, ToolSession, Tx

MAX_ERROR_CHARS = 500


def open_session(
    deps: Deps, connection: Connection, authorization: Authorization | None = None
) -> ToolSession:
    """Open a session with the server of a connection; it connects when it is used."""
    if connection.program == IMPORTED:
        return ImportedSession(deps, connection)
    found = authorization or authorize(deps, connection)
    return deps.tool_servers.open(find_server(deps, connection), found)


def find_server(deps: Deps, connection: Connection) -> ToolServer:
    """Find where the server of a connection is. Raises `ConnectionFailed` if it is nowhere."""
    if not connection.program:
        return ToolServer(title=connection.title, url=connection.url)
    program = deps.mcp_programs.get(connection.program)
    if program is None:
        raise ConnectionFailed(
            f"{connection.title} is the program {connection.program!r}, which the operator has"
            " removed from the settings.",
            hint="Ask the operator, or remove the connection.",
            permanent=True,
        )
    return ToolServer(title=connection.title, program=program)


def authorize(deps: Deps, connection: Connection) -> Authorization:
    """Return what signs in to the server of a connection."""
    match connection.auth:
        case AuthKind.NONE:
            return Headers(connection.title)
        case AuthKind.HEADER:
            return StoredHeaders(deps, connection)
        case AuthKind.OAUTH:
            return OAuthAccess(deps, connection)


@dataclass(frozen=True, slots=True)
class Headers:
    """Headers that are known; none for a server that wants no sign-in."""

    title: str
    values: Mapping[str, str] | None = None

    async def headers(self) -> Mapping[str, str]:
        return self.values or {}

    async def renew(self, refused: Mapping[str, str]) -> Mapping[str, str]:
        del refused
        if self.values is None:
            raise SignedOut(f"{self.title} wants a sign-in.")
        raise SignedOut(
            f"{self.title} does not accept this key.", hint="Nothing was changed. Try another key."
        )

    async def check(self, doubted: Mapping[str, str]) -> Mapping[str, str]:
        return doubted


@dataclass(frozen=True, slots=True)
class StoredHeaders:
    """Headers whose values are in the vault."""

    deps: Deps
    connection: Connection

    async def headers(self) -> Mapping[str, str]:
        found = await self.deps.store.read(self._load)
        if found is None:
            raise refused_headers(self.connection)
        return found

    async def renew(self, refused: Mapping[str, str]) -> Mapping[str, str]:
        # Its owner may have typed in others meanwhile.
        found = await self.headers()
        if found == refused:
            raise refused_headers(self.connection)
        return found

    async def check(self, doubted: Mapping[str, str]) -> Mapping[str, str]:
        return doubted

    def _load(self, tx: Tx) -> Mapping[str, str] | None:
        user = self.connection.user_id
        name = headers_secret(self.connection.id)
        secret = self.deps.vault.load(tx.secrets, user, name)
        found: Mapping[str, str] | None = None if secret is None else json.loads(secret)
        return found


def refused_headers(connection: Connection) -> SignedOut:
    return SignedOut(
        f"{connection.title} does not accept the key of this connection.",
        hint=f"Type in another: `backburner connect {connection.name}`.",
    )


def secret_prefix(connection_id: ConnectionId) -> str:
    """Return how the names of all secrets of a connection begin."""
    return f"connections/{connection_id}/"


def headers_secret(connection_id: ConnectionId) -> str:
    return f"{secret_prefix(connection_id)}headers"


async def note_use(
    deps: Deps, connection: Connection, error: ConnectionFailed | None = None
) -> bool:
    """Record what went wrong with a connection, or that nothing does any more.

    Only calls of agents count as its use, and the end of a call records it.

    Returns False if it lacks scopes that another sign-in would not bring.
    """

    def work(tx: Tx) -> bool:
        try:
            found = tx.connections.lock(connection.user_id, connection.id)
        except NotFound:
            return True
        if error is None:
            if found.last_error:
                tx.connections.save(replace(found, last_error="", last_error_at=None))
                tx.changed(found.user_id, None, EventKind.USER)
            return True
        text = describe_error(error)
        after: Connection | None = found
        # Unless its owner has signed in since.
        if isinstance(error, SignedOut) and found.sign_in_revision == connection.sign_in_revision:
            after = scopes.sign_out(found, error.scopes)
        if after is not None and after != found:
            tx.connections.save(after)
        tx.connections.note_use(found.user_id, found.id, at=tx.now, error=text)
        if text != found.last_error:
            tx.changed(found.user_id, None, EventKind.USER)
        return after is not None

    return await deps.store.transact(work)


def describe_error(error: ConnectionFailed) -> str:
    """Write an error so that it can be stored and shown; a server may have a part in its text."""
    return escape_hidden(replace_invalid_characters(str(error)))[:MAX_ERROR_CHARS]
