"""Access to the server of a connection by the tokens of its owner."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from backburner.actions.connections import sealed
from backburner.actions.connections.sealed import TokenSet
from backburner.actions.connections.token_renewal import (
    RENEWAL_LEASE,
    cannot_open,
    removed,
    renew,
    signed_out,
)
from backburner.actions.deps import Deps
from backburner.core.connections.connection import AuthKind, Connection, ConnectionState
from backburner.core.connections.token_expiry import is_due
from backburner.core.errors import ConnectionFailed, NotFound, SecretDamaged, SignedOut, VaultLocked
from backburner.ports import Tx

AUTHORIZATION = "Authorization"


@dataclass(frozen=True, slots=True)
class OAuthAccess:
    """Signs requests in by a token that is renewed ahead of its expiry."""

    deps: Deps
    connection: Connection
    lease: timedelta = RENEWAL_LEASE

    async def headers(self) -> Mapping[str, str]:
        tokens, now = await self._load()
        if not is_due(obtained_at=tokens.obtained_at, expires_at=tokens.expires_at, now=now):
            return _to_headers(tokens)
        try:
            return _to_headers(await renew(self.deps, self.connection, tokens, lease=self.lease))
        except SignedOut:
            raise
        except ConnectionFailed:
            # Ahead of time: the present one may last until the trouble is over.
            if tokens.expires_at is not None and now < tokens.expires_at:
                return _to_headers(tokens)
            raise

    async def renew(self, refused: Mapping[str, str]) -> Mapping[str, str]:
        tokens, _ = await self._load()
        if _to_headers(tokens) != dict(refused):
            # Somebody else has renewed them since.
            return await self.headers()
        return _to_headers(await renew(self.deps, self.connection, tokens, lease=self.lease))

    async def check(self, doubted: Mapping[str, str]) -> Mapping[str, str]:
        tokens, _ = await self._load()
        # Without a refresh token, nobody but the owner could say more.
        return await self.renew(doubted) if tokens.refresh else doubted

    async def _load(self) -> tuple[TokenSet, datetime]:
        """Load the tokens as they are now, and the time."""

        def work(tx: Tx) -> tuple[Connection, TokenSet | None, datetime]:
            user, connection_id = self.connection.user_id, self.connection.id
            found = tx.connections.load(user, connection_id)
            return found, sealed.load_tokens(tx, self.deps, user, connection_id), tx.now

        try:
            connection, tokens, now = await self.deps.store.read(work)
        except NotFound:
            raise removed(self.connection.title) from None
        except SecretDamaged as error:
            raise signed_out(self.connection, error.message) from error
        except VaultLocked as error:
            raise cannot_open(self.connection.title, error) from error
        is_ready = connection.state is ConnectionState.READY and connection.auth is AuthKind.OAUTH
        if tokens is None or not is_ready:
            raise signed_out(connection)
        return tokens, now


def _to_headers(tokens: TokenSet) -> dict[str, str]:
    return {AUTHORIZATION: f"Bearer {tokens.access}"}
