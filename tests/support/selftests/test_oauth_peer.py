"""The OAuth peer plays its part: the client of `mcp` itself signs in to it and calls tools."""

import asyncio
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mcp_types import TextContent
from pydantic import AnyUrl

from support.oauth_peer.peer import OAuthPeer, oauth_peer
from support.programs.programs import Start


@pytest.fixture
def peer(start: Start) -> Iterator[OAuthPeer]:
    with oauth_peer(start) as peer:
        yield peer


class Memory:
    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


async def test_the_client_of_the_library_signs_in_and_calls_tools(peer: OAuthPeer) -> None:
    final = asyncio.Queue[str]()

    async def approve(url: str) -> None:
        final.put_nowait(peer.approve(url, "bob"))

    async def come_back() -> AuthorizationCodeResult:
        query = parse_qs(urlsplit(await final.get()).query)
        return AuthorizationCodeResult(**{name: values[0] for name, values in query.items()})

    metadata = OAuthClientMetadata(redirect_uris=[AnyUrl("http://127.0.0.1:1/oauth/callback")])
    auth = OAuthClientProvider(peer.server, metadata, Memory(), approve, come_back)
    async with (
        httpx2.AsyncClient(auth=auth, timeout=10) as http,
        Client(streamable_http_client(peer.server, http_client=http)) as client,
    ):
        told = await client.call_tool("whoami", {})
        await client.call_tool("send", {"to": "ann", "text": "Hello."})

    assert [block.text for block in told.content if isinstance(block, TextContent)] == ["bob"]
    record = peer.record()
    assert record["sent"] == [["bob", "ann", "Hello."]]
    assert record["counts"] == {"registered": 1, "exchanged": 1}
    assert urlsplit(peer.issuer).netloc != urlsplit(peer.server).netloc
