"""Renewing tokens: once for all processes, however many of them notice that it is time.

A refresh token that rotates may be used once. So whoever renews takes a lease on the row of the
connection, asks the authorization server outside of any transaction, and stores the new tokens
before anybody uses them. Others wait, and take what was stored. The lease is longer than a request
may take: when it has expired, its holder is dead, and the next one renews.

A process that dies between the reply of the authorization server and its commit takes the new
tokens with it. Nothing can bring them back: no transaction spans both. What can be done is done:
nothing comes between the two but the commit, which is repeated while the database is away or the
vault is locked; the next
process tries the old refresh token soon after the lease has expired, which servers with a grace
period accept; if it is refused, its owner is asked to sign in again, and told why.
"""

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypeVar

import structlog

from backburner.actions.connections import sealed
from backburner.actions.connections.sealed import TokenSet
from backburner.actions.deps import Deps
from backburner.core.connections.connection import AuthKind, Connection, ConnectionState
from backburner.core.errors import (
    ConnectionFailed,
    NotFound,
    SecretDamaged,
    SignedOut,
    StoreFailed,
    VaultLocked,
)
from backburner.core.ids import ConnectionId, UserId
from backburner.ports import EventKind, LeaseState, Tokens, Tx

T = TypeVar("T")

#: Twice what a request to a token endpoint may take.
RENEWAL_LEASE = timedelta(seconds=30)
#: For those who wait for another process; by then they hold the lease, or something is wrong.
WAIT_LIMIT_SECONDS = 60.0
WAIT_POLL_SECONDS = 0.1
#: New tokens are in memory only while the database does not take them.
STORE_ATTEMPT_SECONDS = 120.0
#: The longest pause between two attempts, below a part of the lease.
STORE_PAUSE_SECONDS = 1.0
#: The part of a lease that whoever takes it over waits, in which its holder may store new tokens.
HANDOVER_PARTS = 10

#: Whoever removes a connection waits for it.
REVOCATION_SECONDS = 5.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Taken:
    """The lease, with the tokens to renew."""

    tokens: TokenSet
    #: The last holder died with it.
    is_taken_over: bool


async def renew(
    deps: Deps, connection: Connection, stale: TokenSet, *, lease: timedelta = RENEWAL_LEASE
) -> TokenSet:
    """Return tokens that came after the stale ones; renew them, unless somebody else has.

    Raises `SignedOut`, or `ConnectionFailed` if they cannot be renewed now.
    """
    while True:
        # A caller that is cancelled does not end it: the only refresh token may be on its way.
        found = await asyncio.shield(_start(deps, connection, stale, lease))
        # One that was started for an earlier set may return this one.
        if found.serial != stale.serial:
            return found


async def finish_renewals(deps: Deps) -> None:
    """Wait for the renewals of this process before it ends."""
    if deps.renewals:
        await asyncio.wait(list(deps.renewals.values()), timeout=RENEWAL_LEASE.total_seconds())


def _start(
    deps: Deps, connection: Connection, stale: TokenSet, lease: timedelta
) -> "asyncio.Task[TokenSet]":
    """Return the renewal of this process, which is started if there is none."""
    key = (connection.user_id, connection.id)
    task = deps.renewals.get(key)
    if task is None:
        task = asyncio.create_task(_Renewal(deps, connection, lease).run(stale))
        deps.renewals[key] = task
        task.add_done_callback(lambda done: _forget(deps, key, done))
    return task


def _forget(deps: Deps, key: tuple[UserId, ConnectionId], done: "asyncio.Task[TokenSet]") -> None:
    if deps.renewals.get(key) is done:
        del deps.renewals[key]
    if not done.cancelled():
        # Nobody may be waiting any more.
        done.exception()


class _Renewal:
    def __init__(self, deps: Deps, connection: Connection, lease: timedelta) -> None:
        self._deps = deps
        self._user, self._id = connection.user_id, connection.id
        self._title = connection.title
        self._lease = lease
        self._holder = secrets.token_hex(8)

    async def run(self, stale: TokenSet) -> TokenSet:
        taken = await self._take_or_wait(stale)
        if isinstance(taken, TokenSet):
            return taken
        tokens = taken.tokens
        if taken.is_taken_over and (newer := await self._wait_for_holder(tokens)):
            return newer
        if not tokens.refresh:
            return await self._sign_out(tokens, "its server gave no token to renew it with.")
        try:
            async with asyncio.timeout(self._lease.total_seconds() / 2):
                renewed = await self._deps.oauth.refresh(tokens.issuer, tokens.refresh)
        except SignedOut as error:
            why = error.message
            if taken.is_taken_over:
                why = f"a process ended while it renewed the sign-in, and then {why}"
            return await self._sign_out(tokens, why)
        except TimeoutError:
            await self._give_back()
            raise ConnectionFailed(
                f"The sign-in of {self._title} took too long to renew."
            ) from None
        except BaseException:
            await self._give_back()
            raise
        return await self._store(tokens, renewed)

    async def _take_or_wait(self, stale: TokenSet) -> TokenSet | _Taken:
        """Return newer tokens, or the lease once nobody else has it."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + WAIT_LIMIT_SECONDS
        while loop.time() < deadline:
            asked_at = loop.time()
            found = await self._transact(lambda tx: self._take(tx, stale))
            if isinstance(found, SignedOut):
                raise found
            if isinstance(found, TokenSet):
                return found
            is_fresh = loop.time() - asked_at < self._lease.total_seconds() / 4
            if found is not None and is_fresh:
                return found
            if found is not None:
                # The answer of the database came late: somebody else may have the lease by now.
                await self._give_back()
            await asyncio.sleep(WAIT_POLL_SECONDS)
        raise ConnectionFailed(f"Another process is renewing the sign-in of {self._title}.")

    async def _wait_for_holder(self, tokens: TokenSet) -> TokenSet | None:
        """Return the tokens of the last holder, if it lives and only the database was away."""
        await asyncio.sleep(self._lease.total_seconds() / HANDOVER_PARTS)

        def work(tx: Tx) -> TokenSet | None:
            tx.connections.lock(self._user, self._id)
            found = self._load(tx)
            if found is None or found.serial == tokens.serial:
                return None
            tx.token_leases.release(self._user, self._id, self._holder)
            return found

        return await self._transact(work)

    def _take(self, tx: Tx, stale: TokenSet) -> TokenSet | _Taken | SignedOut | None:
        connection = tx.connections.lock(self._user, self._id)
        tokens = self._load(tx)
        if tokens is None or connection.auth is not AuthKind.OAUTH:
            return signed_out(connection)
        if tokens.serial != stale.serial:
            return tokens
        if connection.state is not ConnectionState.READY:
            return signed_out(connection)
        state = tx.token_leases.take(self._user, self._id, self._holder, lease=self._lease)
        if state is LeaseState.HELD:
            return None
        return _Taken(tokens, is_taken_over=state is LeaseState.TAKEN_OVER)

    async def _store(self, before: TokenSet, renewed: Tokens) -> TokenSet:
        """Store new tokens, as long as it takes: nothing else has them."""
        serial = new_serial()

        def work(tx: Tx) -> TokenSet:
            connection = tx.connections.lock(self._user, self._id)
            tx.token_leases.release(self._user, self._id, self._holder)
            found = self._load(tx)
            if found is None:
                raise signed_out(connection)
            if found.serial != before.serial:
                # Its owner has signed in meanwhile; or this was committed, and the answer lost.
                return found
            after = before.succeed(renewed, serial=serial, now=tx.now)
            sealed.put_tokens(tx, self._deps, self._user, self._id, after)
            ready = replace(connection, scopes=after.scopes, expires_at=after.ends_at)
            # Not if its server wants scopes, which these tokens do not have either.
            if not connection.wanted_scopes:
                # Also if somebody has found the old refresh token used: by us.
                ready = replace(ready, state=ConnectionState.READY, last_error="")
            tx.connections.save(ready)
            return after

        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + STORE_ATTEMPT_SECONDS, 0.1
        while True:
            try:
                return await self._reach(work)
            except SecretDamaged as error:
                raise cannot_open(self._title, error) from error
            except (StoreFailed, VaultLocked) as error:
                _log.warning("tokens.store_failed", connection=self._id, error=str(error))
                if loop.time() + pause > deadline:
                    if isinstance(error, VaultLocked):
                        raise cannot_open(self._title, error) from error
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, STORE_PAUSE_SECONDS)

    async def _sign_out(self, before: TokenSet, why: str) -> TokenSet:
        """Raise `SignedOut`, unless there are newer tokens."""
        found = await self._transact(lambda tx: self._note_signed_out(tx, before, why))
        if isinstance(found, SignedOut):
            raise found
        return found

    def _note_signed_out(self, tx: Tx, before: TokenSet, why: str) -> TokenSet | SignedOut:
        """Note that tokens are good no more, and keep them."""
        connection = tx.connections.lock(self._user, self._id)
        tx.token_leases.release(self._user, self._id, self._holder)
        found = self._load(tx)
        if found is not None and found.serial != before.serial:
            return found
        error = signed_out(connection, why)
        tx.connections.save(
            replace(
                connection,
                state=ConnectionState.SIGNED_OUT,
                last_error=error.message,
                last_error_at=tx.now,
            )
        )
        tx.changed(self._user, None, EventKind.USER)
        return error

    async def _give_back(self) -> None:
        """Release the lease, so that the next process can try at once."""

        def work(tx: Tx) -> None:
            tx.token_leases.release(self._user, self._id, self._holder)

        try:
            await self._transact(work)
        except StoreFailed as error:
            # It expires by itself.
            _log.warning("tokens.release_failed", connection=self._id, error=str(error))

    def _load(self, tx: Tx) -> TokenSet | None:
        return sealed.load_tokens(tx, self._deps, self._user, self._id)

    async def _transact(self, work: Callable[[Tx], T]) -> T:
        try:
            return await self._reach(work)
        except VaultLocked as error:
            # The same for one that is damaged: whoever reads it next says what to do.
            raise cannot_open(self._title, error) from error

    async def _reach(self, work: Callable[[Tx], T]) -> T:
        try:
            return await self._deps.store.transact(work)
        except NotFound:
            raise removed(self._title) from None


async def revoke(deps: Deps, tokens: TokenSet) -> bool:
    """Ask the authorization server to end tokens that are gone here; return whether it has."""
    try:
        async with asyncio.timeout(REVOCATION_SECONDS):
            await deps.oauth.revoke(tokens.issuer, tokens.refresh or tokens.access)
    except (ConnectionFailed, TimeoutError) as error:
        _log.info("tokens.not_revoked", issuer=tokens.issuer.issuer, error=str(error))
        return False
    return True


def new_serial() -> str:
    return secrets.token_hex(8)


def signed_out(connection: Connection, why: str = "") -> SignedOut:
    return SignedOut(
        f"{connection.title} needs you to sign in again{f': {why}' if why else '.'}",
        hint=f"Run `backburner connect {connection.name}`.",
    )


def removed(title: str) -> ConnectionFailed:
    return ConnectionFailed(f"The connection {title} was removed.", permanent=True)


def cannot_open(title: str, error: VaultLocked) -> ConnectionFailed:
    return ConnectionFailed(
        f"The sign-in of {title} cannot be opened: {error.message}", hint=error.hint
    )
