"""Servers whose metadata name a sign-in page of others, so that code and secrets go elsewhere."""

from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from support.oauth_peer.peer import OAuthPeer, oauth_peer
from support.programs.programs import Start

from backburner.core.connections.catalogue_entry import CatalogueEntry
from backburner.core.connections.oauth_client import ConfiguredClient, OAuthClient
from backburner.core.errors import ConnectionFailed
from backburner.gateway.oauth.flow import CheckedOAuth

LOOPBACK = [ip_network("127.0.0.1/32")]
HERE = "http://127.0.0.1:8484"
GIVEN = OAuthClient(client_id="mine", secret="s", is_given=True)  # noqa: S106 (made up)
ENDPOINTS = ("authorization", "token", "registration", "revocation")


@pytest.fixture
def evil(start: Start) -> Iterator[OAuthPeer]:
    with oauth_peer(start) as evil:
        evil.switch(iss="none")
        yield evil


def endpoints(peer: OAuthPeer, *names: str) -> dict[str, str]:
    """Return endpoints of an authorization server, to be put into the metadata of another."""
    address = f"{peer.issuer}/.well-known/oauth-authorization-server"
    found: Mapping[str, str] = httpx2.get(address, trust_env=False).json()
    return {f"{name}_endpoint": found[f"{name}_endpoint"] for name in names}


@pytest.mark.parametrize(
    "borrowed",
    [
        ["authorization"],
        ["authorization", "registration", "revocation"],
        # It would get the tokens in the end.
        ["authorization", "token", "registration"],
        # It would choose as whom we ask.
        ["authorization", "token", "revocation"],
    ],
)
async def test_a_sign_in_page_of_others_is_not_used_with_endpoints_of_ones_own(
    oauth: CheckedOAuth, peer: OAuthPeer, evil: OAuthPeer, borrowed: list[str]
) -> None:
    peer.switch(iss="none")
    evil.switch(metadata=endpoints(peer, *borrowed))

    with pytest.raises(ConnectionFailed, match="nothing shows that they belong together") as caught:
        await oauth.begin(evil.server, origin=HERE)

    shown = urlsplit(peer.issuer).netloc, urlsplit(evil.issuer).netloc
    assert all(host in caught.value.message for host in shown)
    assert f"--issuer {evil.issuer}" in caught.value.hint
    assert (peer.count("registered"), evil.count("registered")) == (0, 0)


@pytest.mark.parametrize(
    ("path", "served"),
    [
        ("/evil/raw/main", "/evil/raw/main/.well-known/openid-configuration"),
        ("/%2e%2e/%2e%2e/evil", "/.well-known/oauth-authorization-server/../../evil"),
    ],
)
async def test_a_document_in_a_path_does_not_speak_for_its_host(
    oauth: CheckedOAuth, peer: OAuthPeer, evil: OAuthPeer, path: str, served: str
) -> None:
    """As with a file in a repository, whose host has a sign-in page too."""
    issuer = f"{peer.issuer}{path}"
    peer.switch(
        iss="none",
        copies={served: "/.well-known/oauth-authorization-server"},
        metadata={"issuer": issuer, **endpoints(evil, "token", "registration", "revocation")},
    )
    evil.switch(resource_metadata={"authorization_servers": [issuer]})

    with pytest.raises(ConnectionFailed, match="nothing shows that they belong together"):
        await oauth.begin(evil.server, origin=HERE)


async def test_the_issuers_own_host_may_name_endpoints_elsewhere(
    oauth: CheckedOAuth, peer: OAuthPeer, evil: OAuthPeer
) -> None:
    """As the one of Google, whose tokens come from another domain."""
    peer.switch(iss="none", metadata=endpoints(evil, "token"))

    begun = await oauth.begin(peer.server, origin=HERE)

    assert begun.pending.issuer.token_endpoint == endpoints(evil, "token")["token_endpoint"]


async def test_endpoints_may_be_where_users_sign_in_whatever_the_issuer_is_called(
    oauth: CheckedOAuth, peer: OAuthPeer, evil: OAuthPeer
) -> None:
    """As those of Cognito."""
    peer.switch(iss="none")
    evil.switch(metadata=endpoints(peer, *ENDPOINTS))

    begun = await oauth.begin(evil.server, origin=HERE)

    assert begun.pending.issuer.token_endpoint.startswith(peer.issuer)


async def test_an_issuer_that_names_itself_at_the_end_may_have_several_hosts(
    oauth: CheckedOAuth, peer: OAuthPeer, evil: OAuthPeer
) -> None:
    evil.switch(iss="right", metadata=endpoints(peer, "authorization"))

    begun = await oauth.begin(evil.server, origin=HERE)

    assert begun.pending.names_issuer


async def test_an_issuer_that_its_user_names_may_have_several_hosts(
    oauth: CheckedOAuth, peer: OAuthPeer, evil: OAuthPeer
) -> None:
    evil.switch(metadata=endpoints(peer, "authorization"))

    begun = await oauth.begin(evil.server, origin=HERE, issuer=evil.issuer)
    again = await oauth.begin(evil.server, origin=HERE, earlier=begun.pending.issuer)

    assert begun.url.startswith(peer.issuer)
    assert again.pending.issuer.token_endpoint == begun.pending.issuer.token_endpoint


async def test_another_issuer_than_its_user_names_is_refused(
    oauth: CheckedOAuth, peer: OAuthPeer
) -> None:
    with pytest.raises(ConnectionFailed, match="names another authorization server") as caught:
        await oauth.begin(peer.server, origin=HERE, issuer="https://login.example")

    assert peer.issuer in caught.value.message
    assert peer.count("registered") == 0


async def test_a_client_that_is_given_is_used_at_the_issuer_that_its_user_names(
    oauth: CheckedOAuth, peer: OAuthPeer, evil: OAuthPeer
) -> None:
    with pytest.raises(ConnectionFailed, match="would get your client") as caught:
        await oauth.begin(evil.server, origin=HERE, client=GIVEN)
    assert f"--issuer {evil.issuer}" in caught.value.hint
    with pytest.raises(ConnectionFailed, match="names another authorization server"):
        await oauth.begin(evil.server, origin=HERE, client=GIVEN, issuer=peer.issuer)

    begun = await oauth.begin(peer.server, origin=HERE, client=GIVEN, issuer=peer.issuer)
    assert parse_qs(urlsplit(begun.url).query)["client_id"] == [GIVEN.client_id]


async def test_the_operator_and_the_catalogue_vouch_for_whom_a_server_names(
    peer: OAuthPeer, evil: OAuthPeer
) -> None:
    evil.switch(metadata=endpoints(peer, "authorization"))
    client = ConfiguredClient(GIVEN, frozenset({urlsplit(evil.server).netloc}))
    entry = CatalogueEntry(name="a", title="A", url=evil.server, purpose="", docs="")

    configured = CheckedOAuth(allow=LOOPBACK, clients={evil.issuer: client})
    begun = await configured.begin(evil.server, origin=HERE)
    known = CheckedOAuth(allow=LOOPBACK, catalogue=[entry])
    again = await known.begin(evil.server, origin=HERE, client=GIVEN)

    assert begun.url.startswith(peer.issuer)
    assert again.url.startswith(peer.issuer)
    # Their words count each time, and are not kept as those of the user.
    assert [one.pending.issuer.is_named for one in (begun, again)] == [False, False]
