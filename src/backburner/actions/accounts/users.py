"""Users: the owner of an install, and those whom operators let in, shut out and help."""

from collections.abc import Sequence

from backburner.actions.accounts import rate_limit
from backburner.actions.accounts.credentials import (
    SIGN_IN_KINDS,
    IssuedCredential,
    issue,
    revoke_credentials,
)
from backburner.actions.accounts.passwords import hash_password
from backburner.actions.accounts.sign_in import set_password, start_session
from backburner.actions.browse import Page, make_page
from backburner.actions.deps import Deps
from backburner.core.accounts import (
    Caller,
    CredentialKind,
    Invitation,
    Role,
    User,
    role_of,
    scopes_of,
    secret_digest,
)
from backburner.core.errors import Conflict, NotFound
from backburner.core.ids import UserId, new_user_id
from backburner.core.passwords import check_login, check_name, check_password
from backburner.ports import PageKey, Tx


async def ensure_owner(deps: Deps) -> User | None:
    """Make the owner where there is nobody yet; None: there was one, who is gone."""

    def work(tx: Tx) -> User | None:
        owner = tx.accounts.ensure_owner(now=tx.now)
        return tx.accounts.load(owner) if owner else None

    return await deps.store.transact(work)


async def find(deps: Deps, login: str | None) -> User:
    """Find somebody who may sign in; without a login, the owner."""

    def work(tx: Tx) -> User:
        named = check_login(login) if login else None
        user = tx.accounts.find_login(named)[0] if named else tx.accounts.ensure_owner(now=tx.now)
        if user is None:
            raise NotFound("Nobody signs in as that.", hint="Name somebody who is not disabled.")
        return tx.accounts.load(user)

    return await deps.store.transact(work)


async def has_only_owner(deps: Deps) -> bool:
    """Tell whether there is nobody but an owner who signs in with links."""
    there = await deps.store.transact(lambda tx: tx.accounts.page(limit=2))
    return [user.login for user in there] == [None]


async def has_any_password(deps: Deps) -> bool:
    return await deps.store.transact(lambda tx: tx.accounts.has_any_password())


async def list_users(deps: Deps, after: PageKey | None, *, limit: int) -> Page[User]:
    (place,) = after or ("",)
    found = await deps.store.transact(lambda tx: tx.accounts.page(after=place, limit=limit + 1))
    return make_page(found, limit, lambda last: (last.id,))


async def add(deps: Deps, *, login: str, name: str, role: Role) -> tuple[User, IssuedCredential]:
    """Add a user, with what they set their password with: nobody else ever knows it."""
    login, name, user = check_login(login), check_name(name), new_user_id()

    def work(tx: Tx) -> tuple[User, IssuedCredential]:
        _add(tx, user, login=login, name=name, role=role)
        return tx.accounts.load(user), issue(tx, user, CredentialKind.RESET)

    return await deps.store.transact(work)


async def reset_password(deps: Deps, user: UserId) -> IssuedCredential:
    """Make what a user sets a new password with; until they do, the one they have is good."""

    def work(tx: Tx) -> IssuedCredential:
        tx.users.lock(user)
        if tx.accounts.load(user).login is None:
            raise Conflict("They sign in with a link.", hint="`backburner user link` makes one.")
        tx.credentials.revoke_all(user, [CredentialKind.RESET], now=tx.now)
        return issue(tx, user, CredentialKind.RESET)

    return await deps.store.transact(work)


async def change(
    deps: Deps,
    user: UserId,
    *,
    name: str | None = None,
    role: Role | None = None,
    disabled: bool | None = None,
) -> User:
    """Change what is known of somebody; what they are let in with ends where they may less."""

    def work(tx: Tx) -> User:
        operators = tx.accounts.lock_operators()
        was = tx.accounts.load(user)
        tx.accounts.change(user, name=name, role=role)
        if disabled is not None and disabled != (was.disabled_at is not None):
            tx.accounts.disable(user, at=tx.now if disabled else None)
        now_is = tx.accounts.load(user)
        _keep_an_operator(operators, now_is)
        if now_is.role is not was.role or (disabled and was.disabled_at is None):
            revoke_credentials(tx, user, (*SIGN_IN_KINDS, CredentialKind.INVITATION))
        return now_is

    name = None if name is None else check_name(name)
    return await deps.store.transact(work)


async def invite(deps: Deps, caller: Caller, *, name: str, role: Role) -> IssuedCredential:
    """Make what one person can make themselves an account with."""
    name = check_name(name)
    return await deps.store.transact(
        lambda tx: issue(tx, caller.user, CredentialKind.INVITATION, scopes_of(role), name=name)
    )


async def list_invitations(deps: Deps, after: PageKey | None, *, limit: int) -> Page[Invitation]:
    """List the invitations that are good, whichever operator made them."""
    (place,) = after or ("",)
    found = await deps.store.transact(
        lambda tx: tx.credentials.invitations(after=place, limit=limit + 1, now=tx.now)
    )
    return make_page(found, limit, lambda last: (last.id,))


async def revoke_invitation(deps: Deps, invitation: str) -> None:
    """Take an invitation back."""
    await deps.store.transact(lambda tx: tx.credentials.revoke_invitation(invitation, now=tx.now))


async def accept(
    deps: Deps, secret: str, *, login: str, password: str, name: str, address: str
) -> IssuedCredential | None:
    """Make an account with an invitation, and begin a session. None: it is good no longer."""
    login, name, user = check_login(login), check_name(name), new_user_id()
    check_password(password, login=login)
    kind = CredentialKind.INVITATION
    found = await rate_limit.find_by_secret(deps, secret, kind, address=address)
    if found is None:
        return None
    role = role_of(found[1])
    hashed = await hash_password(password, deps.password_cost)

    def work(tx: Tx) -> IssuedCredential | None:
        if not tx.credentials.consume(secret_digest(secret), kind, now=tx.now):
            return None
        _add(tx, user, login=login, name=name, role=role)
        set_password(tx, user, login, hashed)
        return start_session(tx, user)

    return await deps.store.transact(work)


def _add(tx: Tx, user: UserId, *, login: str, name: str, role: Role) -> None:
    if not tx.accounts.add(user, login=login, name=name, role=role, now=tx.now):
        raise Conflict("That login is taken.", hint="Choose another.")


def _keep_an_operator(before: Sequence[UserId], changed: User) -> None:
    remains = changed.role is Role.OPERATOR and changed.disabled_at is None
    if list(before) == [changed.id] and not remains:
        raise Conflict(
            "Somebody has to see to accounts, and there is no other operator.",
            hint="Make somebody else one first.",
        )
