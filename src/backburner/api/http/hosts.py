"""Which names this server answers to.

A page elsewhere can point a name of its own at this machine and have the browser talk to us as
if we were that page's server. Such requests carry that name, and get no answer.
"""

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send


class KnownHosts:
    """Refuses requests whose Host header is none of ours; the port may differ, as in a tunnel."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or _host(scope) in self._hosts:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self._refusal()(scope, receive, send)

    def _refusal(self) -> JSONResponse:
        names = ", ".join(sorted(self._hosts))
        return JSONResponse(
            {
                "type": "about:blank",
                "title": "Misdirected Request",
                "status": 421,
                "detail": f"This server does not answer to that name; it answers to {names}.",
                "hint": "Whoever runs it can set `public_url` to the address that is used.",
            },
            status_code=421,
            media_type="application/problem+json",
        )


def _host(scope: Scope) -> str:
    """Take the name without its port; `[::1]:8484` keeps its brackets."""
    named = Headers(scope=scope).get("host", "").strip().lower()
    name, colon, port = named.rpartition(":")
    return name if colon and port.isdigit() else named
