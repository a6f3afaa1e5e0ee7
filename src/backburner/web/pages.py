"""Pages for who is not signed in: sign in, set a password, accept an invitation.

The secret of a link follows its #, so browsers do not send it to the server. The script of the page
reads it there, and sends it when the user submits the form.
"""

from html import escape
from importlib.resources import files
from string import Template

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from backburner.web import assets
from backburner.web.rendering import load_words, render_static
from backburner.web.routes import shell

#: By path: the title of the page, and the file with its forms.
PAGES = {
    "/sign-in": ("Sign in to Backburner", "sign-in.html"),
    "/reset": ("Set your password for Backburner", "reset.html"),
    "/invitation": ("You are invited to Backburner", "invitation.html"),
}
#: Where authorization servers send browsers back to: those that know us by hand, and the others.
CALLBACKS = ("/oauth/callback", "/oauth/from/{issuer_key}")
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


def build_routes(command: str = "backburner") -> list[Route]:
    """Make the routes; `command` is how this program is called."""
    pages = [_make_route(path, render_page(path, command), "text/html") for path in PAGES]
    callbacks = [_make_route(path, render_callback(), "text/html") for path in CALLBACKS]
    return [*pages, *callbacks, *assets.build_routes(), *shell.build_routes()]


def render_page(path: str, command: str = "backburner") -> str:
    title, name = PAGES[path]
    return _fill_layout(title, name, command, script="pages.js")


def render_callback() -> str:
    texts = load_words().connections.callback
    script_words = {name: texts[name] for name in texts}
    return render_static("callback.html", assets=assets.AssetAddresses(), script_words=script_words)


def read_file(name: str) -> str:
    return files(__package__).joinpath("files", name).read_text(encoding="utf-8")


def _fill_layout(title: str, name: str, command: str, *, script: str) -> str:
    values = {"title": title, "script": script, "command": escape(command)}
    forms = Template(read_file(name).rstrip()).substitute(values)
    return Template(read_file("layout.html")).substitute(values, forms=forms)


def _make_route(path: str, content: str, media_type: str | None) -> Route:
    async def serve(_: Request) -> Response:
        return Response(content, media_type=media_type, headers=HEADERS)

    return Route(path, serve, methods=["GET"])
