"""Backburner as a client of authorization servers: for a registration, or as a document."""

from collections.abc import Mapping
from dataclasses import dataclass, field

NAME = "Backburner"


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthClient:
    """Backburner, as an authorization server knows it."""

    client_id: str
    secret: str = field(default="", repr=False)
    #: How the token endpoint is shown who we are: as in metadata, or `none`.
    method: str = "none"
    #: Its user has given it, so that it is used again.
    is_given: bool = False
    #: What it was registered with by us, so that it can be used again; empty: it cannot.
    redirect_uri: str = ""
    scopes: tuple[str, ...] = ()

    def is_registered_for(self, redirect_uri: str, scopes: tuple[str, ...]) -> bool:
        return self.redirect_uri == redirect_uri and set(scopes) <= set(self.scopes)


@dataclass(frozen=True, slots=True)
class ConfiguredClient:
    """A client that the operator has registered with an authorization server."""

    client: OAuthClient
    #: The hosts of the MCP servers that it is for: the tokens of its users go there.
    servers: frozenset[str]


def describe_client(redirect_uri: str) -> Mapping[str, object]:
    # A web client may not be sent back to the user's own machine.
    is_web = redirect_uri.startswith("https://")
    return {
        "client_name": NAME,
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "application_type": "web" if is_web else "native",
    }


def client_document(address: str, redirect_uri: str) -> Mapping[str, object]:
    """Return the client id metadata document that is served at an address."""
    return {
        "client_id": address,
        **describe_client(redirect_uri),
        "token_endpoint_auth_method": "none",
    }
