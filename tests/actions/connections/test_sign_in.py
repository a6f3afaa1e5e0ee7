"""Who may finish a sign-in: whoever has begun it, once, in time, and with the right server."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

import httpx2
import pytest
from sqlalchemy import update
from support.mcp_peers.sessions import servers
from support.oauth_peer.peer import OAuthPeer, oauth_peer
from support.programs.programs import Start
from support.requirements import requirement
from support.stage.connections import (
    BROWSER,
    ORIGIN,
    PHONE,
    add_connection,
    begin,
    caller,
    load,
    sign_in_as,
    terminal,
)
from support.stage.make import MATE, USER

from backburner.actions.connections import manage, sign_in
from backburner.actions.connections.oauth_access import OAuthAccess
from backburner.actions.deps import Deps
from backburner.core.accounts import Caller, CredentialKind, Role, Scope
from backburner.core.connections.connection import AuthKind, Connection, ConnectionState
from backburner.core.connections.oauth_client import OAuthClient
from backburner.core.errors import BadRequest, ConnectionFailed, NotAllowed, NotFound, SignedOut
from backburner.core.ids import ConnectionId, UserId
from backburner.store.db import Database
from backburner.store.tables import secrets, started_sign_ins

SOON = timedelta(seconds=10)


@pytest.fixture
def mail(deps: Deps, database: Database, peer: OAuthPeer) -> Connection:
    del deps
    return add_connection(database, peer)


async def use(deps: Deps, connection: Connection) -> str:
    headers = await OAuthAccess(deps, connection).headers()
    return headers["Authorization"]


def with_parameters(address: str, changes: Mapping[str, str | None]) -> str:
    parts = urlsplit(address)
    values = dict(part.split("=", 1) for part in parts.query.split("&"))
    changed = {name: value for name, value in changes.items() if value is not None}
    kept = [f"{name}={value}" for name, value in values.items() if name not in changes]
    return urlunsplit(parts._replace(query="&".join([*kept, urlencode(changed)])))


async def test_a_browser_that_comes_back_is_signed_in(
    deps: Deps, database: Database, peer: OAuthPeer, mail: Connection
) -> None:
    begun = await begin(deps, mail)
    host = urlsplit(peer.issuer).netloc
    assert (begun.host, begun.issuer, begun.token_host) == (host, peer.issuer, host)
    assert (begun.scopes, begun.secret) == (("mail.read", "mail.send"), "")
    assert load(database, mail) == mail

    end = await sign_in.finish(deps, caller(), peer.approve(begun.url))

    assert end.is_finished
    assert end.connection == load(database, mail)
    assert end.connection.state is ConnectionState.READY
    assert end.connection.sign_in_revision == 1
    assert end.connection.scopes == ("mail.read", "mail.send")
    # Its tokens renew themselves.
    assert end.connection.expires_at is None
    assert (await use(deps, mail)).startswith("Bearer ")


async def test_a_sign_in_without_renewal_says_when_it_ends(
    deps: Deps, peer: OAuthPeer, mail: Connection
) -> None:
    peer.switch(refresh_tokens=False, access_seconds=3600)
    begun = await begin(deps, mail)
    end = await sign_in.finish(deps, caller(), peer.approve(begun.url))

    assert end.connection.expires_at is not None


async def test_a_server_gets_no_code_by_passing_the_browser_on_to_another_one(
    deps: Deps, database: Database, peer: OAuthPeer, mail: Connection, start: Start
) -> None:
    """Neither says who it is at the end; the other one knows us, and may ask its user nothing."""
    honest = parse_qs(urlsplit((await begin(deps, mail)).url).query)
    peer.switch(iss="none")
    with oauth_peer(start) as evil:
        evil.switch(iss="none")
        connection = add_connection(database, evil, name="evil", id=ConnectionId("x_evil"))
        begun = await begin(deps, connection)
        mine = parse_qs(urlsplit(begun.url).query)
        passed_on = {
            **{name: mine[name][0] for name in ("state", "code_challenge")},
            **{name: honest[name][0] for name in ("client_id", "redirect_uri", "resource")},
            "response_type": "code",
            "code_challenge_method": "S256",
        }
        final = peer.approve(f"{peer.issuer}/authorize?{urlencode(passed_on)}")

        with pytest.raises(ConnectionFailed, match="answered by another authorization server"):
            await sign_in.finish(deps, caller(), final)
        assert evil.record()["token_requests"] == []

        # Nor does the other one send it where the answers of this one go.
        passed_on["redirect_uri"] = mine["redirect_uri"][0]
        with pytest.raises(AssertionError, match="invalid_request"):
            peer.approve(f"{peer.issuer}/authorize?{urlencode(passed_on)}")


async def test_a_final_address_is_good_once(deps: Deps, peer: OAuthPeer, mail: Connection) -> None:
    begun = await begin(deps, mail)
    final = peer.approve(begun.url)
    await sign_in.finish(deps, caller(), final)

    with pytest.raises(NotFound, match="expired or been used"):
        await sign_in.finish(deps, caller(), final)
    assert peer.count("exchanged") == 1


async def test_a_final_address_is_used_up_by_an_attempt_that_fails(
    deps: Deps, peer: OAuthPeer, mail: Connection
) -> None:
    begun = await begin(deps, mail)
    final = peer.approve(begun.url)
    peer.switch(token_statuses=[503])

    with pytest.raises(ConnectionFailed, match="status 503"):
        await sign_in.finish(deps, caller(), final)
    with pytest.raises(NotFound):
        await sign_in.finish(deps, caller(), final)


@pytest.mark.parametrize(
    ("who", "error"),
    [
        (caller(MATE), NotFound),
        (caller(credential=PHONE), NotAllowed),
        (terminal(), NotAllowed),
    ],
    ids=["somebody else", "another browser", "a terminal"],
)
async def test_only_the_session_that_has_begun_finishes(
    deps: Deps, peer: OAuthPeer, mail: Connection, who: Caller, error: type[Exception]
) -> None:
    begun = await begin(deps, mail)
    final = peer.approve(begun.url)

    with pytest.raises(error):
        await sign_in.finish(deps, who, final)
    with pytest.raises(NotFound if who.user == MATE else NotAllowed):
        await sign_in.finish(deps, who, final, secret="a guess")  # noqa: S106 (of nobody)

    assert peer.count("exchanged") == 0
    # Whoever has begun still may.
    assert (await sign_in.finish(deps, caller(), final)).is_finished


async def test_a_sign_in_expires_after_ten_minutes(
    deps: Deps, database: Database, peer: OAuthPeer, mail: Connection
) -> None:
    begun = await begin(deps, mail)
    final = peer.approve(begun.url)
    expire(database)

    with pytest.raises(NotFound):
        await sign_in.finish(deps, caller(), final)
    assert peer.count("exchanged") == 0

    assert not await sign_in.prune(deps)
    assert database.run(lambda tx: tx.started_sign_ins.find(USER, mail.id)) is None
    assert sealed_names(database) == []


def expire(database: Database) -> None:
    """Let all sign-ins be ten minutes old, without waiting."""
    database.run(
        lambda tx: tx.connection.execute(update(started_sign_ins).values(expires_at=tx.now))
    )


def sealed_names(database: Database) -> list[str]:
    return database.run(lambda tx: list(tx.connection.execute(secrets.select()).scalars()))


async def test_a_new_sign_in_replaces_the_one_before(
    deps: Deps, peer: OAuthPeer, mail: Connection
) -> None:
    first, second = await begin(deps, mail), await begin(deps, mail)
    finals = [peer.approve(one.url) for one in (first, second)]

    with pytest.raises(NotFound):
        await sign_in.finish(deps, caller(), finals[0])
    assert (await sign_in.finish(deps, caller(), finals[1])).is_finished


@pytest.mark.parametrize("iss", ["wrong", "none"])
async def test_an_answer_of_another_authorization_server_is_refused(
    deps: Deps, peer: OAuthPeer, mail: Connection, iss: str
) -> None:
    begun = await begin(deps, mail)
    # It has said that it would name itself.
    peer.switch(iss=iss)
    final = peer.approve(begun.url)

    with pytest.raises(ConnectionFailed, match="answered by another authorization server"):
        await sign_in.finish(deps, caller(), final)
    assert peer.count("exchanged") == 0


async def test_a_server_that_never_names_itself_is_believed(
    deps: Deps, peer: OAuthPeer, mail: Connection
) -> None:
    peer.switch(iss="none")

    assert (await sign_in_as(deps, peer, mail)).state is ConnectionState.READY


async def test_the_code_of_a_sign_in_page_of_others_is_sent_to_nobody(
    deps: Deps, database: Database, peer: OAuthPeer, start: Start
) -> None:
    """A hostile server names an honest sign-in page, and promises what only its own would keep."""
    address = f"{peer.issuer}/.well-known/oauth-authorization-server"
    honest = httpx2.get(address, trust_env=False).json()
    names = ("authorization_endpoint", "registration_endpoint")
    with oauth_peer(start) as evil:
        evil.switch(metadata={name: honest[name] for name in names})
        connection = add_connection(database, evil)
        for iss in ("none", "right"):
            peer.switch(iss=iss)
            begun = await begin(deps, connection)
            shown = begun.host, begun.token_host
            assert shown == (urlsplit(peer.issuer).netloc, urlsplit(evil.issuer).netloc)
            with pytest.raises(ConnectionFailed, match="answered by another authorization server"):
                await sign_in.finish(deps, caller(), peer.approve(begun.url))

        assert evil.record()["token_requests"] == []


async def test_the_state_of_one_sign_in_with_the_code_of_another_is_refused(
    deps: Deps, database: Database, peer: OAuthPeer, mail: Connection
) -> None:
    """A code that was fetched for another sign-in does not fit the keys of this one."""
    other = add_connection(database, peer, MATE)
    begun, theirs = await begin(deps, mail), await begin(deps, other)
    code = dict(
        part.split("=", 1) for part in urlsplit(peer.approve(theirs.url, "eve")).query.split("&")
    )["code"]
    final = with_parameters(peer.approve(begun.url), {"code": code})

    with pytest.raises(ConnectionFailed, match="invalid_grant"):
        await sign_in.finish(deps, caller(), final)


async def test_a_refusal_is_told_in_our_words(
    deps: Deps, database: Database, peer: OAuthPeer, mail: Connection
) -> None:
    begun = await begin(deps, mail)
    final = peer.approve(begun.url, allowed=False)

    with pytest.raises(ConnectionFailed, match="You did not allow it") as caught:
        await sign_in.finish(deps, caller(), final)
    assert "canary" not in str(caught.value)
    assert load(database, mail).state is ConnectionState.SIGNING_IN


@pytest.mark.parametrize(
    "address",
    [
        "",
        "http://127.0.0.1:8484/oauth/callback",
        "http://127.0.0.1:8484/oauth/callback?code=a",
        "http://127.0.0.1:8484/oauth/callback?state=a",
        "http://127.0.0.1:8484/oauth/callback?state=a&code=b&error=c",
        "http://127.0.0.1:8484/oauth/callback?state=a&code=b&code=c",
        "http://[?state=a&code=b",
        "http://127.0.0.1/?state=a&code=" + "b" * 9000,
    ],
)
async def test_what_is_no_final_address_is_refused(deps: Deps, address: str) -> None:
    with pytest.raises(BadRequest, match="not the address at the end of a sign-in"):
        await sign_in.finish(deps, caller(), address)


async def test_a_command_finishes_with_the_address_that_is_pasted_into_it(
    deps: Deps, peer: OAuthPeer, mail: Connection
) -> None:
    begun = await begin(deps, mail, terminal())
    final = f"  {peer.approve(begun.url)}\n"

    for secret in ("", "a guess"):
        with pytest.raises(NotAllowed, match="started elsewhere"):
            await sign_in.finish(deps, terminal(), final, secret=secret)
    assert (await sign_in.finish(deps, terminal(), final, secret=begun.secret)).is_finished


async def test_a_browser_of_the_same_user_hands_the_address_on_to_the_command(
    deps: Deps, database: Database, peer: OAuthPeer, mail: Connection
) -> None:
    begun = await begin(deps, mail, terminal())
    waiting = asyncio.create_task(sign_in.wait(deps, terminal(), mail.id, begun.secret, SOON))
    final = peer.approve(begun.url)

    # Somebody else's browser, to which the address was sent: it finishes nothing.
    with pytest.raises(NotFound):
        await sign_in.finish(deps, caller(MATE), final)
    assert not waiting.done()
    end = await sign_in.finish(deps, caller(), final)
    assert not end.is_finished

    found = await waiting
    assert found is not None
    assert found == load(database, mail)
    assert found.state is ConnectionState.READY


async def test_without_its_secret_nobody_waits_for_a_command(
    deps: Deps, peer: OAuthPeer, mail: Connection
) -> None:
    begun = await begin(deps, mail, terminal())
    await sign_in.finish(deps, caller(), peer.approve(begun.url))

    for who, secret in ((terminal(), "a guess"), (terminal(), ""), (terminal(MATE), begun.secret)):
        with pytest.raises(NotFound):
            await sign_in.wait(deps, who, mail.id, secret, SOON)
    assert peer.count("exchanged") == 0


async def test_a_wait_ends_after_a_while(deps: Deps, mail: Connection) -> None:
    begun = await begin(deps, mail, terminal())

    assert await sign_in.wait(deps, terminal(), mail.id, begun.secret, timedelta()) is None


async def test_signing_in_is_consent(deps: Deps, mail: Connection) -> None:
    token = Caller(
        user=USER,
        role=Role.MEMBER,
        scopes=frozenset({Scope.READ, Scope.WRITE}),
        credential=BROWSER,
        kind=CredentialKind.TOKEN,
    )
    with pytest.raises(NotAllowed, match="may not consent"):
        await begin(deps, mail, token)
    with pytest.raises(NotAllowed, match="may not consent"):
        await sign_in.finish(deps, token, "")
    with pytest.raises(NotAllowed, match="may not consent"):
        await sign_in.wait(deps, token, mail.id, "secret", SOON)


async def test_connections_of_others_cannot_be_signed_in_to(deps: Deps, mail: Connection) -> None:
    with pytest.raises(NotFound):
        await begin(deps, mail, caller(MATE))


async def test_a_connection_that_was_removed_meanwhile_is_not_signed_in_to(
    deps: Deps, database: Database, peer: OAuthPeer, mail: Connection
) -> None:
    begun = await begin(deps, mail)
    final = peer.approve(begun.url)
    database.run(lambda tx: tx.connections.remove(USER, mail.id))

    with pytest.raises(NotFound):
        await sign_in.finish(deps, caller(), final)


async def test_more_scopes_are_asked_for_besides_those_of_before(
    deps: Deps, database: Database, peer: OAuthPeer
) -> None:
    mail = add_connection(database, peer, scopes=("mail.read",))
    peer.ask_for("mail.read")

    assert (await begin(deps, mail)).scopes == ("mail.read",)
    assert (await begin(deps, mail, scopes=["mail.send"])).scopes == ("mail.read", "mail.send")


async def test_a_registration_is_used_again_unless_nobody_got_in_with_it(
    deps: Deps, peer: OAuthPeer, mail: Connection
) -> None:
    peer.switch(resource_metadata={"scopes_supported": ["mail.read"]})
    await begin(deps, mail)
    await begin(deps, mail)
    first = await sign_in_as(deps, peer, mail)
    again = await sign_in_as(deps, peer, mail)
    assert (peer.count("registered"), again.sign_in_revision) == (1, first.sign_in_revision + 1)

    # The server has forgotten us, which only a browser is told.
    peer.forget_clients()
    await begin(deps, mail)
    assert peer.count("registered") == 1
    await begin(deps, mail)
    await sign_in_as(deps, peer, mail)
    assert peer.count("registered") == 2
    # Neither another address to come back to nor another scope is part of that registration.
    await begin(deps, mail, scopes=["mail.send"])
    assert peer.count("registered") == 3
    who = caller()
    await sign_in.begin(deps, who, mail.id, origin="http://127.0.0.1:9999")
    assert peer.count("registered") == 4


async def test_a_client_that_the_user_has_given_is_used_again(
    deps: Deps, database: Database, peer: OAuthPeer, mail: Connection
) -> None:
    client_id, secret = peer.register_by_hand(f"{ORIGIN}/oauth/callback")
    await sign_in_as(deps, peer, mail)
    peer.switch(registration=False)
    with pytest.raises(ConnectionFailed, match="beforehand"):
        await begin(deps, mail)

    client = OAuthClient(client_id=client_id, secret=secret, is_given=True)
    begun = await begin(deps, mail, client=client, issuer=peer.issuer)
    await sign_in.finish(deps, caller(), peer.approve(begun.url))
    again = await sign_in_as(deps, peer, mail)

    assert again.sign_in_revision == 3
    assert load(database, mail) == again


@requirement("A-mcp-isolation")
async def test_two_users_of_one_server_never_meet(
    deps: Deps, database: Database, peer: OAuthPeer
) -> None:
    """Each is let in as themselves, and nobody by the connection or the sign-in of the other."""
    who: dict[UserId, str] = {USER: "ann", MATE: "bob"}
    theirs = {user: add_connection(database, peer, user) for user in who}
    begun = {user: await begin(deps, theirs[user]) for user in who}
    finals = {user: peer.approve(begun[user].url, who[user]) for user in who}
    for user, other in ((USER, MATE), (MATE, USER)):
        with pytest.raises(NotFound):
            await sign_in.finish(deps, caller(user), finals[other])
    for user in who:
        await sign_in.finish(deps, caller(user), finals[user])

    tokens = {user: await use(deps, theirs[user]) for user in who}
    assert len(set(tokens.values())) == 2
    sealed = {user: sealed_tokens(database, theirs[user]) for user in who}
    for user, other in ((USER, MATE), (MATE, USER)):
        stolen = replace(theirs[other], user_id=user)
        with pytest.raises(ConnectionFailed, match="was removed"):
            await use(deps, stolen)
        # Nor with the sealed tokens in the place of one's own.
        put_sealed_tokens(database, theirs[user], sealed[other])
        with pytest.raises(SignedOut, match="damaged, or was sealed for another"):
            await use(deps, theirs[user])
        # Whoever signs in again has it back.
        await sign_in_as(deps, peer, theirs[user], who[user])
        assert (await use(deps, theirs[user])).startswith("Bearer ")


def sealed_tokens(database: Database, connection: Connection) -> bytes:
    name = f"connections/{connection.id}/oauth"
    found = database.run(lambda tx: tx.secrets.load(connection.user_id, name))
    assert found is not None
    return found


def put_sealed_tokens(database: Database, connection: Connection, sealed: bytes) -> None:
    name = f"connections/{connection.id}/oauth"
    database.run(lambda tx: tx.secrets.put(connection.user_id, name, sealed))


async def test_headers_make_room_for_a_sign_in(
    deps: Deps, database: Database, peer: OAuthPeer
) -> None:
    keyed = add_connection(database, peer, auth=AuthKind.HEADER, headers=("X-Key",))
    name = f"connections/{keyed.id}/headers"
    database.run(lambda tx: deps.vault.put(tx.secrets, USER, name, b"{}"))

    after = await sign_in_as(deps, peer, keyed)

    assert (after.auth, after.headers) == (AuthKind.OAUTH, ())
    assert database.run(lambda tx: tx.secrets.load(USER, name)) is None


async def test_a_connection_without_tokens_is_signed_out(deps: Deps, mail: Connection) -> None:
    with pytest.raises(SignedOut, match="sign in again"):
        await use(deps, mail)


async def test_tokens_of_a_removed_connection_are_revoked_unless_another_may_need_them(
    deps: Deps, database: Database, peer: OAuthPeer, mail: Connection
) -> None:
    client_id, secret = peer.register_by_hand(f"{ORIGIN}/oauth/callback")
    given = OAuthClient(client_id=client_id, secret=secret, is_given=True)
    other = add_connection(database, peer, id=ConnectionId("x_other"), name="other")
    for connection in (mail, other):
        begun = await begin(deps, connection, client=given, issuer=peer.issuer)
        await sign_in.finish(deps, caller(), peer.approve(begun.url))

    assert await manage.remove(deps, caller(), mail.id) == ""
    assert peer.count("revoked") == 0
    assert await manage.remove(deps, caller(), other.id) == ""
    assert peer.count("revoked") == 1


async def test_tokens_that_a_key_replaces_are_revoked(
    deps: Deps, database: Database, peer: OAuthPeer, mail: Connection
) -> None:
    await sign_in_as(deps, peer, mail)
    other = add_connection(database, peer, id=ConnectionId("x_other"), name="other")
    await sign_in_as(deps, peer, other, "bob")
    key = {"Authorization": await use(deps, other)}

    reaching = replace(deps, tool_servers=servers())
    await manage.set_headers(reaching, caller(), mail.id, key)

    assert load(database, mail).auth is AuthKind.HEADER
    assert peer.count("revoked") == 1
    assert await use(deps, other)


@pytest.mark.parametrize("endpoint", ["/nowhere", None])
async def test_a_connection_is_removed_whatever_its_server_says(
    deps: Deps, database: Database, peer: OAuthPeer, mail: Connection, endpoint: str | None
) -> None:
    peer.switch(metadata={"revocation_endpoint": endpoint and f"{peer.issuer}{endpoint}"})
    await sign_in_as(deps, peer, mail)

    # Its owner is told where the sign-in is still good.
    assert await manage.remove(deps, caller(), mail.id) == urlsplit(peer.issuer).netloc

    assert database.run(lambda tx: tx.connections.list(USER)) == []
    assert sealed_names(database) == []
