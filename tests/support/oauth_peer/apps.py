"""The two servers: `mcp`'s own routes, with a layer around them that misbehaves when told to."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from html import escape
from typing import Any
from urllib.parse import parse_qsl

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from support.oauth_peer.provider import SCOPES, Provider
from support.oauth_peer.switches import Record, Switches

PAGE = """<!doctype html><title>Mail</title><form method="post" action="/consent">
<h1>Let Backburner use your mail?</h1><input type="hidden" name="ticket" value="{ticket}">
<input name="who" value="ann"><button name="allowed" value="yes">Allow</button>
<button name="allowed" value="">Deny</button></form>"""


class Peer:
    def __init__(self, issuer: str, server: str) -> None:
        self.switches = Switches()
        self.record = Record()
        self.issuer, self.server = issuer, server
        self.provider = Provider(issuer, self.switches, self.record)
        self._settings = AuthSettings.model_validate(
            {
                "issuer_url": issuer,
                "resource_server_url": server,
                "required_scopes": [SCOPES[0]],
                "validate_token_resource": True,
            }
        )

    def authorization_server(self) -> ASGIApp:
        routes = create_auth_routes(
            self.provider,
            self._settings.issuer_url,
            client_registration_options=ClientRegistrationOptions(
                enabled=True, valid_scopes=list(SCOPES), default_scopes=list(SCOPES)
            ),
            revocation_options=RevocationOptions(enabled=True),
        )
        own = [
            Route("/consent", self._ask, methods=["GET"]),
            Route("/consent", self._decide, methods=["POST"]),
            Route("/control", self._control, methods=["GET", "POST"]),
        ]
        return Misbehaving(Starlette(routes=[*routes, *own]), self)

    def mcp_server(self) -> ASGIApp:
        server = MCPServer(
            "mail", auth=self._settings, token_verifier=self.provider, log_level="ERROR"
        )
        add_tools(server, self.record)
        return Misbehaving(server.streamable_http_app(), self)

    async def _ask(self, request: Request) -> Response:
        return HTMLResponse(PAGE.format(ticket=escape(request.query_params["ticket"])))

    async def _decide(self, request: Request) -> Response:
        form = await request.form()
        to = self.provider.decide(
            str(form["ticket"]), str(form.get("who", "")), allowed=bool(form.get("allowed"))
        )
        return RedirectResponse(to, status_code=302)

    async def _control(self, request: Request) -> Response:
        """Change switches, end tokens, and return what was counted."""
        if request.method == "POST":
            wanted = await request.json()
            for name, value in wanted.get("switches", {}).items():
                replace(self.switches, **{name: value})
                setattr(self.switches, name, value)
            for who in wanted.get("revoke", []):
                self.provider.revoke(who)
            for who in wanted.get("expire", []):
                self.provider.revoke(who, only_access=True)
            if wanted.get("forget_clients"):
                self.provider.clients.clear()
        return JSONResponse(self.record.dump())


def add_tools(server: MCPServer[Any], record: Record) -> None:
    def who(tool: str) -> str:
        token = get_access_token()
        name = (token.subject if token else None) or ""
        record.calls.append((name, tool))
        return name

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def whoami() -> str:
        """Return whose mail this is."""
        return who("whoami")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def list_mails() -> list[str]:
        """List the subjects of the mails in the inbox."""
        return [f"Lunch with {who('list_mails')}"]

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def read_mail(subject: str) -> str:
        """Read a mail."""
        return f"{subject}: dear {who('read_mail')}, is twelve fine?"

    @server.tool()
    def send(to: str, text: str) -> str:
        """Send a mail."""
        record.sent.append((who("send"), to, text))
        return f"Sent to {to}."


class Misbehaving:
    """Around one of the servers: faults before it and after it."""

    def __init__(self, app: ASGIApp, peer: Peer) -> None:
        self._app = app
        self._peer = peer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        path: str = scope["path"]
        if path != "/control":
            self._peer.record.paths.append(path)
        if "/.well-known/" in path:
            return await self._serve_metadata(scope, receive, send)
        if path == "/token":
            return await self._serve_token(scope, receive, send)
        if path == "/register" and not self._peer.switches.registration:
            return await Response(status_code=404)(scope, receive, send)
        if path == "/mcp":
            return await self._serve_mcp(scope, receive, send)
        return await self._app(scope, receive, send)

    async def _serve_metadata(self, scope: Scope, receive: Receive, send: Send) -> None:
        switches = self._peer.switches
        await asyncio.sleep(switches.metadata_seconds)
        if switches.metadata_location:
            moved = RedirectResponse(switches.metadata_location, status_code=302)
            return await moved(scope, receive, send)
        path = switches.copies.get(scope["path"], scope["path"])
        status, body = await _collect(self._app, {**scope, "path": path}, receive)
        if status != 200:
            return await Response(status_code=status)(scope, receive, send)
        document = json.loads(body)
        if "issuer" in document:
            document |= {"authorization_response_iss_parameter_supported": switches.iss != "none"}
            document |= {"client_id_metadata_document_supported": switches.documents}
            if not switches.registration:
                del document["registration_endpoint"]
            document |= switches.metadata
        else:
            document |= {"scopes_supported": list(SCOPES)} | switches.resource_metadata
        document = {name: value for name, value in document.items() if value is not None}
        if switches.extra_bytes:
            document["service_documentation"] = f"https://{'x' * switches.extra_bytes}.example"
        return await JSONResponse(document)(scope, receive, send)

    async def _serve_token(self, scope: Scope, receive: Receive, send: Send) -> None:
        switches = self._peer.switches
        body = await Request(scope, receive).body()
        form = dict(parse_qsl(body.decode()))
        self._peer.record.token_requests.append(form)
        await asyncio.sleep(switches.token_seconds)
        if switches.token_statuses:
            status = switches.token_statuses.pop(0)
            failed = JSONResponse({"error": "temporarily_unavailable"}, status_code=status)
            return await failed(scope, receive, send)
        again = _once(body)
        if switches.lost_tokens:
            switches.lost_tokens -= 1
            await _collect(self._app, scope, again)
            return await Response(status_code=502)(scope, receive, send)
        return await self._app(scope, again, send)

    async def _serve_mcp(self, scope: Scope, receive: Receive, send: Send) -> None:
        switches = self._peer.switches
        body = await Request(scope, receive).body()
        is_call = b'"tools/call"' in body
        wanted, token = switches.wanted_scope, Headers(scope=scope).get("authorization", "")
        if is_call and wanted and not await self._peer.provider.may(token, wanted):
            said = f'Bearer error="insufficient_scope", scope="{wanted}"'
            refused = Response(status_code=403, headers={"www-authenticate": said})
            return await refused(scope, receive, send)
        again = _once(body, then=receive)
        if is_call and switches.lost_calls:
            switches.lost_calls -= 1
            await _collect(self._app, scope, again)
            return await Response(status_code=502)(scope, receive, send)
        if is_call and switches.held_calls:
            switches.held_calls -= 1
            await _collect(self._app, scope, again)
            while (await receive())["type"] != "http.disconnect":
                pass
            return None
        return await self._app(scope, again, self._with_challenge(send))

    def _with_challenge(self, send: Send) -> Send:
        async def send_message(message: Message) -> None:
            challenge = self._peer.switches.challenge
            if challenge is not None and message.get("status") == 401:
                kept = [pair for pair in message["headers"] if pair[0] != b"www-authenticate"]
                said = [(b"www-authenticate", challenge.encode())] if challenge else []
                message["headers"] = [*kept, *said]
            await send(message)

        return send_message


def _once(body: bytes, then: Receive | None = None) -> Receive:
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if messages:
            return messages.pop()
        if then is not None:
            return await then()
        await asyncio.Event().wait()
        raise AssertionError

    return receive


async def _collect(
    app: Callable[[Scope, Receive, Send], Awaitable[None]], scope: Scope, receive: Receive
) -> tuple[int, bytes]:
    status, parts = 500, list[bytes]()

    async def send(message: Message) -> None:
        nonlocal status
        status = message.get("status", status)
        parts.append(message.get("body", b""))

    await app(scope, receive, send)
    return status, b"".join(parts)
