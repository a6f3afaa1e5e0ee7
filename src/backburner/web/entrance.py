"""The way in for browsers: pages behind links that sign in, set a password or make an account.

They are served as they are. The secret of a link stands behind its #, so no request of a browser
has it; the script of the page takes it from there and sends it when somebody says so.
"""

from importlib.resources import files
from mimetypes import guess_type

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

PAGES = {
    "/": "sign-in.html",
    "/sign-in": "sign-in.html",
    "/reset": "reset.html",
    "/invitation": "invitation.html",
}
PARTS = ("look.css", "entrance.js", "mark.svg")
#: Nothing of others, nothing in the page itself, and no text that becomes code.
POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none';"
    " object-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


def build_pages() -> list[Route]:
    parts = {f"/parts/{name}": name for name in PARTS}
    return [_serve(path, name) for path, name in {**PAGES, **parts}.items()]


def _serve(path: str, name: str) -> Route:
    content = files(__package__).joinpath("files", name).read_bytes()
    kind = guess_type(name)[0]

    async def serve(_: Request) -> Response:
        return Response(content, media_type=kind, headers=HEADERS)

    return Route(path, serve, methods=["GET"], name=name)
