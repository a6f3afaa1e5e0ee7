"""Sign-in by password, by link or with a reset secret; and password changes."""

from backburner.actions.accounts import rate_limit
from backburner.actions.accounts.credentials import IssuedCredential, issue, revoke_credentials
from backburner.actions.accounts.passwords import hash_password, verify_password
from backburner.actions.deps import Deps
from backburner.core.accounts import (
    Caller,
    CredentialKind,
    check_direct,
    scopes_of,
    secret_digest,
)
from backburner.core.errors import BadRequest, Conflict, NotAllowed
from backburner.core.ids import UserId
from backburner.core.passwords import check_login, check_password
from backburner.ports import Hint, HintKind, Tx


async def sign_in(
    deps: Deps, login: str, password: str, *, address: str, before: str = "", device: str = ""
) -> IssuedCredential | None:
    """Start a session; `before` is the secret of the session it replaces. None: wrong password."""
    login = login.strip().lower()
    by_login, by_address = rate_limit.login_key(login, address), rate_limit.address_key(address)
    await rate_limit.count_attempt(deps, by_login, by_address)
    user, stored_hash = await deps.store.read(lambda tx: tx.accounts.find_login(login))
    if not await verify_password(password, stored_hash, deps.password_cost) or user is None:
        return None

    def work(tx: Tx) -> IssuedCredential | None:
        if tx.accounts.find_login(login) != (user, stored_hash):
            # Changed or disabled meanwhile.
            return None
        tx.rate_limits.reset(by_login)
        tx.rate_limits.refund(by_address)
        return start_session(tx, user, before, device=device)

    return await deps.store.transact(work)


async def sign_in_by_link(
    deps: Deps, secret: str, *, address: str, before: str = "", device: str = ""
) -> IssuedCredential | None:
    """Start a session with a link, which is consumed. None: the link is no longer valid."""
    owner = await rate_limit.find_by_secret(deps, secret, CredentialKind.LINK, address=address)
    if owner is None:
        return None

    def work(tx: Tx) -> IssuedCredential | None:
        if not tx.credentials.consume(secret_digest(secret), CredentialKind.LINK, now=tx.now):
            return None
        return start_session(tx, owner[0], before, device=device)

    return await deps.store.transact(work)


async def issue_link(deps: Deps, user: UserId) -> IssuedCredential:
    """Issue a single-use sign-in link, replacing the previous one."""

    def work(tx: Tx) -> IssuedCredential:
        tx.credentials.revoke_all(user, [CredentialKind.LINK], now=tx.now)
        return issue(tx, user, CredentialKind.LINK)

    return await deps.store.transact(work)


async def issue_own_link(deps: Deps, caller: Caller) -> IssuedCredential:
    check_direct(caller)
    return await issue_link(deps, caller.user)


async def change_password(
    deps: Deps,
    caller: Caller,
    *,
    login: str | None,
    current: str,
    password: str,
    address: str,
    device: str = "",
) -> IssuedCredential:
    """Set a password, revoke every session and token, and start a new session."""
    check_direct(caller)
    name, stored_hash = await deps.store.read(
        lambda tx: _login_and_password(tx, caller.user, login)
    )
    check_password(password, login=name)
    if stored_hash is not None:
        await _check_current(deps, caller.user, current, stored_hash, address=address)
    hashed = await hash_password(password, deps.password_cost)

    def work(tx: Tx) -> IssuedCredential:
        tx.users.lock(caller.user)
        if tx.accounts.password_hash(caller.user) != stored_hash:
            raise Conflict("The password was changed meanwhile.", hint="Sign in again.")
        set_password(tx, caller.user, name, hashed)
        return start_session(tx, caller.user, device=device)

    return await deps.store.transact(work)


async def redeem_reset(
    deps: Deps, secret: str, password: str, *, address: str, device: str = ""
) -> IssuedCredential | None:
    """Set a new password with a reset secret from an operator. None: it is no longer valid."""
    owner = await rate_limit.find_by_secret(deps, secret, CredentialKind.RESET, address=address)
    if owner is None:
        return None
    user = owner[0]
    name, _ = await deps.store.read(lambda tx: _login_and_password(tx, user, None))
    hashed = await hash_password(check_password(password, login=name), deps.password_cost)

    def work(tx: Tx) -> IssuedCredential | None:
        if not tx.credentials.consume(secret_digest(secret), CredentialKind.RESET, now=tx.now):
            return None
        set_password(tx, user, name, hashed)
        return start_session(tx, user, device=device)

    return await deps.store.transact(work)


def set_password(tx: Tx, user: UserId, login: str, hashed: str) -> None:
    """Save a new password, and revoke the sessions, tokens and links of the user."""
    if not tx.accounts.set_password(user, login=login, password=hashed):
        raise Conflict("That login is taken.", hint="Choose another.")
    revoke_credentials(tx, user)


def start_session(tx: Tx, user: UserId, before: str = "", *, device: str = "") -> IssuedCredential:
    """Start a session with a new secret, and revoke the browser's previous one."""
    found = tx.credentials.identify(secret_digest(before), now=tx.now) if before else None
    previous = found[0] if found else None
    if previous is not None and previous.kind is CredentialKind.SESSION:
        tx.credentials.revoke(previous.user, previous.credential, previous.kind, now=tx.now)
        tx.hint(Hint(HintKind.CHANGED, previous.user))
    scopes = scopes_of(tx.accounts.load(user).role)
    return issue(tx, user, CredentialKind.SESSION, scopes, device=device)


def _login_and_password(tx: Tx, user: UserId, login: str | None) -> tuple[str, str | None]:
    name = login or tx.accounts.load(user).login
    if not name:
        raise BadRequest("A password needs a login.", hint="Choose a login.")
    return check_login(name), tx.accounts.password_hash(user)


async def _check_current(
    deps: Deps, user: UserId, current: str, stored_hash: str, *, address: str
) -> None:
    by_login = rate_limit.login_key(user, address)
    await rate_limit.count_attempt(deps, by_login, rate_limit.address_key(address))
    if not await verify_password(current, stored_hash, deps.password_cost):
        raise NotAllowed("The current password is wrong.")
    await deps.store.transact(lambda tx: tx.rate_limits.reset(by_login))
