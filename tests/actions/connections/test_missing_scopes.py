"""Calls that a server refuses for missing scopes: one sign-in asks for them, and never a second."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from support.oauth_peer.peer import OAuthPeer
from support.requirements import requirement
from support.stage.connections import (
    LOOPBACK,
    add_connection,
    begin,
    caller,
    load,
    sign_in_as,
)

from backburner.actions.connections import sessions, sign_in
from backburner.actions.deps import Deps
from backburner.core.connections.connection import Connection, ConnectionState
from backburner.core.errors import ConnectionFailed, SignedOut
from backburner.gateway.upstream.servers import UpstreamServers
from backburner.ports import ToolResult, ToolSession
from backburner.store.db import Database

BOTH = ("mail.read", "mail.send")


@pytest.fixture
def connected(deps: Deps) -> Deps:
    return replace(deps, tool_servers=UpstreamServers(allow=LOOPBACK))


@pytest.fixture
async def mail(connected: Deps, database: Database, peer: OAuthPeer) -> Connection:
    """Sign in with one of the scopes that there are."""
    peer.switch(access_seconds=3600)
    peer.ask_for("mail.read")
    return await sign_in_as(connected, peer, add_connection(database, peer))


@asynccontextmanager
async def session(deps: Deps, connection: Connection) -> AsyncIterator[ToolSession]:
    opened = sessions.open_session(deps, connection)
    try:
        yield opened
    finally:
        await opened.close()


async def is_asked(deps: Deps, connection: Connection) -> bool:
    """Make a call that is refused for scopes; say whether its owner has to sign in again."""
    async with session(deps, connection) as opened:
        with pytest.raises(SignedOut, match="wants further permissions") as refused:
            await opened.call("whoami", {})
    return await sessions.note_use(deps, connection, refused.value)


async def is_made(deps: Deps, connection: Connection) -> bool:
    async with session(deps, connection) as opened:
        result = await opened.call("whoami", {})
    return isinstance(result, ToolResult) and result.text == "ann"


@requirement("A-auth-expired")
async def test_the_next_sign_in_asks_for_what_the_server_wants_besides(
    connected: Deps, database: Database, peer: OAuthPeer, mail: Connection
) -> None:
    peer.switch(wanted_scope="mail.send")
    assert await is_asked(connected, mail)
    wanting = load(database, mail)
    assert (wanting.state, wanting.wanted_scopes) == (ConnectionState.SIGNED_OUT, ("mail.send",))
    assert "It wants mail.send." in wanting.last_error

    begun = await begin(connected, mail)
    assert begun.scopes == BOTH
    end = await sign_in.finish(connected, caller(), peer.approve(begun.url))

    after = end.connection
    assert (after.scopes, after.wanted_scopes, after.refused_scopes) == (BOTH, (), ())
    assert await is_made(connected, after)


@requirement("A-auth-expired")
async def test_what_the_new_sign_in_did_not_give_is_not_asked_for_again(
    connected: Deps, database: Database, peer: OAuthPeer, mail: Connection
) -> None:
    peer.switch(wanted_scope="mail.send", given_scopes=["mail.read"])
    assert await is_asked(connected, mail)
    less = await sign_in_as(connected, peer, mail)
    assert (less.scopes, less.refused_scopes) == (("mail.read",), ("mail.send",))

    assert not await is_asked(connected, less)

    assert load(database, mail).state is ConnectionState.READY
    # Its owner may ask for it, once it is to be had.
    assert (await begin(connected, less)).scopes == ("mail.read",)
    peer.switch(given_scopes=None)
    begun = await begin(connected, less, scopes=["mail.send"])
    end = await sign_in.finish(connected, caller(), peer.approve(begun.url))
    assert (end.connection.scopes, end.connection.refused_scopes) == (BOTH, ())
    assert await is_made(connected, end.connection)


async def test_a_scope_that_the_server_does_not_accept_though_it_was_given_is_not_asked_for(
    connected: Deps, database: Database, peer: OAuthPeer, mail: Connection
) -> None:
    lacking = replace(load(database, mail), scopes=BOTH)
    database.run(lambda tx: tx.connections.save(lacking))
    peer.switch(wanted_scope="mail.send")

    assert not await is_asked(connected, mail)
    assert load(database, mail).state is ConnectionState.READY


async def test_scopes_that_the_server_does_not_name_are_worth_one_sign_in(
    connected: Deps, database: Database, peer: OAuthPeer
) -> None:
    """So do servers with the code of `mcp`, which names them in words only."""
    peer.switch(access_seconds=3600, given_scopes=["mail.send"])
    mail = await sign_in_as(connected, peer, add_connection(database, peer))
    assert await is_asked(connected, mail)
    assert load(database, mail).state is ConnectionState.SIGNED_OUT

    same = await sign_in_as(connected, peer, mail)
    assert not await is_asked(connected, same)

    peer.switch(given_scopes=None)
    assert await is_made(connected, await sign_in_as(connected, peer, mail))


@pytest.mark.parametrize(
    ("wanted", "said"),
    [("mail.send", "You did not allow it"), ("mail.admin", "does not know what Backburner asked")],
    ids=["denied", "unknown"],
)
async def test_a_sign_in_that_fails_for_its_scopes_can_be_made_without_them(
    connected: Deps, database: Database, peer: OAuthPeer, mail: Connection, wanted: str, said: str
) -> None:
    # The code of `mcp` does not name itself in its own refusals.
    peer.switch(wanted_scope=wanted, iss="none")
    assert await is_asked(connected, mail)
    begun = await begin(connected, mail)
    assert begun.scopes == ("mail.read", wanted)

    with pytest.raises(ConnectionFailed, match=said) as failed:
        await sign_in.finish(connected, caller(), peer.approve(begun.url, allowed=False))
    assert f"Start again to sign in without {wanted}" in failed.value.hint
    assert load(database, mail).state is ConnectionState.SIGNED_OUT
    less = await sign_in_as(connected, peer, mail)

    assert less.state is ConnectionState.READY
    assert not await is_asked(connected, less)


async def test_a_refusal_of_an_earlier_sign_in_wants_nothing(
    connected: Deps, database: Database, peer: OAuthPeer, mail: Connection
) -> None:
    await sign_in_as(connected, peer, mail)

    # The run begins again, with the sign-in that there is now.
    assert await sessions.note_use(connected, mail, SignedOut("No.", scopes=("mail.send",)))
    assert load(database, mail).state is ConnectionState.READY
