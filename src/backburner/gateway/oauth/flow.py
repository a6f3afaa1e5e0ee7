"""OAuth 2.1 as the actions use it: begin, exchange, refresh, revoke. Nothing is kept in between."""

import asyncio
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta

import httpx2
from mcp.client.auth import PKCEParameters

from backburner.core.connections.catalogue import CATALOGUE
from backburner.core.connections.catalogue_entry import CatalogueEntry, find_by_url
from backburner.core.connections.oauth_client import ConfiguredClient, OAuthClient
from backburner.core.errors import ConnectionFailed, SignedOut
from backburner.gateway.addresses import IpNetwork
from backburner.gateway.oauth.addresses import check_address
from backburner.gateway.oauth.clients import choose_client, method_for
from backburner.gateway.oauth.discovery import OFFLINE_ACCESS, SignInTerms, discover
from backburner.gateway.oauth.parties import check_named, check_parties
from backburner.gateway.oauth.requests import REQUEST_TIMEOUT, Requests
from backburner.gateway.oauth.tokens import ask_for_tokens, revoke
from backburner.gateway.transport import Resolve
from backburner.ports.oauth import (
    CALLBACK_PATH,
    ISSUER_CALLBACK_PATH,
    ISSUER_DOCUMENT_PATH,
    PendingSignIn,
    SignInRequest,
    TokenIssuer,
    Tokens,
    issuer_key,
)

#: For all requests with which a sign-in begins.
BEGIN_TIMEOUT = timedelta(seconds=40)


class CheckedOAuth:
    """Asks public servers only, and those in the networks that the operator allows."""

    def __init__(
        self,
        *,
        allow: Iterable[IpNetwork] = (),
        public_url: str = "",
        clients: Mapping[str, ConfiguredClient] | None = None,
        catalogue: Iterable[CatalogueEntry] = CATALOGUE,
        resolve: Resolve | None = None,
        within: timedelta = REQUEST_TIMEOUT,
        begin_within: timedelta = BEGIN_TIMEOUT,
    ) -> None:
        """`clients` are those of the operator, by issuer; `catalogue` has servers to be trusted."""
        self._requests = Requests(allow=allow, resolve=resolve, within=within)
        self._public_url = public_url if public_url.startswith("https://") else ""
        self._clients = clients or {}
        self._catalogue = tuple(catalogue)
        self._begin_within = begin_within

    async def begin(
        self,
        server_url: str,
        *,
        origin: str,
        client: OAuthClient | None = None,
        issuer: str = "",
        earlier: TokenIssuer | None = None,
        scopes: Iterable[str] = (),
    ) -> SignInRequest:
        try:
            async with asyncio.timeout(self._begin_within.total_seconds()):
                found = await discover(self._requests, server_url)
                check_named(found, issuer)
                earlier = earlier if earlier and earlier.issuer == found.issuer else None
                is_named = bool(issuer) or bool(earlier and earlier.is_named)
                if not (is_named or self._is_vouched_for(server_url, found)):
                    check_parties(found, client_is_given=client is not None)
                known = self._known_client(server_url, found, client, earlier)
                return await self._request(
                    found,
                    origin,
                    known,
                    tuple(scopes),
                    registered=earlier.client if earlier else None,
                    is_named=is_named,
                )
        except TimeoutError:
            seconds = self._begin_within.total_seconds()
            raise ConnectionFailed(
                f"The servers took longer than {seconds:g} seconds to say how to sign in."
            ) from None

    async def exchange(self, pending: PendingSignIn, code: str) -> Tokens:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": pending.redirect_uri,
            "code_verifier": pending.verifier,
            "resource": pending.issuer.resource,
        }
        try:
            return await ask_for_tokens(self._requests, pending.issuer, form)
        except SignedOut as error:
            raise ConnectionFailed(
                error.message, hint="Start the sign-in again.", permanent=True
            ) from None

    async def refresh(self, issuer: TokenIssuer, refresh_token: str) -> Tokens:
        form = {
            "grant_type": "refresh_token",
            "refresh_token": refresh_token,
            "resource": issuer.resource,
        }
        return await ask_for_tokens(self._requests, issuer, form)

    async def revoke(self, issuer: TokenIssuer, token: str) -> None:
        if not issuer.revocation_endpoint:
            raise ConnectionFailed("There is no revocation endpoint.", permanent=True)
        await revoke(self._requests, issuer, token)

    async def _request(
        self,
        found: SignInTerms,
        origin: str,
        known: OAuthClient | None,
        more_scopes: tuple[str, ...],
        *,
        is_named: bool,
        registered: OAuthClient | None,
    ) -> SignInRequest:
        scopes = tuple(dict.fromkeys((*found.scopes, *more_scopes)))
        by_hand, key = f"{origin}{CALLBACK_PATH}", issuer_key(found.issuer)
        own = f"{origin}{ISSUER_CALLBACK_PATH.format(issuer_key=key)}"
        client = known or await choose_client(
            self._requests,
            found.metadata,
            registered=registered,
            document=self._document(origin, key),
            redirect_uri=own,
            by_hand=by_hand,
            scopes=scopes,
        )
        keys, state = PKCEParameters.generate(), secrets.token_urlsafe(32)
        metadata = found.metadata
        pending = PendingSignIn(
            issuer=TokenIssuer(
                issuer=found.issuer,
                token_endpoint=str(metadata.token_endpoint),
                revocation_endpoint=str(metadata.revocation_endpoint or ""),
                resource=found.resource,
                client=client,
                is_named=is_named,
            ),
            # An answer that comes to the address of another issuer is one to another.
            redirect_uri=own if known is None else by_hand,
            scopes=scopes,
            names_issuer=bool(metadata.authorization_response_iss_parameter_supported),
            verifier=keys.code_verifier,
        )
        url = self._authorization_url(found, pending, keys.code_challenge, state)
        return SignInRequest(
            url=url,
            host=httpx2.URL(url).netloc.decode(),
            state=state,
            pending=pending,
        )

    def _known_client(
        self,
        server_url: str,
        found: SignInTerms,
        given: OAuthClient | None,
        earlier: TokenIssuer | None,
    ) -> OAuthClient | None:
        """Return the client that somebody has given, for this authorization server only."""
        if given is None and earlier is not None:
            given = earlier.client if earlier.client.is_given else None
        known = given or self._configured(server_url, found)
        if known is None:
            return None
        return replace(known, method=method_for(found.metadata, known.secret))

    def _is_vouched_for(self, server_url: str, found: SignInTerms) -> bool:
        """Return whether we or the operator know the server, and so whom it names."""
        is_known = find_by_url(self._catalogue, server_url) is not None
        return is_known or self._configured(server_url, found) is not None

    def _configured(self, server_url: str, found: SignInTerms) -> OAuthClient | None:
        """Return the operator's client; any server can name its issuer, so it names the servers."""
        configured = self._clients.get(found.issuer)
        host = httpx2.URL(server_url).netloc.decode()
        if configured is None or host not in configured.servers:
            return None
        return configured.client

    def _document(self, origin: str, key: str) -> str:
        """Return the address of our document for an issuer, if its redirect address is there."""
        path = ISSUER_DOCUMENT_PATH.format(issuer_key=key)
        return f"{origin}{path}" if origin == self._public_url else ""

    def _authorization_url(
        self, found: SignInTerms, pending: PendingSignIn, challenge: str, state: str
    ) -> str:
        endpoint = check_address(
            str(found.metadata.authorization_endpoint),
            "The authorization endpoint",
            allow=self._requests.allow,
        )
        parameters = {
            "response_type": "code",
            "client_id": pending.issuer.client.client_id,
            "redirect_uri": pending.redirect_uri,
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "resource": pending.issuer.resource,
        }
        if pending.scopes:
            parameters["scope"] = " ".join(pending.scopes)
        if OFFLINE_ACCESS in pending.scopes:
            # OpenID Connect wants to be asked for it each time.
            parameters["prompt"] = "consent"
        return str(endpoint.copy_merge_params(parameters))
