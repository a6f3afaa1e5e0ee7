"""The page's frame. It is the same for everybody and shows nothing of any user: what belongs to
one is fetched by the script, with both halves of the session.
"""

import json
from functools import cache
from hashlib import sha256

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from backburner.web.assets import PAGE_CSS, AssetAddresses, find_type, load_assets
from backburner.web.rendering import LANGUAGE, Fragment, load_words, render_static

#: Addresses that open the page; `/page` and the same path is the fragment of each.
PATHS = (
    *(
        "/",
        "/new",
        "/more",
        "/needs-you",
        "/away",
        "/tasks",
        "/calendar",
        "/running",
        "/spending",
        "/notices",
    ),
    *("/c/{id}", "/t/{id}", "/tasks/new", "/r/{id}", "/q/{id}", "/jobs", "/jobs/{id}"),
    *("/connections", "/connections/{id}", "/folders"),
    *("/settings", "/settings/{section}", "/operate", "/operate/{section}"),
)
#: Everything comes from our own server. Previews of the user's own files are blobs.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src 'self' blob:; manifest-src 'self'; worker-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script';"
    " trusted-types backburner"
)
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "x-robots-tag": "noindex",
}
#: What the service worker loads comes from our own server too.
SERVICE_WORKER_POLICY = "default-src 'none'; connect-src 'self'; img-src 'self'"
#: Of the mark: its tile, which every icon shows.
_TILE = "#1d211e"
_ICONS = (
    ("icon-192.png", "192x192", "any"),
    ("icon-512.png", "512x512", "any"),
    ("icon-maskable.png", "512x512", "maskable"),
    ("logo.svg", "any", "any"),
)
#: By the name of their words: what a long press on the installed page offers.
_SHORTCUTS = {"new": "/new", "needs_you": "/needs-you"}
#: How the mark ends in the icon of a tab while something needs the user.
_COUNT = (
    '<circle cx="14.8" cy="14.8" r="7.2" fill="#b5390a"/>'
    '<text x="14.8" y="18.5" font-family="sans-serif" font-size="10.5" font-weight="700"'
    ' text-anchor="middle" fill="#fff">{number}</text></svg>'
)
#: Scripts of pages before the sign-in, and of the service worker itself.
_NOT_OF_FRAME = frozenset({"pages.js", "callback.js", "sw.js"})


def build_routes() -> list[Route]:
    routes = [Route(path, show_shell, methods=["GET"]) for path in PATHS]
    return [
        *routes,
        Route("/manifest.webmanifest", show_manifest, methods=["GET"]),
        Route("/sw.js", show_service_worker, methods=["GET"]),
    ]


async def show_shell(_: Request) -> Response:
    return Fragment(render_shell(), headers=HEADERS)


@cache
def render_shell() -> str:
    words = load_words()
    script_words = {name: words.script[name] for name in words.script}
    script_words["name"] = words.common.name
    return render_static(
        "shell.html",
        assets=AssetAddresses(),
        script_words=script_words,
        counting_icon=load_assets()["logo.svg"].content.decode().replace("</svg>", _COUNT),
    )


async def show_manifest(_: Request) -> Response:
    words, assets = load_words().common, AssetAddresses()
    small = {"src": assets["icon-192.png"], "sizes": "192x192", "type": "image/png"}
    manifest = {
        "id": "/",
        "name": words.name,
        "short_name": words.name,
        "description": words.description,
        "lang": LANGUAGE,
        "start_url": "/",
        "scope": "/",
        "display": "standalone",
        "background_color": _TILE,
        "theme_color": _TILE,
        "icons": [
            {"src": assets[name], "sizes": sizes, "type": find_type(name), "purpose": purpose}
            for name, sizes, purpose in _ICONS
        ],
        "shortcuts": [
            {"name": words.nav[name], "url": url, "icons": [small]}
            for name, url in _SHORTCUTS.items()
        ],
    }
    return JSONResponse(
        manifest,
        media_type="application/manifest+json",
        headers={"cache-control": "no-store", "x-content-type-options": "nosniff"},
    )


async def show_service_worker(_: Request) -> Response:
    """Serve the script at the root, where it has all addresses in its scope.

    Browsers ask for it again by themselves. It begins with a digest of the frame, which has the
    version of the assets, so that an update is another script, which loads the frame anew.
    """
    assets = AssetAddresses()
    scripts = [name for name in load_assets() if name.endswith(".js")]
    names = [PAGE_CSS, "logo.svg", *(one for one in scripts if one not in _NOT_OF_FRAME)]
    frame = {
        "version": sha256(render_shell().encode()).hexdigest()[:12],
        "files": [assets[name] for name in names],
        "icon": assets["icon-192.png"],
        "badge": assets["badge.png"],
    }
    script = load_assets()["sw.js"].content.decode()
    return Response(
        f"const FRAME = {json.dumps(frame)};\n{script}",
        media_type="text/javascript",
        headers={
            "cache-control": "no-cache",
            "content-security-policy": SERVICE_WORKER_POLICY,
            "x-content-type-options": "nosniff",
            "x-robots-tag": "noindex",
        },
    )
