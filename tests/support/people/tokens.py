"""Tokens that nobody asked for over HTTP."""

from collections.abc import Iterable
from datetime import datetime

from backburner.actions.accounts import credentials
from backburner.actions.accounts.credentials import IssuedCredential
from backburner.actions.deps import Deps
from backburner.core.accounts import CredentialKind, Scope
from backburner.core.conversation import Use
from backburner.core.ids import UserId
from backburner.ports import Tx


async def issue_token(
    deps: Deps,
    user: UserId,
    scopes: Iterable[Scope],
    *,
    name: str,
    uses: Iterable[Use] = (),
    expires_at: datetime | None = None,
) -> str:
    """Issue a token and return its secret."""
    token = await issue_credential(deps, user, scopes, name=name, uses=uses, expires_at=expires_at)
    return token.secret


async def issue_credential(
    deps: Deps,
    user: UserId,
    scopes: Iterable[Scope],
    *,
    name: str,
    uses: Iterable[Use] = (),
    expires_at: datetime | None = None,
) -> IssuedCredential:
    given, used = frozenset(scopes), frozenset(uses)

    def work(tx: Tx) -> IssuedCredential:
        kind = CredentialKind.TOKEN
        return credentials.issue(tx, user, kind, given, uses=used, name=name, expires_at=expires_at)

    return await deps.store.transact(work)
