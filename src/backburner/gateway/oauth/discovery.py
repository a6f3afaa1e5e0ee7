"""Find the authorization server of an MCP server, and refuse metadata that do not belong to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    extract_field_from_www_auth,
)
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url
from mcp_types import LATEST_PROTOCOL_VERSION
from pydantic import BaseModel, ValidationError

from backburner import __version__
from backburner.core.connections.scopes import read_scopes
from backburner.core.errors import ConnectionFailed
from backburner.gateway.oauth.addresses import check_address
from backburner.gateway.oauth.requests import Answer, Requests

M = TypeVar("M", bound=BaseModel)

#: Asked for besides, where a server has it: refresh tokens may depend on it.
OFFLINE_ACCESS = "offline_access"
_HEADERS = {"mcp-protocol-version": LATEST_PROTOCOL_VERSION}
#: What a client says first. It changes nothing.
_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "backburner", "version": __version__},
    },
}


@dataclass(frozen=True, slots=True)
class SignInTerms:
    """How to sign in to an MCP server."""

    #: Exactly as the authorization server names itself, and the server that tokens are for.
    issuer: str
    resource: str
    metadata: OAuthMetadata
    #: Those that the server wants.
    scopes: tuple[str, ...]
    #: Where its metadata were found.
    found_at: str


@dataclass(frozen=True, slots=True)
class _Resource:
    """The metadata of an MCP server."""

    issuer: str
    resource: str
    scopes: tuple[str, ...]


async def discover(requests: Requests, server_url: str) -> SignInTerms:
    host = check_address(server_url, "The address of the server", allow=requests.allow).host
    refusal = await _ask_without_token(requests, server_url)
    resource = await _find_resource(requests, server_url, refusal)
    challenged = read_scopes((_challenge(refusal, "scope") or "").split())
    if resource is None:
        # Servers of 2025-03-26 are their own authorization servers.
        parts = urlsplit(server_url)
        own = resource_url_from_server_url(server_url)
        resource = _Resource(f"{parts.scheme}://{parts.netloc}", own, ())
    found = await _find_metadata(requests, resource.issuer, server_url)
    if found is None:
        if refusal.status not in (401, 403):
            raise ConnectionFailed(
                f"{host} does not ask for a sign-in.",
                hint="Connect to it without one, or with a key in a header.",
                permanent=True,
            )
        raise ConnectionFailed(
            f"{host} wants a key.",
            hint=f"Run `backburner connect {server_url} --header Authorization`.",
            permanent=True,
        )
    url, issuer, metadata = found
    _check_metadata(metadata)
    scopes = challenged or resource.scopes
    if scopes and OFFLINE_ACCESS in (metadata.scopes_supported or ()):
        scopes = tuple(dict.fromkeys((*scopes, OFFLINE_ACCESS)))
    return SignInTerms(issuer, resource.resource, metadata, scopes, url)


async def _ask_without_token(requests: Requests, server_url: str) -> Answer:
    accept = {"accept": "application/json, text/event-stream", **_HEADERS}
    answer = await requests.ask_for_head(server_url, "The address of the server", _HELLO, accept)
    if answer.status >= 500:
        raise _trouble(answer)
    return answer


async def _find_resource(requests: Requests, server_url: str, refusal: Answer) -> _Resource | None:
    named = _challenge(refusal, "resource_metadata")
    for url in build_protected_resource_metadata_discovery_urls(named, server_url):
        document = await _fetch(requests, url)
        if document is None:
            continue
        host = httpx2.URL(server_url).host
        label = f"The resource metadata of {host}"
        found = _validate(ProtectedResourceMetadata, document, label)
        # Both are compared and repeated as they are written, which models do not keep.
        resource, issuer = document["resource"], document["authorization_servers"][0]
        check_address(resource, "The resource of the server", allow=requests.allow)
        own = resource_url_from_server_url(server_url)
        if not check_resource_allowed(own, resource):
            raise ConnectionFailed(f"{label} are about another server.", permanent=True)
        if not await _may_have_tokens_for(requests, own, resource, url):
            resource = own
        return _Resource(issuer, resource, read_scopes(found.scopes_supported or ()))
    return None


async def _may_have_tokens_for(requests: Requests, own: str, resource: str, found_at: str) -> bool:
    """Return whether a server may have tokens for a resource that it names.

    Those for a parent are good for all that is below, also for servers of others on its host. So
    what counts is said at the parent's own place.
    """
    is_own = check_resource_allowed(resource, own)
    if is_own and urlsplit(own).query == urlsplit(resource).query:
        return True
    place, *_ = build_protected_resource_metadata_discovery_urls(None, resource)
    if place == found_at:
        return True
    document = await _fetch(requests, place)
    return document is not None and document.get("resource") == resource


async def _find_metadata(
    requests: Requests, issuer: str, server_url: str
) -> tuple[str, str, OAuthMetadata] | None:
    """Return where metadata were found, the issuer as they write it, and the metadata."""
    address = check_address(issuer, "The issuer", allow=requests.allow)
    if address.query:
        raise ConnectionFailed("The issuer has a query in its address.", permanent=True)
    for url in build_oauth_authorization_server_metadata_discovery_urls(issuer, server_url):
        document = await _fetch(requests, url)
        if document is None:
            continue
        label = f"The metadata of {address.host}"
        own = document.get("issuer")
        if not isinstance(own, str) or not is_same_issuer(own, issuer):
            raise ConnectionFailed(
                f"{label} are those of another authorization server: its issuer is not the one"
                " that the MCP server names.",
                permanent=True,
            )
        for name in ("authorization", "token", "registration", "revocation"):
            endpoint = document.get(f"{name}_endpoint")
            if isinstance(endpoint, str):
                check_address(endpoint, f"The {name} endpoint", allow=requests.allow)
        return url, own, _validate(OAuthMetadata, document, label)
    return None


def is_same_issuer(one: str, other: str) -> bool:
    """Compare issuers as they are written, but for the slash at the end of a host: servers name
    Google's with one, which has none, and no other issuer can have that address."""
    if one == other:
        return True
    origin, longer = sorted((one, other), key=len)
    return longer == f"{origin}/" and urlsplit(origin).path == ""


def _check_metadata(metadata: OAuthMetadata) -> None:
    host = metadata.issuer.host
    if "S256" not in (metadata.code_challenge_methods_supported or ()):
        raise ConnectionFailed(
            f"{host} does not say that it supports PKCE with S256, without which a stolen code"
            " could be used.",
            permanent=True,
        )
    if "code" not in metadata.response_types_supported:
        raise ConnectionFailed(f"{host} gives out no authorization codes.", permanent=True)


async def _fetch(requests: Requests, url: str) -> dict[str, Any] | None:
    """Fetch a document with metadata; None: it is not there."""
    answer = await requests.get(url, "The address of metadata", _HEADERS)
    if answer.status >= 500 or answer.status == 429:
        raise _trouble(answer)
    # Some servers have a page for whatever they do not have.
    return answer.document() if answer.status == 200 else None


def _trouble(answer: Answer) -> ConnectionFailed:
    return ConnectionFailed(
        f"{answer.host} answered with status {answer.status}.",
        hint="Try again later.",
        retry_after=answer.retry_after,
    )


def _challenge(answer: Answer, name: str) -> str | None:
    if answer.status not in (401, 403):
        return None
    response = httpx2.Response(answer.status, headers=answer.headers)
    return extract_field_from_www_auth(response, name)


def _validate(model: type[M], document: Mapping[str, Any], label: str) -> M:
    try:
        return model.model_validate(document)
    except ValidationError:
        # Its text has the values in it.
        raise ConnectionFailed(f"{label} are not valid.", permanent=True) from None
