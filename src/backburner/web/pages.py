"""Pages for browsers: sign in, set a password, accept an invitation, look at a conversation.

The secret of a link follows its #, so browsers do not send it to the server. The script of the page
reads it there, and sends it when the user submits the form.
"""

from importlib.resources import files
from mimetypes import guess_type
from string import Template

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

#: By path: the title of the page, and the file with its forms.
PAGES = {
    "/": ("Sign in to Backburner", "sign-in.html"),
    "/sign-in": ("Sign in to Backburner", "sign-in.html"),
    "/reset": ("Set your password for Backburner", "reset.html"),
    "/invitation": ("You are invited to Backburner", "invitation.html"),
}
#: The addresses that notices have. The page is the same for every id, and reveals nothing: its
#: script asks the API, with the session of the browser.
VIEWS = ("/c/{conversation_id}", "/q/{question_id}")
#: Where authorization servers send browsers back to.
CALLBACK = "/oauth/callback"
ASSETS = ("pages.css", "pages.js", "session.js", "view.js", "callback.js", "logo.svg")
#: Allows no third-party or inline content, and no text that becomes code.
CONTENT_SECURITY_POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none';"
    " object-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


def build_routes() -> list[Route]:
    pages = [_make_route(path, render_page(path), "text/html") for path in PAGES]
    views = [_make_route(path, render_view(), "text/html") for path in VIEWS]
    callback = _make_route(CALLBACK, render_callback(), "text/html")
    assets = [
        _make_route(f"/assets/{name}", read_file(name), guess_type(name)[0]) for name in ASSETS
    ]
    return [*pages, *views, callback, *assets]


def render_page(path: str) -> str:
    title, name = PAGES[path]
    return _fill_layout(title, name, script="pages.js")


def render_view() -> str:
    return _fill_layout("Backburner", "view.html", script="view.js")


def render_callback() -> str:
    return _fill_layout("Backburner", "callback.html", script="callback.js")


def read_file(name: str) -> str:
    return files(__package__).joinpath("files", name).read_text(encoding="utf-8")


def _fill_layout(title: str, name: str, *, script: str) -> str:
    content = read_file(name).rstrip()
    return Template(read_file("layout.html")).substitute(title=title, forms=content, script=script)


def _make_route(path: str, content: str, media_type: str | None) -> Route:
    async def serve(_: Request) -> Response:
        return Response(content, media_type=media_type, headers=HEADERS)

    return Route(path, serve, methods=["GET"])
