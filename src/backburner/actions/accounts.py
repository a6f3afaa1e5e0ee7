"""Who somebody is, and how they come to be let in."""

import secrets
from collections.abc import Iterable
from datetime import datetime

from backburner.actions.deps import Deps
from backburner.core.accounts import Caller, CredentialKind, Scope, digest
from backburner.core.ids import UserId
from backburner.ports import Tx

#: So that a secret is known for one wherever it turns up.
PREFIX = "bb_"


async def identify(deps: Deps, secret: str) -> Caller | None:
    """Find out who shows a credential; it is looked up each time, so that none outlives its end."""
    shown = digest(secret)
    return await deps.store.transact(lambda tx: tx.accounts.identify(shown, now=tx.now))


async def issue_token(
    deps: Deps,
    user: UserId,
    scopes: Iterable[Scope],
    *,
    name: str,
    expires_at: datetime | None = None,
) -> str:
    """Give out a token: what is returned is shown once and kept nowhere."""
    secret = PREFIX + secrets.token_urlsafe(32)
    given = frozenset(scopes)

    def work(tx: Tx) -> None:
        tx.accounts.issue(
            user,
            digest(secret),
            CredentialKind.TOKEN,
            given,
            name=name,
            expires_at=expires_at,
            now=tx.now,
        )

    await deps.store.transact(work)
    return secret
