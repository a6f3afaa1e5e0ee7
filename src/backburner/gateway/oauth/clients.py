"""Who we are to an authorization server: a given client, our document, or a registration."""

from http import HTTPStatus

from mcp.client.auth import OAuthRegistrationError
from mcp.client.auth.oauth2 import check_registration_usable
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata
from pydantic import ValidationError

from backburner.core.connections.oauth_client import OAuthClient, describe_client
from backburner.core.errors import ConnectionFailed
from backburner.gateway.oauth.requests import Requests

#: How the token endpoint may be shown a secret, best first.
METHODS = ("client_secret_basic", "client_secret_post", "none")
#: What metadata mean that do not say.
_DEFAULT_METHODS = ["client_secret_basic"]


async def choose_client(
    requests: Requests,
    metadata: OAuthMetadata,
    *,
    registered: OAuthClient | None,
    document: str,
    redirect_uri: str,
    by_hand: str,
    scopes: tuple[str, ...],
) -> OAuthClient:
    """Return who we are where nobody has given us a client.

    `registered` is who we were to the same server at an earlier sign-in. `by_hand` is the redirect
    address of clients that somebody gives.
    """
    methods = metadata.token_endpoint_auth_methods_supported or _DEFAULT_METHODS
    if document and metadata.client_id_metadata_document_supported:
        return OAuthClient(client_id=document)
    if metadata.registration_endpoint is not None:
        if registered is not None and registered.is_registered_for(redirect_uri, scopes):
            return registered
        method = next((name for name in METHODS if name in methods), "none")
        endpoint = str(metadata.registration_endpoint)
        return await _register(requests, endpoint, method, redirect_uri, by_hand, scopes)
    raise ConnectionFailed(
        f"{metadata.issuer.host} wants to know Backburner beforehand.",
        hint=f"Register a client there whose redirect address is {by_hand}, and give its id"
        " (--client-id).",
        permanent=True,
    )


def method_for(metadata: OAuthMetadata, secret: str) -> str:
    """Return how to show the secret of a client that was registered by hand."""
    methods = metadata.token_endpoint_auth_methods_supported or _DEFAULT_METHODS
    if not secret:
        return "none"
    return next((name for name in METHODS[:2] if name in methods), METHODS[0])


async def _register(
    requests: Requests,
    endpoint: str,
    method: str,
    redirect_uri: str,
    by_hand: str,
    scopes: tuple[str, ...],
) -> OAuthClient:
    wanted = {**describe_client(redirect_uri), "token_endpoint_auth_method": method}
    if scopes:
        wanted["scope"] = " ".join(scopes)
    label = "The registration endpoint"
    answer = await requests.post_json(endpoint, label, wanted)
    if answer.status == HTTPStatus.BAD_REQUEST and wanted.pop("scope", None):
        # It may not know one of them, which it then says to whoever signs in.
        answer = await requests.post_json(endpoint, label, wanted)
    if answer.status not in (200, 201):
        raise ConnectionFailed(
            f"{answer.host} refused to register Backburner (status {answer.status}).",
            hint=f"Register a client there whose redirect address is {by_hand}, and give its id.",
            permanent=answer.status < 500 and answer.status != 429,
            retry_after=answer.retry_after,
        )
    try:
        found = OAuthClientInformationFull.model_validate(answer.document())
        check_registration_usable(found)
    except (ValidationError, OAuthRegistrationError):
        raise ConnectionFailed(
            f"{answer.host} registered Backburner in a way that it cannot use.", permanent=True
        ) from None
    return OAuthClient(
        client_id=found.client_id,
        secret=found.client_secret or "",
        method=found.token_endpoint_auth_method or (method if found.client_secret else "none"),
        # One whose secret expires is good for this sign-in.
        redirect_uri="" if found.client_secret_expires_at else redirect_uri,
        scopes=scopes,
    )
