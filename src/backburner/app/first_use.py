"""Parts that are loaded at their first use: their libraries are slow to import, and large."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

from backburner.actions.deps import Deps
from backburner.core.connections.connection import CALL_TIMEOUT
from backburner.core.connections.inputs.input_request import InputAnswers, InputNeeded
from backburner.core.connections.oauth_client import ConfiguredClient, OAuthClient
from backburner.core.errors import ConnectionFailed
from backburner.gateway.addresses import IpNetwork
from backburner.ports import (
    Authorization,
    Network,
    OAuth,
    PendingSignIn,
    PushAnswer,
    PushCrypto,
    PushService,
    SignInRequest,
    StartProgram,
    TokenIssuer,
    Tokens,
    ToolList,
    ToolResult,
    ToolServer,
    ToolServers,
    ToolSession,
    WebPage,
)

T = TypeVar("T")


def load_once(load: Callable[[], T]) -> Callable[[], Awaitable[T]]:
    """Return a function that loads something when it is first awaited, and again if that failed."""
    loading: asyncio.Task[T] | None = None

    async def loaded() -> T:
        nonlocal loading
        if loading is None or (loading.done() and loading.exception() is not None):
            # In a thread, so that everything else continues meanwhile.
            loading = asyncio.create_task(asyncio.to_thread(load))
        return await asyncio.shield(loading)

    return loaded


class LateNetwork:
    """The network of agents; `allow` are networks besides public addresses."""

    def __init__(self, *, allow: Iterable[IpNetwork] = ()) -> None:
        def load() -> Network:
            from backburner.gateway.network import CheckedNetwork  # noqa: PLC0415

            return CheckedNetwork(allow=allow)

        self._loaded = load_once(load)

    async def fetch(self, url: str, *, other_hosts: bool = False) -> WebPage:
        network = await self._loaded()
        return await network.fetch(url, other_hosts=other_hosts)


class LateToolServers:
    """Sessions with MCP servers; `allow` are networks besides public addresses."""

    def __init__(self, *, allow: Iterable[IpNetwork] = (), start: StartProgram) -> None:
        def load() -> ToolServers:
            from backburner.gateway.upstream.servers import UpstreamServers  # noqa: PLC0415

            return UpstreamServers(allow=allow, start=start)

        self._loaded = load_once(load)

    def open(self, server: ToolServer, authorization: Authorization) -> ToolSession:
        return LateToolSession(self._loaded, server, authorization)


class LateOAuth:
    """OAuth with the servers of connections; see `CheckedOAuth`."""

    def __init__(
        self,
        *,
        allow: Iterable[IpNetwork] = (),
        public_url: str = "",
        clients: Mapping[str, ConfiguredClient] | None = None,
    ) -> None:
        def load() -> OAuth:
            from backburner.gateway.oauth.flow import CheckedOAuth  # noqa: PLC0415

            return CheckedOAuth(allow=allow, public_url=public_url, clients=clients)

        self._loaded = load_once(load)

    async def begin(
        self,
        server_url: str,
        *,
        origin: str,
        client: OAuthClient | None = None,
        issuer: str = "",
        earlier: TokenIssuer | None = None,
        scopes: Iterable[str] = (),
    ) -> SignInRequest:
        oauth = await self._loaded()
        return await oauth.begin(
            server_url,
            origin=origin,
            client=client,
            issuer=issuer,
            earlier=earlier,
            scopes=scopes,
        )

    async def exchange(self, pending: PendingSignIn, code: str) -> Tokens:
        return await (await self._loaded()).exchange(pending, code)

    async def refresh(self, issuer: TokenIssuer, refresh_token: str) -> Tokens:
        return await (await self._loaded()).refresh(issuer, refresh_token)

    async def revoke(self, issuer: TokenIssuer, token: str) -> None:
        await (await self._loaded()).revoke(issuer, token)


class LatePushService:
    """Requests to push services; `allow` are networks besides public addresses."""

    def __init__(self, *, allow: Iterable[IpNetwork] = ()) -> None:
        def load() -> PushService:
            from backburner.gateway.push_service import CheckedPushService  # noqa: PLC0415

            return CheckedPushService(allow=allow)

        self._loaded = load_once(load)

    async def check(self, endpoint: str) -> None:
        await (await self._loaded()).check(endpoint)

    async def post(self, endpoint: str, body: bytes, headers: Mapping[str, str]) -> PushAnswer:
        return await (await self._loaded()).post(endpoint, body, headers)


class LatePushCrypto:
    def make_key(self) -> bytes:
        return _web_push().make_key()

    def public_key(self, key: bytes) -> bytes:
        return _web_push().public_key(key)

    def check_receiver(self, receiver_key: bytes, auth: bytes) -> None:
        _web_push().check_receiver(receiver_key, auth)

    def encrypt(self, payload: bytes, *, receiver_key: bytes, auth: bytes) -> bytes:
        return _web_push().encrypt(payload, receiver_key=receiver_key, auth=auth)

    def sign(self, key: bytes, claims: Mapping[str, object]) -> str:
        return _web_push().sign(key, claims)


def _web_push() -> PushCrypto:
    from backburner.vault import web_push  # noqa: PLC0415

    return web_push


class LateToolSession:
    def __init__(
        self,
        servers: Callable[[], Awaitable[ToolServers]],
        server: ToolServer,
        authorization: Authorization,
    ) -> None:
        self._servers = servers
        self._server = server
        self._authorization = authorization
        self._session: ToolSession | None = None
        self._closed = False

    @property
    def tools_changed(self) -> bool:
        return self._session is not None and self._session.tools_changed

    async def list_tools(self) -> ToolList:
        return await (await self._open()).list_tools()

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        repeatable: bool = False,
        within: timedelta = CALL_TIMEOUT,
        answers: InputAnswers | None = None,
    ) -> ToolResult | InputNeeded:
        session = await self._open()
        return await session.call(
            name, arguments, repeatable=repeatable, within=within, answers=answers
        )

    async def close(self) -> None:
        self._closed = True
        if self._session is not None:
            await self._session.close()

    async def _open(self) -> ToolSession:
        servers = await self._servers()
        if self._session is None and self._closed:
            raise ConnectionFailed(f"The session with {self._server.title} is closed.")
        if self._session is None:
            self._session = servers.open(self._server, self._authorization)
        return self._session


def serve_tools(deps: Deps) -> Callable[..., Awaitable[None]]:
    """Serve our tools to MCP clients."""

    def load() -> Callable[..., Awaitable[None]]:
        from backburner.tools.mcp_server import McpServer  # noqa: PLC0415

        return McpServer(deps)

    loaded = load_once(load)

    async def serve(*call: Any) -> None:
        await (await loaded())(*call)

    return serve
