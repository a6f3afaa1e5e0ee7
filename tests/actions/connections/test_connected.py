"""Sessions with a server that wants a sign-in: tokens renewed in the middle, users kept apart."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from support.doubles.clock import SetClock
from support.mcp_peers.sessions import Pauses
from support.oauth_peer.peer import OAuthPeer
from support.requirements import requirement
from support.stage.connections import LOOPBACK, add_connection, load, sign_in_as
from support.stage.make import MATE, USER

from backburner.actions.connections import sessions
from backburner.actions.deps import Deps
from backburner.core.connections.connection import Connection, ConnectionState
from backburner.core.errors import ConnectionFailed, SignedOut
from backburner.core.ids import UserId
from backburner.gateway.upstream.servers import UpstreamServers
from backburner.ports import ToolResult, ToolSession
from backburner.store.db import Database

WHO: Mapping[UserId, str] = {USER: "ann", MATE: "bob"}


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
def connected(deps: Deps, pauses: Pauses) -> Deps:
    servers = UpstreamServers(allow=LOOPBACK, policy=pauses.policy())
    return replace(deps, tool_servers=servers)


@asynccontextmanager
async def session(deps: Deps, connection: Connection) -> AsyncIterator[ToolSession]:
    opened = sessions.open_session(deps, connection)
    try:
        yield opened
    finally:
        await opened.close()


async def call(opened: ToolSession, tool: str = "whoami", *, repeatable: bool = False) -> str:
    result = await opened.call(tool, {}, repeatable=repeatable)
    assert isinstance(result, ToolResult)
    assert not result.failed, result.text
    return result.text


@requirement("A-auth-expired")
async def test_a_token_that_is_refused_in_the_middle_of_a_session_is_renewed_once(
    connected: Deps, database: Database, peer: OAuthPeer
) -> None:
    peer.switch(access_seconds=3600)
    mail = await sign_in_as(connected, peer, add_connection(database, peer))
    async with session(connected, mail) as opened:
        assert await call(opened) == "ann"
        peer.expire("ann")

        assert await call(opened) == "ann"
        assert await call(opened) == "ann"

    assert peer.count("refreshed") == 1
    assert load(database, mail).state is ConnectionState.READY


async def test_a_sign_in_that_was_revoked_in_the_middle_of_a_session_ends_it(
    connected: Deps, database: Database, peer: OAuthPeer
) -> None:
    peer.switch(access_seconds=3600)
    mail = await sign_in_as(connected, peer, add_connection(database, peer))
    async with session(connected, mail) as opened:
        assert await call(opened) == "ann"
        peer.revoke("ann")

        with pytest.raises(SignedOut, match="needs you to sign in again"):
            await call(opened)

    assert load(database, mail).state is ConnectionState.SIGNED_OUT
    assert peer.record()["calls"] == [["ann", "whoami"]]


async def test_a_result_that_may_be_a_refusal_has_the_token_renewed_where_it_can_be(
    connected: Deps, database: Database, peer: OAuthPeer
) -> None:
    peer.switch(access_seconds=3600)
    mail = await sign_in_as(connected, peer, add_connection(database, peer))
    access = sessions.authorize(connected, mail)
    first = await access.headers()

    second = await access.check(first)
    # It has been looked into since.
    assert await access.check(first) == second != first
    assert peer.count("refreshed") == 1

    peer.switch(refresh_tokens=False)
    mail = await sign_in_as(connected, peer, mail)
    access = sessions.authorize(connected, mail)
    lasting = await access.headers()
    assert await access.check(lasting) == lasting
    assert load(database, mail).state is ConnectionState.READY


async def test_a_result_that_may_be_a_refusal_ends_a_sign_in_that_was_withdrawn(
    connected: Deps, database: Database, peer: OAuthPeer
) -> None:
    peer.switch(access_seconds=3600)
    mail = await sign_in_as(connected, peer, add_connection(database, peer))
    access = sessions.authorize(connected, mail)
    headers = await access.headers()
    peer.revoke("ann")

    with pytest.raises(SignedOut, match=r"needs you to sign in again.*invalid_grant"):
        await access.check(headers)
    assert load(database, mail).state is ConnectionState.SIGNED_OUT


@pytest.mark.parametrize("values", [{}, {"X-Key": "k"}])
async def test_a_key_is_not_given_up_for_the_words_of_a_result(values: Mapping[str, str]) -> None:
    assert await sessions.Headers("Mail", values).check(values) == values


@requirement("A-mcp-failure")
@pytest.mark.parametrize("repeatable", [False, True], ids=["single", "repeatable"])
async def test_a_token_endpoint_that_fails_for_a_moment_is_asked_again_and_the_call_made_once(
    connected: Deps, database: Database, peer: OAuthPeer, pauses: Pauses, *, repeatable: bool
) -> None:
    peer.switch(access_seconds=3600)
    mail = await sign_in_as(connected, peer, add_connection(database, peer))
    async with session(connected, mail) as opened:
        assert await call(opened) == "ann"
        peer.expire("ann")
        peer.switch(token_statuses=[503, 503])

        assert await call(opened, repeatable=repeatable) == "ann"

    assert pauses.taken == [0.5, 1.0]
    assert len(peer.record()["calls"]) == 2
    assert load(database, mail).state is ConnectionState.READY


async def test_a_token_that_has_expired_is_renewed_though_the_token_endpoint_fails_at_first(
    connected: Deps, database: Database, peer: OAuthPeer, clock: SetClock, pauses: Pauses
) -> None:
    mail = await sign_in_as(connected, peer, add_connection(database, peer))
    clock.advance(timedelta(minutes=1))
    peer.switch(token_statuses=[503, 503])

    async with session(connected, mail) as opened:
        assert await call(opened) == "ann"

    assert pauses.taken == [0.5, 1.0]


async def test_a_token_endpoint_that_stays_down_fails_the_call_and_signs_nobody_out(
    connected: Deps, database: Database, peer: OAuthPeer, pauses: Pauses
) -> None:
    peer.switch(access_seconds=3600)
    mail = await sign_in_as(connected, peer, add_connection(database, peer))
    async with session(connected, mail) as opened:
        assert await call(opened) == "ann"
        peer.expire("ann")
        peer.switch(token_statuses=[503] * 10)

        with pytest.raises(ConnectionFailed) as caught:
            await call(opened)

    assert type(caught.value) is ConnectionFailed
    assert str(caught.value) == (
        "127.0.0.1 could not give out tokens (status 503). Try again later."
    )
    assert pauses.taken == [0.5, 1.0, 2.0]
    assert len(peer.record()["calls"]) == 1
    assert load(database, mail).state is ConnectionState.READY


@requirement("A-mcp-isolation")
async def test_two_users_of_one_server_are_each_themselves_on_every_tool(
    connected: Deps, database: Database, peer: OAuthPeer
) -> None:
    peer.switch(access_seconds=3600)
    theirs = {
        user: await sign_in_as(connected, peer, add_connection(database, peer, user), who)
        for user, who in WHO.items()
    }

    for user, other in ((USER, MATE), (MATE, USER)):
        async with session(connected, theirs[user]) as opened:
            assert await call(opened) == WHO[user]
            assert WHO[user] in await call(opened, "list_mails")
        # The id of the other's connection, as one's own.
        async with session(connected, replace(theirs[other], user_id=user)) as opened:
            with pytest.raises(ConnectionFailed, match="was removed"):
                await call(opened)

    callers = {who for who, _ in peer.record()["calls"]}
    assert callers == set(WHO.values())
    assert len(peer.record()["calls"]) == 4
