"""Attempts to get in: so many for an account and from an address, and then there is a wait."""

from datetime import timedelta
from math import ceil

from backburner.actions.deps import Deps
from backburner.core.accounts import CredentialKind, Scope, network_of, secret_digest
from backburner.core.errors import TooManyAttempts
from backburner.core.ids import UserId
from backburner.ports import Tx


def login_key(login: str) -> str:
    # A digest, because people type passwords where the login belongs.
    return f"login:{secret_digest(login)}"


def address_key(address: str) -> str:
    return f"address:{network_of(address)}"


async def count_attempt(deps: Deps, *keys: str) -> None:
    """Count one before it is looked at, so that many at once are no way around the limit."""
    wait = await deps.store.transact(lambda tx: tx.rate_limits.count(keys, now=tx.now))
    if wait is not None:
        minutes = ceil(wait / timedelta(minutes=1))
        raise TooManyAttempts(hint=f"Try again in {minutes} min.", retry_after=wait)


async def find_by_secret(
    deps: Deps, secret: str, kind: CredentialKind, *, address: str
) -> tuple[UserId, frozenset[Scope]] | None:
    """See whose a secret is that can be used once; an attempt with nobody's counts."""
    place = address_key(address)
    await count_attempt(deps, place)

    def work(tx: Tx) -> tuple[UserId, frozenset[Scope]] | None:
        found = tx.credentials.peek(secret_digest(secret), kind, now=tx.now)
        if found is not None:
            tx.rate_limits.refund(place)
        return found

    return await deps.store.transact(work)
