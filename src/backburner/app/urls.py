"""Addresses in URLs, and the URL of the server."""

from backburner.settings import Settings


def host_in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def server_url(settings: Settings) -> str:
    """Return the URL of a server with these settings."""
    scheme = "https" if settings.tls_certificate else "http"
    host = "localhost" if _listens_everywhere(settings) else host_in_url(settings.host)
    return settings.public_url or f"{scheme}://{host}:{settings.port}"


def link_url(settings: Settings, address: str) -> str:
    """Return the URL for links to a server that listens on an address; empty: it is not known.

    A server that listens on all addresses does not know by which of them others reach it.
    """
    return settings.public_url or ("" if _listens_everywhere(settings) else address)


def _listens_everywhere(settings: Settings) -> bool:
    return settings.host in ("0.0.0.0", "::")  # noqa: S104
