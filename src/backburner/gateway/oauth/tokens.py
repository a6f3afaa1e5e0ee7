"""Requests to token endpoints, and what their answers mean."""

import base64
import re
from collections.abc import Mapping
from datetime import timedelta
from math import isfinite
from typing import Any
from urllib.parse import quote

from backburner.core.connections.oauth_client import OAuthClient
from backburner.core.connections.scopes import read_scopes
from backburner.core.errors import ConnectionFailed, SignedOut
from backburner.gateway.oauth.requests import Answer, Requests
from backburner.ports.oauth import TokenIssuer, Tokens

#: Errors after which no refresh can succeed. The last one is GitHub's.
SIGNED_OUT_ERRORS = frozenset(
    {"invalid_grant", "invalid_client", "unauthorized_client", "bad_refresh_token"}
)
MAX_TOKEN_CHARS = 16_000
#: Of tokens, in any case of letters. Others want more of requests than a header.
BEARER = "bearer"
#: A token is put into a header.
_TOKEN = re.compile(r"[\x21-\x7e]+")
#: Codes are ours to repeat, texts are not.
_ERROR_CODE = re.compile(r"[a-z_]{1,40}")
_LONGEST = timedelta(days=3650)


async def ask_for_tokens(
    requests: Requests, issuer: TokenIssuer, form: Mapping[str, str]
) -> Tokens:
    """Ask a token endpoint. Raises `SignedOut` where what was shown to it is good no more."""
    answer = await _post(requests, issuer.token_endpoint, "The token endpoint", issuer, form)
    document = answer.document()
    error = document.get("error") if document else None
    if answer.status == 429 or answer.status >= 500:
        raise ConnectionFailed(
            f"{answer.host} could not give out tokens (status {answer.status}).",
            hint="Try again later.",
            retry_after=answer.retry_after,
        )
    if answer.status != 200 or error:
        code = error if isinstance(error, str) and _ERROR_CODE.fullmatch(error) else ""
        said = code or f"status {answer.status}"
        message = f"{answer.host} refused to give out tokens ({said})."
        if code in SIGNED_OUT_ERRORS:
            raise SignedOut(message)
        raise ConnectionFailed(message, permanent=True)
    return _read_tokens(answer.host, document or {})


def _read_tokens(host: str, document: Mapping[str, Any]) -> Tokens:
    """Read tokens. The last refresh token may be used up, so nothing but tokens has to be valid."""
    access, refresh = document.get("access_token"), document.get("refresh_token")
    kind = document.get("token_type") or BEARER
    is_usable = isinstance(access, str) and isinstance(refresh, str | None)
    if not is_usable or not isinstance(kind, str) or kind.lower() != BEARER:
        raise ConnectionFailed(f"The tokens of {host} are not valid.")
    for token in filter(None, (access, refresh)):
        if len(token) > MAX_TOKEN_CHARS or not _TOKEN.fullmatch(token):
            raise ConnectionFailed(f"The tokens of {host} cannot be sent in a header.")
    if not access:
        raise ConnectionFailed(f"{host} sent an empty token.")
    return Tokens(
        access=access,
        refresh=refresh or "",
        scopes=_to_scopes(document.get("scope")),
        lifetime=_to_lifetime(document.get("expires_in")),
    )


async def revoke(requests: Requests, issuer: TokenIssuer, token: str) -> None:
    form = {"token": token}
    label = "The revocation endpoint"
    answer = await _post(requests, issuer.revocation_endpoint, label, issuer, form)
    if answer.status in (400, 401):
        # Some want the secret among the parameters, whatever they say and even if there is none.
        form["client_secret"] = issuer.client.secret
        answer = await _post(requests, issuer.revocation_endpoint, label, issuer, form)
    if answer.status != 200:
        raise ConnectionFailed(f"{answer.host} did not revoke a token (status {answer.status}).")


async def _post(
    requests: Requests, endpoint: str, label: str, issuer: TokenIssuer, form: Mapping[str, str]
) -> Answer:
    shown, headers = _show_client(issuer.client)
    return await requests.post_form(endpoint, label, {**form, **shown}, headers)


def _show_client(client: OAuthClient) -> tuple[dict[str, str], dict[str, str]]:
    """Return the parameters and headers that show who we are."""
    # With a header too: some servers look the client up by it.
    form = {"client_id": client.client_id}
    if client.method == "client_secret_post":
        return {**form, "client_secret": client.secret}, {}
    if client.method == "client_secret_basic":
        pair = f"{quote(client.client_id, safe='')}:{quote(client.secret, safe='')}"
        return form, {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    return form, {}


def _to_scopes(scope: object) -> tuple[str, ...] | None:
    match scope:
        case str():
            return read_scopes(scope.split())
        case list():
            # Not as the standard wants it.
            return read_scopes([one for one in scope if isinstance(one, str)])
        case _:
            return None


def _to_lifetime(seconds: object) -> timedelta | None:
    if isinstance(seconds, bool) or not isinstance(seconds, str | int | float):
        return None
    try:
        # A text or a fraction is not as the standard wants it either.
        found = float(seconds)
    except (ValueError, OverflowError):
        return None
    if not isfinite(found):
        return None
    return timedelta(seconds=int(min(max(found, 0), _LONGEST.total_seconds())))
