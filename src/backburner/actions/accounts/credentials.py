"""Credentials: identify callers, issue, list and revoke sessions, tokens and links."""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from backburner.actions.browse import Page, make_page
from backburner.actions.deps import Deps
from backburner.core.accounts import (
    CREDENTIAL_LIFETIMES,
    LOCAL_CLIENT_NAME,
    REUSABLE_CREDENTIALS,
    Caller,
    Credential,
    CredentialKind,
    Scope,
    check_new_token,
    scopes_of,
    secret_digest,
)
from backburner.core.connections import access
from backburner.core.conversation import Use
from backburner.core.errors import BadRequest, LimitReached
from backburner.core.ids import UserId
from backburner.core.passwords import check_name
from backburner.ports import EventKind, Hint, HintKind, NewCredential, PageKey, Tx

#: Makes a leaked secret recognisable, for example to secret scanners.
CREDENTIAL_PREFIX = "bb_"
MAX_TOKENS = 100
#: Everything that signs a user in; all of it is revoked when they are disabled or change their
#: password.
SIGN_IN_KINDS = (*REUSABLE_CREDENTIALS, CredentialKind.LINK, CredentialKind.RESET)


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedCredential:
    """A new credential. The secret is shown once and not stored."""

    id: str
    user: UserId
    secret: str = field(repr=False)
    expires_at: datetime | None


async def identify(deps: Deps, secret: str) -> Caller | None:
    """Find the caller of a credential; not cached, so that a revocation takes effect at once."""
    digest = secret_digest(secret)
    found = await deps.store.read(lambda tx: tx.credentials.identify(digest, now=tx.now))
    if found is None:
        return None
    caller, records_use = found
    if records_use:
        await deps.store.transact(lambda tx: tx.credentials.record_use(digest, now=tx.now))
    return caller


def issue(
    tx: Tx,
    user: UserId,
    kind: CredentialKind,
    scopes: Iterable[Scope] = (),
    *,
    name: str = "",
    expires_at: datetime | None = None,
    device: str = "",
) -> IssuedCredential:
    """Make a credential; without a time it is good as long as its kind is."""
    if expires_at is None and kind in CREDENTIAL_LIFETIMES:
        expires_at = tx.now + CREDENTIAL_LIFETIMES[kind]
    if kind is CredentialKind.SESSION:
        tx.changed(user, None, EventKind.USER)
    new = NewCredential(kind, scopes, name=name, expires_at=expires_at, device=device)
    return issue_new(tx, user, new)


def issue_new(tx: Tx, user: UserId, new: NewCredential) -> IssuedCredential:
    secret = CREDENTIAL_PREFIX + secrets.token_urlsafe(32)
    made = tx.credentials.issue(user, secret_digest(secret), new, now=tx.now)
    return IssuedCredential(id=made, user=user, secret=secret, expires_at=new.expires_at)


async def create_token(
    deps: Deps,
    caller: Caller,
    scopes: frozenset[Scope],
    uses: frozenset[Use] = frozenset(),
    connections: frozenset[str] = frozenset(),
    *,
    name: str,
    lifetime: timedelta | None,
) -> IssuedCredential:
    """Issue a token with no more scopes than the caller's.

    Its work may use `uses`, and `connections` by their names.
    """
    check_new_token(caller, scopes)
    name = check_name(name)
    if not name or not scopes:
        raise BadRequest("A token needs a name and at least one scope.")
    if name == LOCAL_CLIENT_NAME:
        raise BadRequest("That name is taken.", hint="Choose another.")

    def work(tx: Tx) -> IssuedCredential:
        tx.users.lock(caller.user)
        tx.connections.hold(caller.user, connections)
        access.choose(sorted(connections), existing=tx.connections.list(caller.user))
        tokens = tx.credentials.page(
            caller.user, CredentialKind.TOKEN, limit=MAX_TOKENS, now=tx.now
        )
        if len(tokens) == MAX_TOKENS:
            raise LimitReached(f"Limit reached: {MAX_TOKENS} tokens.", hint="Revoke one first.")
        expires_at = tx.now + lifetime if lifetime else None
        token = CredentialKind.TOKEN
        new = NewCredential(token, scopes, uses, name, expires_at, connections)
        tx.changed(caller.user, None, EventKind.USER)
        return issue_new(tx, caller.user, new)

    return await deps.store.transact(work)


async def issue_local_token(deps: Deps, user: UserId) -> IssuedCredential:
    """Issue a token for the local command line; the previous one stays valid."""

    def work(tx: Tx) -> IssuedCredential:
        scopes = scopes_of(tx.accounts.load(user).role)
        return issue(tx, user, CredentialKind.TOKEN, scopes, name=LOCAL_CLIENT_NAME)

    return await deps.store.transact(work)


async def revoke_other_local_tokens(deps: Deps, user: UserId, token: IssuedCredential) -> None:
    """Revoke the tokens that the local command line had before this one."""
    await deps.store.transact(
        lambda tx: tx.credentials.revoke_named(
            user, LOCAL_CLIENT_NAME, kept_id=token.id, now=tx.now
        )
    )


async def list_credentials(
    deps: Deps, user: UserId, kind: CredentialKind, after: PageKey | None, *, limit: int
) -> Page[Credential]:
    """List the valid sessions or tokens of a user."""
    (last_id,) = after or ("",)
    rows = await deps.store.read(
        lambda tx: tx.credentials.page(user, kind, after=last_id, limit=limit + 1, now=tx.now)
    )
    return make_page(rows, limit, lambda last: (last.id,))


async def revoke_credential(
    deps: Deps, user: UserId, credential_id: str, kind: CredentialKind
) -> None:
    """Revoke a session or token at once; streams that it opened end."""

    def work(tx: Tx) -> None:
        tx.credentials.revoke(user, credential_id, kind, now=tx.now)
        tx.changed(user, None, EventKind.USER)

    await deps.store.transact(work)


async def sign_out_everywhere(deps: Deps, user: UserId) -> None:
    """Revoke every session and token of a user, and links that could start one."""
    await deps.store.transact(lambda tx: revoke_credentials(tx, user))


def revoke_credentials(
    tx: Tx, user: UserId, kinds: Iterable[CredentialKind] = SIGN_IN_KINDS
) -> None:
    """Revoke credentials of a user, and notify open streams."""
    tx.credentials.revoke_all(user, kinds, now=tx.now)
    tx.hint(Hint(HintKind.CHANGED, user))
