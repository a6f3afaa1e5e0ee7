"""The secrets of connections in the vault: sign-ins and programs, named by connection."""

import json
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from backburner.actions.deps import Deps
from backburner.core.connections.oauth_client import OAuthClient
from backburner.core.connections.own_program import read_program, write_program
from backburner.core.connections.program import StdioProgram
from backburner.core.errors import VaultLocked
from backburner.core.ids import ConnectionId, UserId
from backburner.ports import PendingSignIn, TokenIssuer, Tokens, Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSet:
    """The tokens of a connection, and where others come from."""

    #: A new one for each set. Whoever renews replaces only the set that it has renewed.
    serial: str
    issuer: TokenIssuer
    access: str = field(repr=False)
    refresh: str = field(default="", repr=False)
    scopes: tuple[str, ...] = ()
    obtained_at: datetime
    expires_at: datetime | None = None

    @property
    def ends_at(self) -> datetime | None:
        """Say when the sign-in ends; None: never by itself, because its tokens are renewed."""
        return None if self.refresh else self.expires_at

    def is_of_same_client(self, other: "TokenSet") -> bool:
        here, there = self.issuer, other.issuer
        return (here.issuer, here.client.client_id) == (there.issuer, there.client.client_id)

    def succeed(self, tokens: Tokens, *, serial: str, now: datetime) -> "TokenSet":
        """Return the set after a refresh; what the reply leaves out stays as it was."""
        return replace(
            self,
            serial=serial,
            access=tokens.access,
            refresh=tokens.refresh or self.refresh,
            scopes=self.scopes if tokens.scopes is None else tokens.scopes,
            obtained_at=now,
            expires_at=None if tokens.lifetime is None else now + tokens.lifetime,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalAddress:
    """The parameters of the address that an authorization server sends a browser to."""

    state: str = field(repr=False)
    code: str = field(default="", repr=False)
    error: str = ""
    #: None: it does not say.
    issuer: str | None = None
    path: str = ""


def load_tokens(tx: Tx, deps: Deps, user: UserId, connection_id: ConnectionId) -> TokenSet | None:
    secret = deps.vault.load(tx.secrets, user, _name(connection_id, "oauth"))
    if secret is None:
        return None
    found = json.loads(secret)
    expires_at = found.pop("expires_at")
    return TokenSet(
        issuer=_to_issuer(found.pop("issuer")),
        scopes=tuple(found.pop("scopes")),
        obtained_at=datetime.fromisoformat(found.pop("obtained_at")),
        expires_at=expires_at and datetime.fromisoformat(expires_at),
        **found,
    )


def load_if_readable(
    tx: Tx, deps: Deps, user: UserId, connection_id: ConnectionId
) -> TokenSet | None:
    """Load tokens; None also where they cannot be opened."""
    try:
        return load_tokens(tx, deps, user, connection_id)
    except VaultLocked:
        return None


def put_tokens(
    tx: Tx, deps: Deps, user: UserId, connection_id: ConnectionId, tokens: TokenSet
) -> None:
    _put(tx, deps, user, _name(connection_id, "oauth"), asdict(tokens))


def load_pending(
    tx: Tx, deps: Deps, user: UserId, connection_id: ConnectionId
) -> PendingSignIn | None:
    secret = deps.vault.load(tx.secrets, user, _name(connection_id, "sign-in"))
    if secret is None:
        return None
    found = json.loads(secret)
    issuer, scopes = _to_issuer(found.pop("issuer")), tuple(found.pop("scopes"))
    return PendingSignIn(issuer=issuer, scopes=scopes, **found)


def put_pending(
    tx: Tx, deps: Deps, user: UserId, connection_id: ConnectionId, pending: PendingSignIn
) -> None:
    _put(tx, deps, user, _name(connection_id, "sign-in"), asdict(pending))


def load_arrived(
    tx: Tx, deps: Deps, user: UserId, connection_id: ConnectionId
) -> FinalAddress | None:
    secret = deps.vault.load(tx.secrets, user, _name(connection_id, "sign-in/arrived"))
    return None if secret is None else FinalAddress(**json.loads(secret))


def put_arrived(
    tx: Tx, deps: Deps, user: UserId, connection_id: ConnectionId, arrived: FinalAddress
) -> None:
    _put(tx, deps, user, _name(connection_id, "sign-in/arrived"), asdict(arrived))


def remove_pending(tx: Tx, user: UserId, connection_id: ConnectionId) -> None:
    tx.secrets.remove(user, _name(connection_id, "sign-in"))


def remove_headers(tx: Tx, user: UserId, connection_id: ConnectionId) -> None:
    tx.secrets.remove(user, _name(connection_id, "headers"))


def load_program(
    tx: Tx, deps: Deps, user: UserId, connection_id: ConnectionId
) -> tuple[StdioProgram, str] | None:
    """Load the program that a user has imported for a connection, and the id of its machine."""
    secret = deps.vault.load(tx.secrets, user, _name(connection_id, "program"))
    return None if secret is None else read_program(secret)


def put_program(
    tx: Tx, deps: Deps, user: UserId, connection_id: ConnectionId, program: StdioProgram
) -> None:
    name = _name(connection_id, "program")
    secret = write_program(program, deps.folders.machine)
    deps.vault.put(tx.secrets, user, name, secret)


def _name(connection_id: ConnectionId, what: str) -> str:
    return f"connections/{connection_id}/{what}"


def _put(tx: Tx, deps: Deps, user: UserId, name: str, values: dict[str, Any]) -> None:
    deps.vault.put(tx.secrets, user, name, json.dumps(values, default=datetime.isoformat).encode())


def _to_issuer(values: dict[str, Any]) -> TokenIssuer:
    client = values.pop("client")
    client["scopes"] = tuple(client.get("scopes", ()))
    return TokenIssuer(client=OAuthClient(**client), **values)
