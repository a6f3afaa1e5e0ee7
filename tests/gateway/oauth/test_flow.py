"""Signing in to a real authorization server, renewing tokens, and what is asked for on the way."""

import base64
from dataclasses import replace
from datetime import timedelta
from ipaddress import ip_network
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from support.oauth_peer.peer import OAuthPeer

from backburner.core.connections.oauth_client import ConfiguredClient, OAuthClient
from backburner.core.errors import ConnectionFailed, SignedOut
from backburner.gateway.oauth.flow import CheckedOAuth
from backburner.gateway.oauth.tokens import _show_client
from backburner.ports.oauth import SignInRequest, Tokens, issuer_key

BASIC, POST = "client_secret_basic", "client_secret_post"
HERE = "http://127.0.0.1:8484"
#: The redirect address of clients that somebody registers.
BY_HAND = f"{HERE}/oauth/callback"


def query(address: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}


async def sign_in(
    oauth: CheckedOAuth, peer: OAuthPeer, who: str = "ann"
) -> tuple[SignInRequest, Tokens]:
    begun = await oauth.begin(peer.server, origin=HERE)
    answer = query(peer.approve(begun.url, who))
    assert answer["state"] == begun.state
    assert answer["iss"] == begun.pending.issuer.issuer == peer.issuer
    return begun, await oauth.exchange(begun.pending, answer["code"])


async def test_a_sign_in_ends_with_tokens_for_that_server(
    oauth: CheckedOAuth, peer: OAuthPeer
) -> None:
    begun, tokens = await sign_in(oauth, peer)

    assert begun.host == urlsplit(peer.issuer).netloc
    assert tokens.lifetime == timedelta(seconds=3)
    assert tokens.scopes == begun.pending.scopes == ("mail.read", "mail.send")
    asked = query(begun.url)
    assert asked["resource"] == begun.pending.issuer.resource == peer.server
    assert asked["code_challenge_method"] == "S256"
    assert asked["redirect_uri"] == f"{HERE}/oauth/from/{issuer_key(peer.issuer)}"
    assert await is_let_in(peer, tokens)


@pytest.mark.parametrize("as_listed", ["with", "without"])
async def test_the_slash_after_the_host_of_an_issuer_makes_no_other_issuer(
    oauth: CheckedOAuth, peer: OAuthPeer, as_listed: str
) -> None:
    """Google's MCP servers name it with one, and its metadata without."""
    bare = peer.issuer.rstrip("/")
    other, own = (f"{bare}/", bare) if as_listed == "with" else (bare, f"{bare}/")
    peer.switch(resource_metadata={"authorization_servers": [other]}, metadata={"issuer": own})
    begun = await oauth.begin(peer.server, origin=HERE)

    assert begun.pending.issuer.issuer == own


async def is_let_in(peer: OAuthPeer, tokens: Tokens) -> bool:
    async with httpx2.AsyncClient(trust_env=False) as client:
        headers = {"authorization": f"Bearer {tokens.access}", "accept": "application/json"}
        answer = await client.post(peer.server, json={}, headers=headers)
        return answer.status_code != 401


async def test_refreshed_tokens_replace_those_before(oauth: CheckedOAuth, peer: OAuthPeer) -> None:
    begun, first = await sign_in(oauth, peer)

    second = await oauth.refresh(begun.pending.issuer, first.refresh)

    assert second.access != first.access
    assert second.refresh not in ("", first.refresh)
    assert await is_let_in(peer, second)
    with pytest.raises(SignedOut, match="invalid_grant"):
        await oauth.refresh(begun.pending.issuer, first.refresh)


async def test_a_terse_reply_says_what_has_changed_only(
    oauth: CheckedOAuth, peer: OAuthPeer
) -> None:
    begun, first = await sign_in(oauth, peer)
    peer.switch(rotate=False, terse=True)

    second = await oauth.refresh(begun.pending.issuer, first.refresh)

    assert (second.refresh, second.scopes) == ("", None)


async def test_a_registration_says_who_we_are_and_is_used(
    oauth: CheckedOAuth, peer: OAuthPeer
) -> None:
    begun, _ = await sign_in(oauth, peer)

    (registered,) = peer.record()["registrations"]
    assert registered["client_name"] == "Backburner"
    assert registered["redirect_uris"] == [f"{HERE}/oauth/from/{issuer_key(peer.issuer)}"]
    assert registered["application_type"] == "native"
    assert registered["token_endpoint_auth_method"] == BASIC
    assert registered["scope"] == "mail.read mail.send"
    client = begun.pending.issuer.client
    assert client.client_id == registered["client_id"]
    assert client.secret
    # In a header, where no log has it.
    (form,) = peer.record()["token_requests"]
    assert "client_secret" not in form


@pytest.mark.parametrize("method", [POST, "none"])
async def test_the_method_is_one_that_the_server_supports(
    oauth: CheckedOAuth, peer: OAuthPeer, method: str
) -> None:
    peer.switch(metadata={"token_endpoint_auth_methods_supported": [method, "private_key_jwt"]})

    begun, _ = await sign_in(oauth, peer)

    assert begun.pending.issuer.client.method == method
    assert bool(begun.pending.issuer.client.secret) == (method != "none")


async def test_a_server_without_registration_wants_a_client_that_is_given(
    oauth: CheckedOAuth, peer: OAuthPeer
) -> None:
    client_id, secret = peer.register_by_hand(BY_HAND)
    peer.switch(registration=False)

    with pytest.raises(ConnectionFailed, match="wants to know Backburner beforehand") as caught:
        await oauth.begin(peer.server, origin=HERE)
    assert BY_HAND in caught.value.hint

    given = OAuthClient(client_id=client_id, secret=secret, is_given=True)
    again = await oauth.begin(peer.server, origin=HERE, client=given, issuer=peer.issuer)
    code = query(peer.approve(again.url))["code"]
    assert (await oauth.exchange(again.pending, code)).access
    # It is kept for that authorization server, and for no other.
    kept = await oauth.begin(peer.server, origin=HERE, earlier=again.pending.issuer)
    assert kept.pending.issuer.client == again.pending.issuer.client
    other = replace(again.pending.issuer, issuer="https://other.example")
    with pytest.raises(ConnectionFailed, match="beforehand"):
        await oauth.begin(peer.server, origin=HERE, earlier=other)


async def test_a_client_of_the_operator_is_used_instead_of_a_registration(
    peer: OAuthPeer,
) -> None:
    client_id, secret = peer.register_by_hand(BY_HAND)
    servers = frozenset({urlsplit(peer.server).netloc})
    client = OAuthClient(client_id=client_id, secret=secret)
    clients = {peer.issuer: ConfiguredClient(client, servers)}
    configured = CheckedOAuth(allow=[ip_network("127.0.0.1/32")], clients=clients)

    again, tokens = await sign_in(configured, peer)

    assert again.pending.issuer.client == replace(client, method=BASIC)
    assert tokens.access
    assert peer.count("registered") == 1


async def test_our_document_says_who_we_are_where_a_server_reads_it(peer: OAuthPeer) -> None:
    peer.switch(documents=True)
    public = "https://backburner.example"
    oauth = CheckedOAuth(allow=[ip_network("127.0.0.1/32")], public_url=public)

    begun = await oauth.begin(peer.server, origin=public)

    key = issuer_key(peer.issuer)
    assert begun.pending.issuer.client == OAuthClient(
        client_id=f"{public}/oauth/client/{key}.json", method="none"
    )
    assert begun.pending.redirect_uri == f"{public}/oauth/from/{key}"
    assert peer.count("registered") == 0
    # It has the public address only.
    local = await oauth.begin(peer.server, origin=HERE)
    assert local.pending.issuer.client.method == BASIC


async def test_scopes_of_the_challenge_count_before_those_of_the_metadata(
    oauth: CheckedOAuth, peer: OAuthPeer
) -> None:
    peer.ask_for("mail.read")

    begun = await oauth.begin(peer.server, origin=HERE)
    more = await oauth.begin(peer.server, origin=HERE, scopes=["mail.send", "mail.read"])

    assert begun.pending.scopes == ("mail.read",)
    assert query(begun.url)["scope"] == "mail.read"
    assert more.pending.scopes == ("mail.read", "mail.send")


async def test_offline_access_is_asked_for_where_there_is_such_a_scope(
    oauth: CheckedOAuth, peer: OAuthPeer
) -> None:
    known = ["mail.read", "mail.send", "offline_access"]
    client = OAuthClient(client_id="one", is_given=True)
    peer.switch(metadata={"scopes_supported": known})

    begun = await oauth.begin(peer.server, origin=HERE, client=client, issuer=peer.issuer)

    assert begun.pending.scopes == tuple(known)
    assert query(begun.url)["prompt"] == "consent"


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_trouble_of_a_token_endpoint_is_no_signing_out(
    oauth: CheckedOAuth, peer: OAuthPeer, status: int
) -> None:
    begun, tokens = await sign_in(oauth, peer)
    peer.switch(token_statuses=[status])

    with pytest.raises(ConnectionFailed, match=f"status {status}") as caught:
        await oauth.refresh(begun.pending.issuer, tokens.refresh)

    assert not isinstance(caught.value, SignedOut)
    assert not caught.value.permanent
    assert (await oauth.refresh(begun.pending.issuer, tokens.refresh)).access


async def test_a_client_that_was_deleted_is_signed_out(
    oauth: CheckedOAuth, peer: OAuthPeer
) -> None:
    begun, tokens = await sign_in(oauth, peer)
    peer.forget_clients()

    with pytest.raises(SignedOut, match="invalid_client"):
        await oauth.refresh(begun.pending.issuer, tokens.refresh)


async def test_a_code_is_used_once(oauth: CheckedOAuth, peer: OAuthPeer) -> None:
    begun = await oauth.begin(peer.server, origin=HERE)
    code = query(peer.approve(begun.url))["code"]
    await oauth.exchange(begun.pending, code)

    with pytest.raises(ConnectionFailed, match="invalid_grant") as caught:
        await oauth.exchange(begun.pending, code)

    # Nothing that was signed in is signed out by it.
    assert not isinstance(caught.value, SignedOut)


@pytest.mark.parametrize("method", [BASIC, POST, "none"])
async def test_revoked_tokens_are_good_no_more(
    oauth: CheckedOAuth, peer: OAuthPeer, method: str
) -> None:
    # The library's endpoint for it wants the secret in the form, whatever was registered.
    peer.switch(metadata={"token_endpoint_auth_methods_supported": [method]})
    begun, tokens = await sign_in(oauth, peer)

    await oauth.revoke(begun.pending.issuer, tokens.refresh)

    assert peer.count("revoked") == 1
    with pytest.raises(SignedOut):
        await oauth.refresh(begun.pending.issuer, tokens.refresh)


def test_the_secret_of_a_client_is_encoded_in_its_header() -> None:
    client = OAuthClient(client_id="a:b", secret="c d%", method=BASIC)  # noqa: S106 (made up)
    form, headers = _show_client(client)

    assert form == {"client_id": "a:b"}
    assert base64.b64decode(headers["authorization"].split()[1]) == b"a%3Ab:c%20d%25"
