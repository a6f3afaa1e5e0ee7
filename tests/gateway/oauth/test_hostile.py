"""Servers whose metadata lead elsewhere, are too large or too slow: refused in words."""

import json
from collections.abc import Mapping
from datetime import timedelta
from ipaddress import ip_network
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from support.faults.canaries import canary
from support.oauth_peer.peer import OAuthPeer, oauth_peer
from support.programs.programs import Start
from support.servers.web import answer, redirect, web

from backburner.core.connections.oauth_client import ConfiguredClient, OAuthClient
from backburner.core.errors import ConnectionFailed
from backburner.gateway.oauth.flow import CheckedOAuth
from backburner.ports.oauth import TokenIssuer

HERE = "http://127.0.0.1:8484"
LOOPBACK = [ip_network("127.0.0.1/32")]
RESOURCE_METADATA = "/.well-known/oauth-protected-resource"
#: A document of a server inside, as a request forgery would find one.
INSIDE = canary("inside")


async def refusal(oauth: CheckedOAuth, peer: OAuthPeer) -> str:
    with pytest.raises(ConnectionFailed) as caught:
        await oauth.begin(peer.server, origin=HERE)
    return str(caught.value)


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"issuer": "https://other.example"}, "those of another authorization server"),
        ({"issuer": "http://127.0.0.1:1/"}, "those of another authorization server"),
        ({"issuer": ["http://127.0.0.1:1"]}, "those of another authorization server"),
        ({"authorization_endpoint": "http://mail.example/authorize"}, "is not an https address"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "is not an https address"),
        ({"authorization_endpoint": "file:///etc/passwd"}, "is not an https address"),
        ({"authorization_endpoint": "https://a@b.example/x"}, "has a user name"),
        ({"authorization_endpoint": "https://b.example:22/x"}, "the port of another service"),
        ({"authorization_endpoint": "https://a.example\\@b.example"}, "has a user name"),
        ({"token_endpoint": "http://mail.example/token"}, "is not an https address"),
        ({"registration_endpoint": "http://10.0.0.1/register"}, "is not an https address"),
        ({"registration_endpoint": "https://169.254.169.254/latest"}, "cloud metadata"),
        ({"registration_endpoint": "https://10.0.0.1/register"}, "not a public address"),
        ({"registration_endpoint": "https://[::ffff:10.0.0.1]/x"}, "not a public address"),
        ({"code_challenge_methods_supported": None}, "PKCE with S256"),
        ({"code_challenge_methods_supported": ["plain"]}, "PKCE with S256"),
        ({"response_types_supported": ["token"]}, "no authorization codes"),
        ({"token_endpoint": [INSIDE]}, "are not valid"),
        ({"scopes_supported": INSIDE}, "are not valid"),
    ],
)
async def test_metadata_of_an_authorization_server_that_lead_elsewhere_are_refused(
    oauth: CheckedOAuth, peer: OAuthPeer, metadata: Mapping[str, Any], words: str
) -> None:
    peer.switch(metadata=metadata)

    message = await refusal(oauth, peer)

    assert words in message
    assert INSIDE not in message
    assert peer.count("registered") == 0


@pytest.mark.parametrize(
    ("resource", "words"),
    [
        ({"resource": "https://other.example/mcp"}, "about another server"),
        ({"resource": "PEER/mcp2"}, "about another server"),
        ({"resource": "PEER/mcp/../mcp"}, "about another server"),
        ({"resource": "PEER/mcp#x"}, "has a user name, a password or a fragment"),
        ({"resource": " PEER/mcp"}, "is not a valid address"),
        ({"resource": None}, "are not valid"),
        ({"authorization_servers": []}, "are not valid"),
        ({"authorization_servers": ["http://login.example"]}, "is not an https address"),
        ({"authorization_servers": ["https://169.254.169.254"]}, "cloud metadata"),
        ({"authorization_servers": ["https://10.1.2.3"]}, "not a public address"),
        ({"authorization_servers": ["https://login.example?x=y"]}, "a query"),
    ],
)
async def test_metadata_of_a_server_that_lead_elsewhere_are_refused(
    oauth: CheckedOAuth, peer: OAuthPeer, resource: Mapping[str, Any], words: str
) -> None:
    if resource.get("resource"):
        resource = {"resource": resource["resource"].replace("PEER/mcp", peer.server)}
    peer.switch(resource_metadata=resource)

    assert words in await refusal(oauth, peer)


@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize("is_named", [False, True])
async def test_a_host_that_says_so_is_one_server_with_all_that_is_below(
    oauth: CheckedOAuth, peer: OAuthPeer, slash: str, *, is_named: bool
) -> None:
    parent = peer.server.removesuffix("/mcp")
    place = f"{parent}{RESOURCE_METADATA}"
    peer.switch(
        resource_metadata={"resource": f"{parent}{slash}"},
        copies={RESOURCE_METADATA: f"{RESOURCE_METADATA}/mcp"},
        challenge=f'Bearer resource_metadata="{place}"' if is_named else None,
    )

    begun = await oauth.begin(peer.server, origin=HERE)

    assert begun.pending.issuer.resource == f"{parent}{slash}"


async def test_a_server_gets_no_tokens_for_the_whole_host_because_it_says_so_itself(
    oauth: CheckedOAuth, peer: OAuthPeer
) -> None:
    """As one of several tenants of a host, whose tokens are none of its business."""
    parent = peer.server.removesuffix("/mcp")
    peer.switch(resource_metadata={"resource": parent})

    begun = await oauth.begin(peer.server, origin=HERE)

    assert begun.pending.issuer.resource == peer.server
    assert f"resource={quote(peer.server, safe='')}" in begun.url


async def test_a_resource_that_parsers_read_differently_is_refused(oauth: CheckedOAuth) -> None:
    """One finds the host of the server in it, and the one that gives out tokens another."""

    def serve(path: str) -> bytes:
        if not path.startswith(RESOURCE_METADATA):
            return answer("No.", status="404 No")
        resource = f"{server.url()[:-1]}\\@victim.example/"
        named = {"resource": resource, "authorization_servers": [server.url()[:-1]]}
        return answer(json.dumps(named), kind="application/json")

    async with web(serve) as server:
        with pytest.raises(ConnectionFailed, match="The resource of the server is not"):
            await oauth.begin(server.url("/@victim.example/mcp"), origin=HERE)


async def test_the_challenge_cannot_lead_to_other_addresses(
    oauth: CheckedOAuth, peer: OAuthPeer
) -> None:
    for address, words in (
        ("http://169.254.169.254/latest", "is not an https address"),
        ("https://169.254.169.254/latest", "cloud metadata"),
        ("https://192.168.0.1/", "not a public address"),
    ):
        peer.switch(challenge=f'Bearer resource_metadata="{address}"')
        assert words in await refusal(oauth, peer)


async def test_redirects_of_metadata_are_not_followed(oauth: CheckedOAuth, peer: OAuthPeer) -> None:
    async with web(lambda _: answer(INSIDE)) as inside:
        peer.switch(metadata_location=inside.url("/"))

        message = await refusal(oauth, peer)

        assert inside.asked == []
    assert "wants a key" in message
    assert "--header Authorization" in message


@pytest.mark.parametrize("place", ["javascript:alert(1)", "http://[", "http://a:99999/", "//\x7f"])
async def test_redirects_to_what_is_no_address_are_refused_in_words(
    oauth: CheckedOAuth, place: str
) -> None:
    async with web(lambda _: redirect(place)) as server:
        url = server.url()
        client = OAuthClient(client_id="c")
        issuer = TokenIssuer(issuer=url, token_endpoint=url, resource=url, client=client)
        with pytest.raises(ConnectionFailed):
            await oauth.refresh(issuer, "r")
        with pytest.raises(ConnectionFailed):
            await oauth.begin(server.url("/mcp"), origin=HERE)


async def test_redirects_of_the_server_are_not_followed(oauth: CheckedOAuth) -> None:
    async with web(lambda _: answer(INSIDE)) as inside:
        async with web(lambda _: redirect(inside.url("/"))) as server:
            with pytest.raises(ConnectionFailed, match="does not ask for a sign-in"):
                await oauth.begin(server.url("/mcp"), origin=HERE)
        assert inside.asked == []


async def test_large_documents_are_not_read_to_the_end(
    oauth: CheckedOAuth, peer: OAuthPeer
) -> None:
    peer.switch(extra_bytes=2**20)

    assert "is larger than 256 KiB" in await refusal(oauth, peer)


async def test_slow_documents_are_not_waited_for(peer: OAuthPeer) -> None:
    peer.switch(metadata_seconds=30)
    hasty = CheckedOAuth(allow=LOOPBACK, within=timedelta(seconds=0.5))
    assert "did not respond completely within 0.5 seconds" in await refusal(hasty, peer)

    whole = CheckedOAuth(allow=LOOPBACK, begin_within=timedelta(seconds=0.5))
    assert "took longer than 0.5 seconds" in await refusal(whole, peer)


async def test_servers_of_this_machine_are_refused_unless_the_operator_allows_them(
    peer: OAuthPeer,
) -> None:
    assert "is not an https address" in await refusal(CheckedOAuth(), peer)
    assert peer.record()["paths"] == []


@pytest.mark.parametrize(
    "body", ["[" * 100_000, '["issuer"]', "<html>", '{"resource": 1e999}', "\x00", "null"]
)
async def test_documents_that_are_no_metadata_are_no_metadata(
    oauth: CheckedOAuth, body: str
) -> None:
    async with web(lambda _: answer(body)) as server:
        with pytest.raises(ConnectionFailed, match=r"does not ask for a sign-in|are not valid"):
            await oauth.begin(server.url("/mcp"), origin=HERE)


async def test_only_the_head_of_an_answer_without_a_token_is_read(
    oauth: CheckedOAuth,
) -> None:
    # The rest never comes, as in a stream that has no end.
    endless = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"

    def serve(path: str) -> bytes:
        return endless if path == "/mcp" else answer("No.", status="404 No")

    async with web(serve) as server:
        with pytest.raises(ConnectionFailed, match="does not ask for a sign-in"):
            await oauth.begin(server.url("/mcp"), origin=HERE)


async def test_a_server_that_is_broken_is_asked_again_later(oauth: CheckedOAuth) -> None:
    async with web(lambda _: answer(INSIDE, status="503 No")) as server:
        with pytest.raises(ConnectionFailed, match="status 503") as caught:
            await oauth.begin(server.url("/mcp"), origin=HERE)

    assert not caught.value.permanent
    assert INSIDE not in str(caught.value)


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        ('{"access_token": "a\\nx-evil: 1", "token_type": "bearer"}', "cannot be sent"),
        ('{"access_token": "", "token_type": "bearer"}', "an empty token"),
        ('{"access_token": "a", "token_type": "mac"}', "are not valid"),
        ('{"token_type": "bearer"}', "are not valid"),
        ("<html>", "are not valid"),
        ('{"access_token": "a", "refresh_token": "ü", "token_type": "bearer"}', "cannot be sent"),
    ],
)
async def test_tokens_that_cannot_be_used_are_refused(
    oauth: CheckedOAuth, peer: OAuthPeer, tokens: str, words: str
) -> None:
    async with web(lambda _: answer(tokens)) as server:
        peer.switch(metadata={"token_endpoint": server.url("/token")})
        begun = await oauth.begin(peer.server, origin=HERE)

        with pytest.raises(ConnectionFailed, match=words):
            await oauth.exchange(begun.pending, "code")


@pytest.mark.parametrize(
    ("sloppy", "lifetime", "scopes"),
    [
        ({"expires_in": 3599.5}, 3599, None),
        ({"expires_in": "3600"}, 3600, None),
        ({"expires_in": "3599.9"}, 3599, None),
        ({"expires_in": "soon"}, None, None),
        ({"expires_in": True}, None, None),
        ({"expires_in": 1e999}, None, None),
        ({"expires_in": -5}, 0, None),
        ({"expires_in": {}}, None, None),
        ({"scope": ["a", "b"]}, None, ("a", "b")),
        ({"scope": ["a", 1]}, None, ("a",)),
        ({"scope": 7}, None, None),
        ({"token_type": None}, None, None),
        ({"token_type": "BEARER"}, None, None),
    ],
)
async def test_new_tokens_are_not_lost_for_what_else_a_reply_says(
    oauth: CheckedOAuth, sloppy: Mapping[str, Any], lifetime: int | None, scopes: object
) -> None:
    """The refresh token before may be used up: what comes with its successor is no reason."""
    reply = {"access_token": "new", "refresh_token": "next", "token_type": "bearer", **sloppy}
    async with web(lambda _: answer(json.dumps(reply), kind="application/json")) as server:
        url = server.url()
        client = OAuthClient(client_id="c")
        issuer = TokenIssuer(issuer=url, token_endpoint=url, resource=url, client=client)
        tokens = await oauth.refresh(issuer, "r")

    assert (tokens.access, tokens.refresh, tokens.scopes) == ("new", "next", scopes)
    assert tokens.lifetime == (None if lifetime is None else timedelta(seconds=lifetime))


async def test_scopes_of_a_token_are_those_that_can_be_shown(oauth: CheckedOAuth) -> None:
    scope = "mail \x1b]0;owned\x07 \u202egnp.exe a\x00b " + " ".join(f"s{n}" for n in range(9_000))
    reply = {"access_token": "t", "token_type": "Bearer", "scope": scope}
    async with web(lambda _: answer(json.dumps(reply), kind="application/json")) as server:
        url = server.url()
        issuer = TokenIssuer(
            issuer=url,
            token_endpoint=url,
            revocation_endpoint="",
            resource=url,
            client=OAuthClient(client_id="c"),
        )
        tokens = await oauth.refresh(issuer, "r")

    assert tokens.scopes is not None
    assert tokens.scopes[:2] == ("mail", "s0")
    assert len(tokens.scopes) <= 100


async def test_the_operators_client_is_not_used_for_a_server_that_only_names_its_issuer(
    peer: OAuthPeer, start: Start
) -> None:
    servers = frozenset({urlsplit(peer.server).netloc})
    client = OAuthClient(client_id="operator", secret="s")  # noqa: S106
    configured = CheckedOAuth(
        allow=[ip_network("127.0.0.1/32")], clients={peer.issuer: ConfiguredClient(client, servers)}
    )
    with oauth_peer(start) as evil:
        evil.switch(
            resource_metadata={
                "authorization_servers": [peer.issuer],
                "scopes_supported": ["mail.read", "mail.send"],
            }
        )
        asked = await configured.begin(evil.server, origin=HERE)

    assert asked.pending.issuer.client.client_id != "operator"
