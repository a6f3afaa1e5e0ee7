"""OAuth 2.1 with the authorization servers of connections, in steps that share no process."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Protocol
from urllib.parse import urlsplit

from backburner.core.connections.oauth_client import OAuthClient
from backburner.core.ids import ConnectionId, UserId

#: Where authorization servers send browsers back to, if somebody has registered us there by hand.
CALLBACK_PATH = "/oauth/callback"
#: Where others do, each to an address of its own, and where they learn who we are there.
ISSUER_CALLBACK_PATH = "/oauth/from/{issuer_key}"
ISSUER_DOCUMENT_PATH = "/oauth/client/{issuer_key}.json"
#: Where those look that learned who we are before each had its own; their tokens are still renewed.
CLIENT_DOCUMENT_PATH = "/oauth/client.json"
_ISSUER_KEY = re.compile(r"[0-9a-f]{32}")


def issuer_key(issuer: str) -> str:
    """Return what stands for an authorization server in addresses of ours."""
    return sha256(issuer.encode()).hexdigest()[:32]


def is_issuer_key(text: str) -> bool:
    return bool(_ISSUER_KEY.fullmatch(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenIssuer:
    """Where tokens come from: recorded when a sign-in begins, and not asked for again."""

    #: Exactly as it names itself.
    issuer: str
    token_endpoint: str
    #: Empty: tokens cannot be revoked.
    revocation_endpoint: str = ""
    #: The server that tokens are for.
    resource: str
    client: OAuthClient
    #: Its user has named it, and not only the server.
    is_named: bool = False

    @property
    def token_host(self) -> str:
        return urlsplit(self.token_endpoint).netloc


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    access: str = field(repr=False)
    #: Empty: the server sent none.
    refresh: str = field(default="", repr=False)
    #: None: the server did not say, so they are those that were asked for.
    scopes: tuple[str, ...] | None = None
    #: None: the server did not say.
    lifetime: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingSignIn:
    """The data that the end of a sign-in needs from its beginning."""

    issuer: TokenIssuer
    redirect_uri: str
    scopes: tuple[str, ...]
    #: Final addresses name the issuer.
    names_issuer: bool
    #: The secret of PKCE.
    verifier: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInRequest:
    """The beginning of a sign-in: where its user has to go."""

    #: It has the state in it.
    url: str = field(repr=False)
    #: The host of that address, to be shown before anybody goes there.
    host: str
    state: str = field(repr=False)
    pending: PendingSignIn


class OAuth(Protocol):
    """Raises `ConnectionFailed`; `permanent`: the servers would have to change."""

    async def begin(
        self,
        server_url: str,
        *,
        origin: str,
        client: OAuthClient | None = None,
        issuer: str = "",
        earlier: TokenIssuer | None = None,
        scopes: Iterable[str] = (),
    ) -> SignInRequest:
        """Find out how to sign in to a server, and register there if that is needed.

        `origin` is ours, where the browser of the user reaches us.
        A client that was given for the `earlier` issuer counts if it is still the same one, and
        one that was registered there is used again.
        `issuer` is the authorization server that the user expects, and trusts; another is refused.
        `scopes` are asked for besides those that the server names.
        """

    async def exchange(self, pending: PendingSignIn, code: str) -> Tokens:
        """Exchange the code of a final address for tokens."""

    async def refresh(self, issuer: TokenIssuer, refresh_token: str) -> Tokens:
        """Renew tokens. Raises `SignedOut` if the authorization server will not do so again."""

    async def revoke(self, issuer: TokenIssuer, token: str) -> None:
        """Revoke a token. Raises `ConnectionFailed` if it stays good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedSignIn:
    """A sign-in whose user is away at an authorization server. What is secret is in the vault."""

    connection_id: ConnectionId
    #: The digest of its state.
    digest: str
    #: The browser session that has started it; empty: a command in a terminal has.
    session: str = ""
    #: The digest of the secret of that command.
    command: str = ""
    #: The final address has arrived, and the command may finish it.
    arrived: bool = False
    expires_at: datetime


class StartedSignIns(Protocol):
    """At most one for each connection. Lock the connection before changing one."""

    def put(self, user: UserId, started: StartedSignIn) -> None:
        """Add a sign-in in place of the one before."""

    def find(self, user: UserId, connection_id: ConnectionId) -> StartedSignIn | None: ...
    def find_by_digest(self, user: UserId, digest: str) -> StartedSignIn | None: ...
    def mark_arrived(self, user: UserId, connection_id: ConnectionId) -> None: ...
    def remove(self, user: UserId, connection_id: ConnectionId) -> None: ...
    def expired(self, *, before: datetime, limit: int) -> Sequence[tuple[UserId, ConnectionId]]:
        """Find sign-ins of all users that have expired."""


class LeaseState(StrEnum):
    HELD = "held"  #: Somebody else has it.
    TAKEN = "taken"
    TAKEN_OVER = "taken_over"  #: From a holder that has not given it back.


class TokenLeases(Protocol):
    """Who renews the tokens of a connection. Lock the connection before taking a lease."""

    def take(
        self, user: UserId, connection_id: ConnectionId, holder: str, *, lease: timedelta
    ) -> LeaseState:
        """Take the lease, unless somebody else has it."""

    def release(self, user: UserId, connection_id: ConnectionId, holder: str) -> bool:
        """Give the lease back; False: it was somebody else's."""
