"""A good MCP server, made with the `mcp` package, over HTTP in either era."""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.types import ASGIApp, Receive, Scope, Send

from backburner.app.http_server import HttpServer, listen, server_config
from support.mcp_peers.scripted import Era

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SOUND = b"RIFF\x24\x00\x00\x00WAVEfmt "
FORM = {
    "type": "object",
    "properties": {
        "color": {"type": "string", "title": "Color", "enum": ["red", "blue"]},
        "count": {"type": "integer", "description": "How many", "default": 2},
        "gift": {"type": "boolean"},
    },
    "required": ["color"],
}
PASSWORD_FORM = {"type": "object", "properties": {"password": {"type": "string"}}}
STATE = "state-of-the-server"
Context = ServerRequestContext[Any]
Answer = types.CallToolResult | types.InputRequiredResult


def _text(text: str, **more: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], **more)


async def _echo(_: Context, params: types.CallToolRequestParams) -> Answer:
    return _text(str((params.arguments or {}).get("text")))


async def _media(_: Context, __: types.CallToolRequestParams) -> Answer:
    document = types.TextResourceContents(uri="file:///notes.txt", text="a note")
    blob = types.BlobResourceContents(
        uri="file:///data.bin", blob=base64.b64encode(b"\0\1").decode(), mime_type="a/b"
    )
    return types.CallToolResult(
        content=[
            types.TextContent(text="some media"),
            types.ImageContent(data=base64.b64encode(PIXEL).decode(), mime_type="image/png"),
            types.AudioContent(data=base64.b64encode(SOUND).decode(), mime_type="audio/wav"),
            types.EmbeddedResource(resource=document),
            types.EmbeddedResource(resource=blob),
            types.ResourceLink(uri="https://files.example/1", name="one", description="The first"),
        ],
        structured_content={"files": 2},
    )


async def _ask(context: Context, params: types.CallToolRequestParams) -> Answer:
    return await _elicit(context, params, "Which one?", FORM)


async def _ask_password(context: Context, params: types.CallToolRequestParams) -> Answer:
    return await _elicit(context, params, "Sign in, please.", PASSWORD_FORM)


async def _elicit(
    context: Context, params: types.CallToolRequestParams, message: str, form: dict[str, Any]
) -> Answer:
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        answer = await context.session.elicit_form(message, form, context.request_id)
        return _text(f"{answer.action} {answer.content}")
    answers = params.input_responses or {}
    if isinstance(given := answers.get("one"), types.ElicitResult):
        return _text(f"{given.action} {given.content} {params.request_state}")
    asked = types.ElicitRequestFormParams(message=message, requested_schema=form)
    return types.InputRequiredResult(
        input_requests={"one": types.ElicitRequest(params=asked)}, request_state=STATE
    )


async def _visit(context: Context, params: types.CallToolRequestParams) -> Answer:
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        raise UrlElicitationRequiredError(
            [
                types.ElicitRequestURLParams(
                    message="Pay first.", url="https://pay.example/7", elicitation_id="7"
                )
            ]
        )
    if params.input_responses:
        return _text("paid")
    asked = types.ElicitRequestURLParams(message="Pay first.", url="https://pay.example/7")
    return types.InputRequiredResult(input_requests={"one": types.ElicitRequest(params=asked)})


async def _sample(context: Context, _: types.CallToolRequestParams) -> Answer:
    message = types.SamplingMessage(role="user", content=types.TextContent(text="Think!"))
    asked = types.CreateMessageRequestParams(messages=[message], max_tokens=10)
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        request = types.CreateMessageRequest(params=asked)
        return types.InputRequiredResult(input_requests={"one": request})
    request = types.CreateMessageRequest(params=asked)
    # In the answer to this call: the stream for other messages may not be open yet.
    here = ServerMessageMetadata(related_request_id=context.request_id)
    try:
        await context.session.send_request(request, types.CreateMessageResult, metadata=here)
    except Exception as error:  # noqa: BLE001 (whatever the client says)
        return _text(f"refused: {error}")
    return _text("sampled")


async def _wait(context: Context, _: types.CallToolRequestParams) -> Answer:
    """Report progress and log lines meanwhile."""
    token = (context.meta or {}).get("progress_token", "none")
    for number in range(3):
        await context.session.send_progress_notification(token, number)
        await asyncio.sleep(0)
    return _text("waited")


async def _again(_: Context, params: types.CallToolRequestParams) -> Answer:
    """Want to be asked again twice, with the state of the last time."""
    turn = int(params.request_state or 0)
    if turn < 2:
        return types.InputRequiredResult(request_state=str(turn + 1))
    return _text(f"after {turn}")


async def _change(context: Context, _: types.CallToolRequestParams) -> Answer:
    await context.session.send_tool_list_changed()
    return _text("changed")


TOOLS: dict[str, Callable[[Context, types.CallToolRequestParams], Awaitable[Answer]]] = {
    "echo": _echo,
    "media": _media,
    "ask": _ask,
    "ask_password": _ask_password,
    "visit": _visit,
    "sample": _sample,
    "wait": _wait,
    "again": _again,
    "change": _change,
}


def good_server() -> Server[Any]:
    async def list_tools(_: Context, __: Any) -> types.ListToolsResult:
        schema = {"type": "object"}
        tools = [types.Tool(name=name, input_schema=schema) for name in TOOLS]
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> Answer:
        return await TOOLS[params.name](context, params)

    return Server("good", on_list_tools=list_tools, on_call_tool=call_tool)


@asynccontextmanager
async def serving(era: Era) -> AsyncIterator[str]:
    """Serve it in one era; yield its URL."""
    app = good_server().streamable_http_app()
    listener = listen("127.0.0.1", 0)
    served = _OlderServer(app) if era == "legacy" else app
    server = HttpServer(server_config(served))  # type: ignore[arg-type]
    async with app.router.lifespan_context(app):
        task = asyncio.create_task(server.serve([listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            await task


class _OlderServer:
    """Does not know the newest revision."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (b"mcp-method", b"server/discover") not in scope.get("headers", ()):
            await self._app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 400, "headers": []})
        await send({"type": "http.response.body", "body": b""})
