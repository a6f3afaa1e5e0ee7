"""Limits on sign-in attempts, per account and per address."""

from datetime import timedelta
from math import ceil

from backburner.actions.deps import Deps
from backburner.core.accounts import LOOPBACK, CredentialKind, Scope, network_of, secret_digest
from backburner.core.errors import TooManyAttempts
from backburner.core.ids import UserId


def login_key(login: str, address: str) -> str:
    """Count attempts from this machine on their own: nobody elsewhere can lock its user out."""
    place = "here" if network_of(address) == LOOPBACK else "elsewhere"
    # A digest, because users sometimes type their password into the login field.
    return f"login:{place}:{secret_digest(login)}"


def address_key(address: str) -> str:
    return f"address:{network_of(address)}"


async def count_attempt(deps: Deps, *keys: str) -> None:
    """Count an attempt before it is checked, so that concurrent attempts cannot pass the limit."""
    wait = await deps.store.transact(lambda tx: tx.rate_limits.count(keys, now=tx.now))
    if wait is not None:
        minutes = ceil(wait / timedelta(minutes=1))
        raise TooManyAttempts(hint=f"Try again in {minutes} min.", retry_after=wait)


async def find_by_secret(
    deps: Deps, secret: str, kind: CredentialKind, *, address: str
) -> tuple[UserId, frozenset[Scope]] | None:
    """Find the owner of a single-use secret; an unknown secret counts as an attempt.

    The right one is never refused for wrong ones: it is too long to guess, and on one machine
    anybody can use up the attempts of its address.
    """
    digest = secret_digest(secret)
    owner = await deps.store.read(lambda tx: tx.credentials.peek(digest, kind, now=tx.now))
    if owner is None:
        await count_attempt(deps, address_key(address))
    return owner
