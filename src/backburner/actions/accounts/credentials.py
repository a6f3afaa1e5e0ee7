"""Who somebody is, what they are let in with, and how that ends."""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from backburner.actions.browse import Page, make_page
from backburner.actions.deps import Deps
from backburner.core.accounts import (
    CREDENTIAL_LIFETIMES,
    REUSABLE_CREDENTIALS,
    Caller,
    Credential,
    CredentialKind,
    Scope,
    check_new_token,
    scopes_of,
    secret_digest,
)
from backburner.core.errors import BadRequest, LimitReached
from backburner.core.ids import UserId
from backburner.core.passwords import check_name
from backburner.ports import Hint, HintKind, PageKey, Tx

#: So that a secret is known for one wherever it turns up.
CREDENTIAL_PREFIX = "bb_"
MAX_TOKENS = 100
#: The token of the command line on the machine of the server; each start replaces it.
LOCAL_CLIENT_NAME = "command line of this machine"
#: Whatever gives a way in: all of it ends when somebody is shut out or changes their password.
SIGN_IN_KINDS = (*REUSABLE_CREDENTIALS, CredentialKind.LINK, CredentialKind.RESET)


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedCredential:
    """A credential that was just made. The secret is shown once and kept nowhere."""

    id: str
    secret: str = field(repr=False)
    expires_at: datetime | None


async def identify(deps: Deps, secret: str) -> Caller | None:
    """Find out who shows a credential; it is looked up each time, so that none outlives its end."""
    shown = secret_digest(secret)
    return await deps.store.transact(lambda tx: tx.credentials.identify(shown, now=tx.now))


def issue(
    tx: Tx,
    user: UserId,
    kind: CredentialKind,
    scopes: Iterable[Scope] = (),
    *,
    name: str = "",
    expires_at: datetime | None = None,
) -> IssuedCredential:
    """Make a credential; without a time it is good as long as its kind is."""
    secret = CREDENTIAL_PREFIX + secrets.token_urlsafe(32)
    if expires_at is None and kind in CREDENTIAL_LIFETIMES:
        expires_at = tx.now + CREDENTIAL_LIFETIMES[kind]
    made = tx.credentials.issue(
        user, secret_digest(secret), kind, scopes, name=name, expires_at=expires_at, now=tx.now
    )
    return IssuedCredential(id=made, secret=secret, expires_at=expires_at)


async def create_token(
    deps: Deps,
    caller: Caller,
    scopes: frozenset[Scope],
    *,
    name: str,
    lives: timedelta | None,
) -> IssuedCredential:
    """Give a caller a token that may no more than they do, and for no longer."""
    name = check_name(name)
    if not name or not scopes:
        raise BadRequest("A token needs a name and at least one scope.")
    if name == LOCAL_CLIENT_NAME:
        raise BadRequest("That name is taken.", hint="Choose another.")

    def work(tx: Tx) -> IssuedCredential:
        tx.users.lock(caller.user)
        kept = tx.credentials.page(caller.user, CredentialKind.TOKEN, limit=MAX_TOKENS, now=tx.now)
        if len(kept) == MAX_TOKENS:
            raise LimitReached(f"You have {MAX_TOKENS} tokens.", hint="Revoke one first.")
        until = check_new_token(caller, scopes, tx.now + lives if lives else None)
        return issue(tx, caller.user, CredentialKind.TOKEN, scopes, name=name, expires_at=until)

    return await deps.store.transact(work)


async def replace_local_token(deps: Deps, user: UserId) -> str:
    """Make the token of the command line on this machine, in place of the one before."""

    def work(tx: Tx) -> IssuedCredential:
        token = CredentialKind.TOKEN
        tx.credentials.revoke_all(user, [token], name=LOCAL_CLIENT_NAME, now=tx.now)
        return issue(
            tx, user, token, scopes_of(tx.accounts.load(user).role), name=LOCAL_CLIENT_NAME
        )

    return (await deps.store.transact(work)).secret


async def list_credentials(
    deps: Deps, user: UserId, kind: CredentialKind, after: PageKey | None, *, limit: int
) -> Page[Credential]:
    """List the sessions or tokens of somebody that are good."""
    (place,) = after or ("",)
    found = await deps.store.transact(
        lambda tx: tx.credentials.page(user, kind, after=place, limit=limit + 1, now=tx.now)
    )
    return make_page(found, limit, lambda last: (last.id,))


async def revoke_credential(
    deps: Deps, user: UserId, credential: str, kind: CredentialKind
) -> None:
    """End a session or a token at once; streams that it opened end with it."""

    def work(tx: Tx) -> None:
        tx.credentials.revoke(user, credential, kind, now=tx.now)
        tx.hint(Hint(HintKind.CHANGED, user))

    await deps.store.transact(work)


async def sign_out_everywhere(deps: Deps, user: UserId) -> None:
    """End every session and token of somebody, and what could become one."""
    await deps.store.transact(lambda tx: revoke_credentials(tx, user))


def revoke_credentials(
    tx: Tx, user: UserId, kinds: Iterable[CredentialKind] = SIGN_IN_KINDS
) -> None:
    """End what somebody is let in with; whoever listens for them looks again."""
    tx.credentials.revoke_all(user, kinds, now=tx.now)
    tx.hint(Hint(HintKind.CHANGED, user))
