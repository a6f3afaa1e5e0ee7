"""The tokens of the authorization server: short, rotating, and bound to a user and a server."""

import secrets
import time
from dataclasses import dataclass

import httpx2
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from support.faults.canaries import canary
from support.oauth_peer.switches import Record, Switches

SCOPES = ("mail.read", "mail.send")


@dataclass
class Ticket:
    """A user who is being asked for consent."""

    client_id: str
    params: AuthorizationParams


class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    def __init__(self, issuer: str, switches: Switches, record: Record) -> None:
        self.issuer = issuer
        self._switches = switches
        self._record = record
        self.clients = dict[str, OAuthClientInformationFull]()
        self.tickets = dict[str, Ticket]()
        self._codes = dict[str, AuthorizationCode]()
        self._access = dict[str, AccessToken]()
        #: When each ends, to the fraction of a second.
        self._ends = dict[str, float]()
        self._refresh = dict[str, RefreshToken]()
        #: Refresh tokens that were used, with what each gave.
        self._used = dict[str, tuple[RefreshToken, OAuthToken]]()

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        if self._switches.documents and client_id.startswith("https://"):
            return await _fetch_document(client_id)
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self._record.counts["registered"] += 1
        self._record.registrations.append(client_info.model_dump(mode="json", exclude_none=True))
        self.clients[client_info.client_id] = client_info
        if client_info.client_secret:
            client_info.client_secret = self._new("client")

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        ticket = secrets.token_urlsafe(8)
        self.tickets[ticket] = Ticket(client.client_id, params)
        return f"{self.issuer}/consent?ticket={ticket}"

    def decide(self, ticket: str, who: str, *, allowed: bool) -> str:
        """Return the final address, which the browser is sent to."""
        asked = self.tickets.pop(ticket)
        params = asked.params
        issuers = {"right": self.issuer, "wrong": "https://other.example", "none": None}
        answer = {"state": params.state, "iss": issuers[self._switches.iss]}
        if not allowed:
            answer |= {"error": "access_denied", "error_description": canary("words-of-others")}
            return construct_redirect_uri(str(params.redirect_uri), **answer)
        given = self._switches.given_scopes
        code = AuthorizationCode(
            code=self._new("code"),
            scopes=[one for one in params.scopes or SCOPES if given is None or one in given],
            expires_at=time.time() + 60,
            client_id=asked.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
            subject=who,
        )
        self._codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, **answer)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        found = self._codes.get(authorization_code)
        return found if found and found.client_id == client.client_id else None

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self._codes[authorization_code.code]
        self._record.counts["exchanged"] += 1
        code = authorization_code
        return self._issue(client.client_id, code.subject or "", code.scopes, code.resource)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        found = self._refresh.get(refresh_token)
        if found is None and refresh_token in self._used:
            used, _ = self._used[refresh_token]
            if self._switches.grace:
                return used
            if self._switches.reuse_revokes:
                self.revoke(used.subject or "")
        if found is None or found.client_id != client.client_id:
            self._record.counts["refused"] += 1
            return None
        return found

    async def exchange_refresh_token(
        self,
        client: OAuthClientInformationFull,
        refresh_token: RefreshToken,
        scopes: list[str],
    ) -> OAuthToken:
        self._record.counts["refreshed"] += 1
        if refresh_token.token in self._used:
            return self._used[refresh_token.token][1]
        subject = refresh_token.subject or ""
        if not self._switches.rotate:
            tokens = self._issue(client.client_id, subject, scopes, refresh_token.resource)
            self._refresh.pop(tokens.refresh_token or "", None)
            tokens.refresh_token = refresh_token.token
        else:
            if self._refresh.pop(refresh_token.token, None) is None:
                raise TokenError("invalid_grant", "It was used.")
            tokens = self._issue(client.client_id, subject, scopes, refresh_token.resource)
            self._used[refresh_token.token] = refresh_token, tokens
        if self._switches.terse:
            tokens.refresh_token = tokens.scope = None
        return tokens

    async def load_access_token(self, token: str) -> AccessToken | None:
        found = self._access.get(token)
        return found if found and time.time() < self._ends[token] else None

    async def may(self, authorization: str, scope: str) -> bool:
        """Say whether the token of a header has a scope."""
        found = await self.load_access_token(authorization.removeprefix("Bearer "))
        return found is not None and scope in found.scopes

    async def verify_token(self, token: str) -> AccessToken | None:
        return await self.load_access_token(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self._record.counts["revoked"] += 1
        self._access.pop(token.token, None)
        self._refresh.pop(token.token, None)

    def revoke(self, who: str, *, only_access: bool = False) -> None:
        """End the tokens of a user."""
        for tokens in (self._access,) if only_access else (self._access, self._refresh):
            for name in [name for name, token in tokens.items() if token.subject == who]:
                del tokens[name]

    def _issue(
        self, client_id: str, subject: str, scopes: list[str], resource: str | None
    ) -> OAuthToken:
        seconds = self._switches.access_seconds
        facts = {
            "client_id": client_id,
            "scopes": scopes,
            "resource": resource,
            "subject": subject,
        }
        access = AccessToken.model_validate({"token": self._new("access"), **facts})
        self._access[access.token], self._ends[access.token] = access, time.time() + seconds
        refresh = None
        if self._switches.refresh_tokens:
            refresh = RefreshToken.model_validate({"token": self._new("refresh"), **facts})
            self._refresh[refresh.token] = refresh
        return OAuthToken(
            access_token=access.token,
            expires_in=int(seconds),
            scope=" ".join(scopes),
            refresh_token=refresh.token if refresh else None,
        )

    def _new(self, kind: str) -> str:
        made = f"{canary(kind)}.{secrets.token_urlsafe(24)}"
        self._record.secrets.append(made)
        return made


async def _fetch_document(url: str) -> OAuthClientInformationFull | None:
    async with httpx2.AsyncClient(verify=False, timeout=10) as client:
        document = (await client.get(url)).raise_for_status().json()
    if document["client_id"] != url:
        return None
    return OAuthClientInformationFull.model_validate({**document, "scope": " ".join(SCOPES)})
