"""A peer for each test, and OAuth that may reach it."""

from collections.abc import Iterator
from ipaddress import ip_network

import pytest
from support.oauth_peer.peer import OAuthPeer, oauth_peer
from support.programs.programs import Start

from backburner.gateway.oauth.flow import CheckedOAuth


@pytest.fixture
def peer(start: Start) -> Iterator[OAuthPeer]:
    with oauth_peer(start) as peer:
        yield peer


@pytest.fixture
def oauth() -> CheckedOAuth:
    return CheckedOAuth(allow=[ip_network("127.0.0.1/32")])
