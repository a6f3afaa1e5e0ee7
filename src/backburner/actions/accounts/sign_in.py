"""Signing in: by login and password, or with something that is good once."""

from backburner.actions.accounts import rate_limit
from backburner.actions.accounts.credentials import IssuedCredential, issue, revoke_credentials
from backburner.actions.accounts.passwords import hash_password, verify_password
from backburner.actions.deps import Deps
from backburner.core.accounts import Caller, CredentialKind, scopes_of, secret_digest
from backburner.core.errors import BadRequest, Conflict, NotAllowed
from backburner.core.ids import UserId
from backburner.core.passwords import check_login, check_password
from backburner.ports import Hint, HintKind, Tx


async def sign_in(
    deps: Deps, login: str, password: str, *, address: str, before: str = ""
) -> IssuedCredential | None:
    """Begin a session; `before` is the secret of the one it replaces. None: that is not right."""
    login = login.strip().lower()
    who, place = rate_limit.login_key(login), rate_limit.address_key(address)
    await rate_limit.count_attempt(deps, who, place)
    user, kept = await deps.store.transact(lambda tx: tx.accounts.find_login(login))
    if not await verify_password(password, kept, deps.password_cost) or user is None:
        return None

    def work(tx: Tx) -> IssuedCredential | None:
        if tx.accounts.find_login(login) != (user, kept):
            # Changed or disabled since we looked.
            return None
        tx.rate_limits.reset(who)
        tx.rate_limits.refund(place)
        return start_session(tx, user, before)

    return await deps.store.transact(work)


async def sign_in_by_link(
    deps: Deps, secret: str, *, address: str, before: str = ""
) -> IssuedCredential | None:
    """Begin a session with a link, which is used up. None: it is good no longer."""
    found = await rate_limit.find_by_secret(deps, secret, CredentialKind.LINK, address=address)
    if found is None:
        return None

    def work(tx: Tx) -> IssuedCredential | None:
        if not tx.credentials.consume(secret_digest(secret), CredentialKind.LINK, now=tx.now):
            return None
        return start_session(tx, found[0], before)

    return await deps.store.transact(work)


async def make_link(deps: Deps, user: UserId) -> IssuedCredential:
    """Make a link that signs somebody in once, in place of the one before."""

    def work(tx: Tx) -> IssuedCredential:
        tx.credentials.revoke_all(user, [CredentialKind.LINK], now=tx.now)
        return issue(tx, user, CredentialKind.LINK)

    return await deps.store.transact(work)


async def make_own_link(deps: Deps, caller: Caller) -> IssuedCredential:
    """Make a link for a caller who may do all that it gives."""
    _must_be_whole(caller)
    return await make_link(deps, caller.user)


async def change_password(
    deps: Deps, caller: Caller, *, login: str | None, current: str, password: str, address: str
) -> IssuedCredential:
    """Set a password, which ends every session and token, and begin a new session."""
    _must_be_whole(caller)
    name, kept = await deps.store.transact(lambda tx: _login_and_password(tx, caller.user, login))
    check_password(password, login=name)
    if kept is not None:
        await _check_current(deps, caller.user, current, kept, address=address)
    hashed = await hash_password(password, deps.password_cost)

    def work(tx: Tx) -> IssuedCredential:
        tx.users.lock(caller.user)
        if tx.accounts.password_hash(caller.user) != kept:
            raise Conflict("The password was changed just now.", hint="Sign in again.")
        set_password(tx, caller.user, name, hashed)
        return start_session(tx, caller.user)

    return await deps.store.transact(work)


async def redeem_reset(
    deps: Deps, secret: str, password: str, *, address: str
) -> IssuedCredential | None:
    """Set a new password with what an operator gave out for it. None: that is good no longer."""
    found = await rate_limit.find_by_secret(deps, secret, CredentialKind.RESET, address=address)
    if found is None:
        return None
    user = found[0]
    name, _ = await deps.store.transact(lambda tx: _login_and_password(tx, user, None))
    hashed = await hash_password(check_password(password, login=name), deps.password_cost)

    def work(tx: Tx) -> IssuedCredential | None:
        if not tx.credentials.consume(secret_digest(secret), CredentialKind.RESET, now=tx.now):
            return None
        set_password(tx, user, name, hashed)
        return start_session(tx, user)

    return await deps.store.transact(work)


def set_password(tx: Tx, user: UserId, login: str, hashed: str) -> None:
    """Keep a new password; whatever the one before it gave ends."""
    if not tx.accounts.set_password(user, login=login, password=hashed):
        raise Conflict("That login is taken.", hint="Choose another.")
    revoke_credentials(tx, user)


def start_session(tx: Tx, user: UserId, before: str = "") -> IssuedCredential:
    """Begin a session under a new secret, and end the one that the browser had."""
    had = tx.credentials.identify(secret_digest(before), now=tx.now) if before else None
    if had is not None and had.kind is CredentialKind.SESSION:
        tx.credentials.revoke(had.user, had.credential, had.kind, now=tx.now)
        tx.hint(Hint(HintKind.CHANGED, had.user))
    scopes = scopes_of(tx.accounts.load(user).role)
    return issue(tx, user, CredentialKind.SESSION, scopes)


def _login_and_password(tx: Tx, user: UserId, login: str | None) -> tuple[str, str | None]:
    wanted = login or tx.accounts.load(user).login
    if not wanted:
        raise BadRequest("With a password goes a login.", hint="Choose one.")
    return check_login(wanted), tx.accounts.password_hash(user)


async def _check_current(
    deps: Deps, user: UserId, current: str, kept: str, *, address: str
) -> None:
    who = rate_limit.login_key(user)
    await rate_limit.count_attempt(deps, who, rate_limit.address_key(address))
    if not await verify_password(current, kept, deps.password_cost):
        raise NotAllowed("The password you have now is another one.")
    await deps.store.transact(lambda tx: tx.rate_limits.reset(who))


def _must_be_whole(caller: Caller) -> None:
    if not caller.has_full_access:
        raise NotAllowed(
            "This credential is too narrow for that.", hint="Sign in, and do it from there."
        )
