"""Whether a request comes from a page of ours, as far as a browser tells."""

from urllib.parse import urlsplit

from fastapi import Request

from backburner.api.http.problems import Problem

#: What a browser says of requests from our own pages, and of those no page made.
OURS = frozenset({"same-origin", "none"})


def origin_of(request: Request) -> str:
    """Give the address under which a browser knows us: scheme, name and port."""
    public: str = request.app.state.public_url
    host = request.headers.get("host", "").lower()
    if public and host.partition(":")[0] == urlsplit(public).hostname:
        return public
    return f"{request.url.scheme}://{host}"


def is_encrypted(request: Request) -> bool:
    return origin_of(request).startswith("https://")


def check_origin(request: Request) -> None:
    """Refuse what a page of somebody else sends."""
    origin = request.headers.get("origin")
    if origin is not None and origin.lower() != origin_of(request):
        raise Problem(403, "This comes from a page of somebody else.")


def check_page(request: Request) -> None:
    """Refuse what such a page could have made a browser send, unasked, to change something."""
    check_origin(request)
    if request.headers.get("sec-fetch-site", "none") not in OURS:
        raise Problem(403, "This comes from a page of somebody else.")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem(
            415, "What changes something is sent as JSON.", "Set Content-Type: application/json."
        )
