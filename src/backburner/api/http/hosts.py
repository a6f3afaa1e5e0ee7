"""The Host check, against DNS rebinding.

A page elsewhere can point its own domain at this machine and make the browser talk to this server
as if it were the page's own. Such requests carry that domain in Host, and are refused.

Starlette's `TrustedHostMiddleware` does the same check but answers 400 in plain text. This one
answers 421 with problem details that name the accepted hosts and the setting to change.
"""

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from backburner.api.http import problems


class HostCheckMiddleware:
    """Refuses requests for other hosts. Any port is accepted, because tunnels change it."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or _host(scope) in self._hosts:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            hosts = ", ".join(sorted(self._hosts))
            refusal = problems.respond(
                421,
                f"This server does not serve that host; it serves {hosts}.",
                "The operator can set `public_url` to the address that you use.",
            )
            await refusal(scope, receive, send)


def _host(scope: Scope) -> str:
    """Return the host without its port; `[::1]:8484` keeps its brackets."""
    host = Headers(scope=scope).get("host", "").strip().lower()
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host
