"""The peer as tests use it: start it, change it, give consent as one of its users."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx2

from support.programs.programs import PATIENCE, PYTHON, Start

METHOD = "client_secret_basic"


class OAuthPeer:
    """An authorization server and an MCP server in another process, on two origins.

    Users are whoever says so: `approve` is what they do in their browser.
    """

    def __init__(self, issuer: str, server: str, client: httpx2.Client) -> None:
        self.issuer = issuer
        #: The URL of the MCP server.
        self.server = server
        self._client = client

    def switch(self, **switches: Any) -> None:
        """Set some of `Switches`."""
        self._control({"switches": switches})

    def ask_for(self, *scopes: str) -> None:
        """Say in the refusal of a request which scopes a sign-in should have."""
        origin = self.server.removesuffix("/mcp")
        metadata = f"{origin}/.well-known/oauth-protected-resource/mcp"
        said = f'Bearer resource_metadata="{metadata}", scope="{" ".join(scopes)}"'
        self.switch(challenge=said)

    def revoke(self, *who: str) -> None:
        """End all tokens of users."""
        self._control({"revoke": who})

    def expire(self, *who: str) -> None:
        """End the access tokens of users, and leave their refresh tokens."""
        self._control({"expire": who})

    def forget_clients(self) -> None:
        self._control({"forget_clients": True})

    def register_by_hand(self, redirect_uri: str) -> tuple[str, str]:
        """Register a client, as somebody does on a page of theirs; return its id and secret."""
        wanted = {"redirect_uris": [redirect_uri], "token_endpoint_auth_method": METHOD}
        answer = self._client.post(f"{self.issuer}/register", json=wanted).raise_for_status()
        return answer.json()["client_id"], answer.json()["client_secret"]

    def record(self) -> dict[str, Any]:
        """Return what it has done: see `Record`."""
        found: dict[str, Any] = self._client.get(f"{self.issuer}/control").json()
        return found

    def count(self, what: str) -> int:
        counts: Mapping[str, int] = self.record()["counts"]
        return counts.get(what, 0)

    def wait_for_token_requests(self, count: int) -> None:
        """Wait until the token endpoint has been asked so often since the start."""
        until = time.monotonic() + PATIENCE
        while len(self.record()["token_requests"]) < count:
            assert time.monotonic() < until, "Nobody asks for tokens."

    def approve(self, authorization_url: str, who: str = "ann", *, allowed: bool = True) -> str:
        """Give consent in a browser, and return the address that it is sent to."""
        asked = self._client.get(authorization_url)
        assert asked.status_code == 302, asked.text
        address = str(asked.headers["location"])
        ticket = httpx2.URL(address).params.get("ticket")
        if ticket is None:
            # It has refused by itself, and asks nobody.
            return address
        form = {"ticket": ticket, "who": who, "allowed": "yes" if allowed else ""}
        decided = self._client.post(f"{self.issuer}/consent", data=form)
        assert decided.status_code == 302, decided.text
        return str(decided.headers["location"])

    def _control(self, wanted: Mapping[str, Any]) -> None:
        self._client.post(f"{self.issuer}/control", json=wanted).raise_for_status()


@contextmanager
def oauth_peer(start: Start) -> Iterator[OAuthPeer]:
    """Start a peer, which ends with what starts it."""
    running = start(command=(*PYTHON, "support.oauth_peer"))
    issuer, server = running.read_line().split()
    with httpx2.Client(timeout=20, trust_env=False) as client:
        yield OAuthPeer(issuer, server, client)
