"""Cross-site request checks: does a browser's request come from one of our own pages."""

from urllib.parse import urlsplit

from fastapi import Depends, Request

from backburner.api.http.problems import Problem

#: `Sec-Fetch-Site` of requests from our own pages, and of those that no page made.
OWN_SITES = frozenset({"same-origin", "none"})
#: A page of another site cannot send these without asking us first.
PREFLIGHTED_TYPES = frozenset({"application/json", "application/octet-stream"})


def get_origin(request: Request) -> str:
    """Return the origin under which a browser knows this server: scheme, host and port."""
    public_url: str = request.app.state.public_url
    host = request.headers.get("host", "").lower()
    if public_url and host.partition(":")[0] == urlsplit(public_url).hostname:
        return public_url
    return f"{request.url.scheme}://{host}"


def is_encrypted(request: Request) -> bool:
    return get_origin(request).startswith("https://")


def check_origin(request: Request) -> None:
    """Refuse requests from pages of other origins."""
    origin = request.headers.get("origin")
    if origin is not None and origin.lower() != get_origin(request):
        raise _foreign_page()


def check_page(request: Request) -> None:
    """Refuse requests that a page of another site can make a browser send."""
    check_origin(request)
    if request.headers.get("sec-fetch-site", "none") not in OWN_SITES:
        raise _foreign_page()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in PREFLIGHTED_TYPES:
        raise Problem(
            415,
            "Requests with a cookie must be sent as JSON, or as bytes.",
            "Set Content-Type: application/json, or application/octet-stream for a file.",
        )


def _foreign_page() -> Problem:
    return Problem(403, "The request comes from a page of another site.")


async def require_own_page(request: Request) -> None:
    check_page(request)


#: For endpoints that sign a browser in: another site must not do that with an account of its own.
OwnPageOnly = Depends(require_own_page)
