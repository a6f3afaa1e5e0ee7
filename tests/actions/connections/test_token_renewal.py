"""Renewing tokens: once, by whoever comes first, and never so that they are lost."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest
from support.doubles.clock import SetClock
from support.oauth_peer.peer import OAuthPeer
from support.stage.connections import (
    LOOPBACK,
    add_connection,
    begin,
    caller,
    load,
    sign_in_as,
    sign_in_deps,
)
from support.stage.make import USER

from backburner.actions.connections import sessions, sign_in, token_renewal
from backburner.actions.connections.oauth_access import OAuthAccess
from backburner.actions.deps import Deps
from backburner.core.connections.connection import AuthKind, Connection, ConnectionState
from backburner.core.errors import ConnectionFailed, SignedOut, StoreFailed, VaultLocked
from backburner.gateway.oauth.flow import CheckedOAuth
from backburner.ports import LONG_DEADLINE, TokenIssuer, Tokens, Tx
from backburner.store.db import Database

T = TypeVar("T")
EXPIRED = timedelta(seconds=3)


@pytest.fixture
async def mail(deps: Deps, database: Database, peer: OAuthPeer) -> Connection:
    return await sign_in_as(deps, peer, add_connection(database, peer))


def access(deps: Deps, connection: Connection) -> OAuthAccess:
    return OAuthAccess(deps, connection)


def other_process(database: Database, keys: Path, **more: Any) -> Deps:
    """Make what another process would have: nothing but the database is shared."""
    return sign_in_deps(database, keys, **more)


async def is_let_in(peer: OAuthPeer, headers: object) -> bool:
    async with httpx2.AsyncClient(trust_env=False) as client:
        sent = {**dict(headers), "accept": "application/json"}  # type: ignore[call-overload]
        return (await client.post(peer.server, json={}, headers=sent)).status_code != 401


async def test_a_token_is_used_until_shortly_before_it_expires(
    deps: Deps, clock: SetClock, peer: OAuthPeer, mail: Connection
) -> None:
    first = await access(deps, mail).headers()
    clock.advance(timedelta(seconds=2))
    assert await access(deps, mail).headers() == first
    assert peer.count("refreshed") == 0

    clock.advance(timedelta(seconds=0.5))
    second = await access(deps, mail).headers()

    assert second != first
    assert peer.count("refreshed") == 1
    assert await is_let_in(peer, second)


async def test_the_connection_shows_what_was_renewed(
    deps: Deps, database: Database, clock: SetClock, peer: OAuthPeer, mail: Connection
) -> None:
    failed = replace(mail, last_error="Mail could not be reached.")
    database.run(lambda tx: tx.connections.save(failed))
    clock.advance(EXPIRED)
    peer.switch(access_seconds=3600)
    await access(deps, mail).headers()

    after = load(database, mail)
    assert (after.last_error, after.expires_at) == ("", None)
    # Only its owner's sign-ins count.
    assert after.sign_in_revision == mail.sign_in_revision


async def test_what_a_reply_leaves_out_stays_as_it_was(
    deps: Deps, database: Database, clock: SetClock, peer: OAuthPeer, mail: Connection
) -> None:
    peer.switch(rotate=False, terse=True)
    for _ in range(3):
        clock.advance(EXPIRED)
        await access(deps, mail).headers()

    assert peer.count("refreshed") == 3
    assert load(database, mail).scopes == ("mail.read", "mail.send")


async def test_many_users_of_one_expired_token_renew_it_once(
    database: Database, keys: Path, clock: SetClock, peer: OAuthPeer, mail: Connection
) -> None:
    """Three in each of four processes that know nothing of each other."""
    clock.advance(EXPIRED)
    peer.switch(token_seconds=0.3)
    processes = [other_process(database, keys) for _ in range(4)]

    found = await asyncio.gather(
        *(access(deps, mail).headers() for deps in processes for _ in range(3))
    )

    assert len({str(headers) for headers in found}) == 1
    assert peer.count("refreshed") == 1
    assert peer.count("refused") == 0


async def test_a_refused_token_is_renewed_once_and_others_take_the_new_one(
    deps: Deps, database: Database, keys: Path, peer: OAuthPeer, mail: Connection
) -> None:
    old = await access(deps, mail).headers()
    peer.expire("ann")

    new = await access(deps, mail).renew(old)
    # In another process, which was refused with the same one.
    same = await access(other_process(database, keys), mail).renew(old)

    assert new == same != old
    assert await is_let_in(peer, new)
    assert peer.count("refreshed") == 1


async def test_revoked_tokens_sign_the_connection_out_and_are_kept(
    deps: Deps, database: Database, clock: SetClock, peer: OAuthPeer, mail: Connection
) -> None:
    peer.revoke("ann")
    clock.advance(EXPIRED)

    with pytest.raises(SignedOut, match=r"Mail needs you to sign in again.*invalid_grant"):
        await access(deps, mail).headers()

    after = load(database, mail)
    assert after.state is ConnectionState.SIGNED_OUT
    assert "invalid_grant" in after.last_error
    assert database.run(lambda tx: tx.secrets.load(USER, f"connections/{mail.id}/oauth"))
    # Nobody asks the server again before its owner has signed in.
    with pytest.raises(SignedOut):
        await access(deps, mail).headers()
    assert len(peer.record()["token_requests"]) == 2

    again = await sign_in_as(deps, peer, mail)
    assert (again.state, again.last_error) == (ConnectionState.READY, "")
    assert await is_let_in(peer, await access(deps, mail).headers())


async def test_trouble_of_the_authorization_server_signs_nobody_out(
    deps: Deps, database: Database, clock: SetClock, peer: OAuthPeer, mail: Connection
) -> None:
    clock.advance(EXPIRED)
    for status in (503, 429, 500):
        peer.switch(token_statuses=[status])
        with pytest.raises(ConnectionFailed, match=str(status)) as caught:
            await access(deps, mail).headers()
        assert not isinstance(caught.value, SignedOut)

    assert load(database, mail).state is ConnectionState.READY
    assert await is_let_in(peer, await access(deps, mail).headers())


async def test_trouble_ahead_of_the_expiry_is_not_noticed(
    deps: Deps, clock: SetClock, peer: OAuthPeer, mail: Connection
) -> None:
    first = await access(deps, mail).headers()
    clock.advance(timedelta(seconds=2.5))
    peer.switch(token_statuses=[503])

    assert await access(deps, mail).headers() == first
    assert await access(deps, mail).headers() != first


async def test_without_a_refresh_token_the_owner_is_asked(
    deps: Deps, database: Database, clock: SetClock, peer: OAuthPeer
) -> None:
    peer.switch(refresh_tokens=False)
    mail = await sign_in_as(deps, peer, add_connection(database, peer))
    clock.advance(EXPIRED)

    with pytest.raises(SignedOut, match="gave no token to renew it with"):
        await access(deps, mail).headers()
    assert load(database, mail).state is ConnectionState.SIGNED_OUT


async def test_a_caller_who_is_cancelled_does_not_lose_the_new_tokens(
    database: Database, keys: Path, clock: SetClock, peer: OAuthPeer, mail: Connection
) -> None:
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def halt() -> None:
        arrived.set()
        await go_on.wait()

    deps = other_process(database, keys, oauth=WatchedOAuth(halt))
    clock.advance(EXPIRED)
    asked = asyncio.create_task(access(deps, mail).headers())
    await arrived.wait()
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    go_on.set()
    await token_renewal.finish_renewals(deps)

    assert await is_let_in(peer, await access(deps, mail).headers())
    assert peer.count("refreshed") == 1


class LosingStore:
    """A store that fails now and then, also when a commit was made."""

    def __init__(self, database: Database, *, fails: int, commits: bool = False) -> None:
        self._database = database
        self._fails = fails
        self._commits = commits
        self.is_down = False
        self.failed = asyncio.Event()

    async def transact(
        self, work: Callable[[Tx], T], *, within: timedelta = LONG_DEADLINE, single: bool = False
    ) -> T:
        if self.is_down and self._fails:
            self._fails -= 1
            self.failed.set()
            if self._commits:
                await self._database.transact(work, within=within, single=single)
            raise StoreFailed("It is away.")
        return await self._database.transact(work, within=within, single=single)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


class SlowStore(LosingStore):
    """A store whose first answer comes after something else has happened."""

    def __init__(self, database: Database, meanwhile: Callable[[], Awaitable[None]]) -> None:
        super().__init__(database, fails=0)
        self._meanwhile: Callable[[], Awaitable[None]] | None = meanwhile

    async def transact(
        self, work: Callable[[Tx], T], *, within: timedelta = LONG_DEADLINE, single: bool = False
    ) -> T:
        result = await super().transact(work, within=within, single=single)
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        return result


class WatchedOAuth(CheckedOAuth):
    """Does something when new tokens have come, before anybody has them."""

    def __init__(self, then: Callable[[], Awaitable[None]]) -> None:
        super().__init__(allow=LOOPBACK)
        self._then = then

    async def refresh(self, issuer: TokenIssuer, refresh_token: str) -> Tokens:
        try:
            return await super().refresh(issuer, refresh_token)
        finally:
            await self._then()


@pytest.mark.parametrize("commits", [False, True], ids=["before", "after"])
async def test_new_tokens_are_stored_however_often_the_database_fails(
    database: Database,
    keys: Path,
    clock: SetClock,
    peer: OAuthPeer,
    mail: Connection,
    *,
    commits: bool,
) -> None:
    store = LosingStore(database, fails=3, commits=commits)

    async def fail() -> None:
        store.is_down = True

    deps = other_process(database, keys, oauth=WatchedOAuth(fail))
    deps = replace(deps, store=store)
    clock.advance(EXPIRED)

    headers = await access(deps, mail).headers()

    assert await access(other_process(database, keys), mail).headers() == headers
    assert await is_let_in(peer, headers)
    assert peer.count("refreshed") == 1


@dataclass
class LocksOnce:
    """A vault whose master key is elsewhere for a moment, as in a rotation."""

    vault: Any
    left: int = 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self.vault, name)

    def put(self, *given: Any) -> None:
        if self.left:
            self.left -= 1
            raise VaultLocked("The master key is not here.")
        self.vault.put(*given)


async def test_new_tokens_are_stored_once_the_vault_can_be_opened(
    deps: Deps, database: Database, clock: SetClock, peer: OAuthPeer, mail: Connection
) -> None:
    clock.advance(EXPIRED)
    locked = replace(deps, vault=LocksOnce(deps.vault))

    headers = await access(locked, mail).headers()

    assert await is_let_in(peer, headers)
    assert peer.count("refreshed") == 1
    assert load(database, mail).state is ConnectionState.READY


async def test_nobody_has_new_tokens_before_they_are_stored(
    database: Database, keys: Path, clock: SetClock, peer: OAuthPeer, mail: Connection
) -> None:
    store = LosingStore(database, fails=10**9)

    async def fail() -> None:
        store.is_down = True

    deps = replace(other_process(database, keys, oauth=WatchedOAuth(fail)), store=store)
    clock.advance(EXPIRED)
    asked = asyncio.create_task(access(deps, mail).headers())
    await store.failed.wait()

    assert not asked.done()
    store.is_down = False
    assert await is_let_in(peer, await asked)


async def test_whoever_takes_a_renewal_over_lets_its_holder_store_new_tokens_first(
    database: Database, keys: Path, clock: SetClock, peer: OAuthPeer, mail: Connection
) -> None:
    """The database was away for longer than the lease, and the old token is used up."""
    peer.switch(reuse_revokes=True)
    lease = timedelta(seconds=10)
    store = LosingStore(database, fails=10**9)

    async def fail() -> None:
        store.is_down = True

    async def come_back() -> None:
        store.is_down = False

    one = replace(other_process(database, keys, oauth=WatchedOAuth(fail)), store=store)
    clock.advance(EXPIRED)
    asked = asyncio.create_task(OAuthAccess(one, mail, lease).headers())
    await store.failed.wait()
    clock.advance(2 * lease)
    other = other_process(database, keys)
    other = replace(other, store=SlowStore(database, come_back))
    headers = await OAuthAccess(other, mail, lease).headers()

    assert await asked == headers
    assert await is_let_in(peer, headers)
    assert peer.count("refreshed") == 1
    assert load(database, mail).state is ConnectionState.READY


async def test_a_sign_in_meanwhile_counts_more_than_a_renewal(
    deps: Deps,
    database: Database,
    keys: Path,
    clock: SetClock,
    peer: OAuthPeer,
    mail: Connection,
) -> None:
    signed_in = dict[str, str]()

    async def sign_in_again() -> None:
        begun = await begin(deps, mail)
        await sign_in.finish(deps, caller(), peer.approve(begun.url, "bob"))
        signed_in.update(await access(deps, mail).headers())

    other = other_process(database, keys, oauth=WatchedOAuth(sign_in_again))
    clock.advance(EXPIRED)

    headers = await access(other, mail).headers()

    assert headers == await access(deps, mail).headers() == signed_in
    assert load(database, mail).sign_in_revision == 2


async def test_a_refresh_that_fails_does_not_sign_out_whoever_has_signed_in_meanwhile(
    deps: Deps,
    database: Database,
    keys: Path,
    clock: SetClock,
    peer: OAuthPeer,
    mail: Connection,
) -> None:
    async def sign_in_again() -> None:
        await sign_in_as(deps, peer, mail, "bob")

    peer.revoke("ann")
    other = other_process(database, keys, oauth=WatchedOAuth(sign_in_again))
    clock.advance(EXPIRED)

    headers = await access(other, mail).headers()

    assert headers == await access(deps, mail).headers()
    assert load(database, mail).state is ConnectionState.READY


async def test_a_renewal_that_comes_late_signs_in_again_what_another_has_found_signed_out(
    database: Database, keys: Path, clock: SetClock, peer: OAuthPeer, mail: Connection
) -> None:
    """The first process is slower than its lease: the second finds the old token used."""
    second = other_process(database, keys)

    async def stand_still() -> None:
        clock.advance(timedelta(minutes=1))
        with pytest.raises(SignedOut, match="a process ended while it renewed the sign-in"):
            await OAuthAccess(second, mail, timedelta(seconds=5)).headers()
        assert load(database, mail).state is ConnectionState.SIGNED_OUT

    first = other_process(database, keys, oauth=WatchedOAuth(stand_still))
    clock.advance(EXPIRED)

    headers = await access(first, mail).headers()

    assert load(database, mail).state is ConnectionState.READY
    assert await is_let_in(peer, headers)
    assert (peer.count("refreshed"), peer.count("refused")) == (1, 1)


async def test_a_renewal_under_way_does_not_let_work_go_on_that_waits_for_scopes(
    deps: Deps, database: Database, clock: SetClock, peer: OAuthPeer, mail: Connection
) -> None:
    clock.advance(EXPIRED)
    peer.switch(token_seconds=0.2)
    renewing = asyncio.create_task(access(deps, mail).headers())
    await asyncio.to_thread(peer.wait_for_token_requests, 2)
    await sessions.note_use(deps, mail, SignedOut("No.", scopes=("mail.admin",)))
    await renewing

    after = load(database, mail)
    assert (after.state, after.wanted_scopes) == (ConnectionState.SIGNED_OUT, ("mail.admin",))
    assert peer.count("refreshed") == 1


async def test_a_connection_that_was_removed_or_given_a_key_is_not_renewed(
    deps: Deps, database: Database, clock: SetClock, peer: OAuthPeer, mail: Connection
) -> None:
    keyed = replace(load(database, mail), auth=AuthKind.HEADER)

    async def give_key() -> None:
        database.run(lambda tx: tx.connections.save(keyed))

    await give_key()
    with pytest.raises(SignedOut):
        await access(deps, mail).headers()
    database.run(lambda tx: tx.connections.remove(USER, mail.id))
    clock.advance(EXPIRED)
    with pytest.raises(ConnectionFailed, match="was removed"):
        await access(deps, mail).headers()
    assert peer.count("refreshed") == 0


async def test_a_lease_that_is_heard_of_too_late_is_not_used(
    database: Database, keys: Path, clock: SetClock, peer: OAuthPeer, mail: Connection
) -> None:
    """Its old refresh token would look stolen to a server that watches for that."""
    peer.switch(reuse_revokes=True)
    short = timedelta(milliseconds=20)

    async def take_over() -> None:
        clock.advance(short)
        peer.switch(token_seconds=0.05)
        await access(other_process(database, keys), mail).headers()

    deps = other_process(database, keys)
    deps = replace(deps, store=SlowStore(database, take_over))
    clock.advance(EXPIRED)

    headers = await OAuthAccess(deps, mail, short).headers()

    assert await is_let_in(peer, headers)
    assert (peer.count("refreshed"), peer.count("refused")) == (1, 0)
