"""Tokens that nobody asked for over HTTP."""

from collections.abc import Iterable
from datetime import datetime

from backburner.actions.accounts import credentials
from backburner.actions.accounts.credentials import IssuedCredential
from backburner.actions.deps import Deps
from backburner.core.accounts import CredentialKind, Scope
from backburner.core.conversation import Use
from backburner.core.ids import UserId
from backburner.ports import NewCredential


async def issue_token(
    deps: Deps,
    user: UserId,
    scopes: Iterable[Scope],
    *,
    name: str,
    uses: Iterable[Use] = (),
    connections: Iterable[str] = (),
    expires_at: datetime | None = None,
) -> str:
    """Issue a token and return its secret."""
    token = await issue_credential(
        deps,
        user,
        scopes,
        name=name,
        uses=uses,
        connections=connections,
        expires_at=expires_at,
    )
    return token.secret


async def issue_credential(
    deps: Deps,
    user: UserId,
    scopes: Iterable[Scope],
    *,
    name: str,
    uses: Iterable[Use] = (),
    connections: Iterable[str] = (),
    expires_at: datetime | None = None,
) -> IssuedCredential:
    new = NewCredential(
        CredentialKind.TOKEN,
        frozenset(scopes),
        frozenset(uses),
        name,
        expires_at,
        frozenset(connections),
    )
    return await deps.store.transact(lambda tx: credentials.issue_new(tx, user, new))
