"""Who gets the code, the tokens and the secret of a client: nobody but whom its user is shown."""

import re

import httpx2

from backburner.core.errors import ConnectionFailed
from backburner.gateway.oauth.discovery import SignInTerms, is_same_issuer

#: Paths that lead nowhere else, however a server reads them: no `..`, and nothing encoded.
_WELL_KNOWN = re.compile(rb"/\.well-known/(?!.*\.\.)[\w./~-]+")


def check_named(found: SignInTerms, named: str) -> None:
    """Refuse another issuer than its user has named."""
    if named and not is_same_issuer(named, found.issuer):
        raise ConnectionFailed(
            f"The server names another authorization server than you: {found.issuer}.",
            hint="Nothing was sent to it. If it is the right one, name it.",
            permanent=True,
        )


def check_parties(found: SignInTerms, *, client_is_given: bool) -> None:
    """Refuse what a server could only get from a user who knows the authorization server."""
    allow = f"--issuer {found.issuer}"
    stray = None if found.metadata.authorization_response_iss_parameter_supported else _stray(found)
    if stray is not None:
        page = _url(found.metadata.authorization_endpoint).netloc.decode()
        raise ConnectionFailed(
            f"You would sign in at {page}, and {stray.netloc.decode()} would take part in it, but"
            " nothing shows that they belong together.",
            hint=f"If you know that they do, name their authorization server: {allow}",
            permanent=True,
        )
    if client_is_given:
        host = httpx2.URL(found.issuer).netloc.decode()
        raise ConnectionFailed(
            f"The authorization server at {host} would get your client.",
            hint=f"If your client is registered there, name it: {allow}",
            permanent=True,
        )


def _stray(found: SignInTerms) -> httpx2.URL | None:
    """Return an endpoint that the host of the sign-in page, which users see, does not vouch for.

    It does for its own, and for all in metadata of its own. A document in a path may be that of
    anybody who has pages on the host.
    """
    metadata, source = found.metadata, httpx2.URL(found.found_at)
    page = _url(metadata.authorization_endpoint)
    if _origin(source) == _origin(page) and _WELL_KNOWN.fullmatch(source.raw_path):
        return None
    # The last one says who we are: a foreign one could choose a client that is trusted already.
    others = (metadata.token_endpoint, metadata.revocation_endpoint, metadata.registration_endpoint)
    urls = [_url(other) for other in others if other is not None]
    return next((url for url in urls if _origin(url) != _origin(page)), None)


def _url(address: object) -> httpx2.URL:
    return httpx2.URL(str(address))


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
