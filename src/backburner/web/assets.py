"""Style sheets, scripts and pictures of the page, each compressed once and cached by its version.

Addresses carry a digest of everything, so a browser asks again only after an update.
"""

import gzip
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

MEDIA_TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
#: The style sheet of the page is written in parts, and sent as one. That of the pages for those who
#: are not signed in begins with the same colours and sizes.
PAGE_CSS, PAGES_CSS, TOKENS_CSS = "page.css", "pages.css", "00-tokens.css"
#: Smaller ones are not worth the time.
MIN_COMPRESSED_BYTES = 500


@dataclass(frozen=True, slots=True)
class Asset:
    media_type: str
    content: bytes
    compressed: bytes | None


@cache
def load_assets() -> dict[str, Asset]:
    found = {file.name: file.read_bytes() for place in ("js", "files") for file in _list(place)}
    parts = {file.name: file.read_bytes() for file in _list("css")}
    found[PAGE_CSS] = b"\n".join(parts.values())
    found[PAGES_CSS] = parts[TOKENS_CSS] + b"\n" + found[PAGES_CSS]
    return {
        name: _make_asset(name, _strip_script(content) if _suffix(name) == ".js" else content)
        for name, content in found.items()
        if _suffix(name) in MEDIA_TYPES
    }


@cache
def version() -> str:
    digest = sha256()
    for name, asset in sorted(load_assets().items()):
        digest.update(name.encode() + b"\0" + asset.content)
    return digest.hexdigest()[:12]


class AssetAddresses:
    """Gives templates the address of an asset: `assets['page.css']`."""

    def __getitem__(self, name: str) -> str:
        if name not in load_assets():
            raise KeyError(name)
        return f"/assets/{version()}/{name}"


async def serve_asset(request: Request) -> Response:
    asset = load_assets().get(request.path_params["name"])
    if asset is None:
        return Response("There is no such file.", status_code=404, media_type="text/plain")
    is_current = request.path_params.get("version") == version()
    headers = {
        "cache-control": "public, max-age=31536000, immutable" if is_current else "no-store",
        "vary": "accept-encoding",
    }
    content = asset.content
    if asset.compressed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        content = asset.compressed
        headers["content-encoding"] = "gzip"
    return Response(content, media_type=asset.media_type, headers=headers)


def build_routes() -> list[Route]:
    return [
        Route("/assets/{version}/{name}", serve_asset, methods=["GET"]),
        Route("/assets/{name}", serve_asset, methods=["GET"]),
    ]


def _list(place: str) -> list[Traversable]:
    folder = files(__package__).joinpath(place)
    return sorted((file for file in folder.iterdir() if file.is_file()), key=lambda file: file.name)


def _strip_script(content: bytes) -> bytes:
    """Leave out indentation and comments, which are lines of their own; no text spans lines."""
    lines, is_comment = list[bytes](), False
    for line in map(bytes.strip, content.splitlines()):
        is_comment = is_comment or line.startswith(b"/*")
        if line and not is_comment and not line.startswith(b"//"):
            lines.append(line)
        is_comment = is_comment and not line.endswith(b"*/")
    return b"\n".join(lines)


def find_type(name: str) -> str:
    return MEDIA_TYPES[_suffix(name)]


def _suffix(name: str) -> str:
    return name[name.rfind(".") :]


def _make_asset(name: str, content: bytes) -> Asset:
    compressed = gzip.compress(content, mtime=0) if len(content) > MIN_COMPRESSED_BYTES else None
    return Asset(find_type(name), content, compressed)
