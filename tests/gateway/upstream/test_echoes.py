"""Servers that repeat the headers that they were sent: agents never see them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from support.mcp_peers.scripted import (
    ERAS,
    SEND,
    Asked,
    Era,
    Reply,
    error,
    events,
    reply,
    result,
    scripted,
    texts,
)
from support.mcp_peers.sessions import Tokens, session

from backburner.core.connections.inputs.input_request import InputNeeded
from backburner.core.errors import ConnectionFailed
from backburner.ports import ToolResult

TOKEN, KEY = "ann-0123-abcdef", "key of ann 0123"
#: They are no secrets: one by its name, the other by its length.
SPACE, SHORT = "workspace-of-ann", "ann"
CLEAN = f"[hidden] and [hidden] and {SPACE} and {SHORT}"


@dataclass
class Keys(Tokens):
    """A sign-in with several headers."""

    async def headers(self) -> Mapping[str, str]:
        named = {"X-Api-Key": KEY, "X-Workspace": SPACE, "X-Auth-User": SHORT}
        return {"Authorization": f"Bearer {TOKEN}-{self.number}", **named}


def echo(asked: Asked) -> str:
    names = ("authorization", "x-api-key", "x-workspace", "x-auth-user")
    return " and ".join(asked.headers[name] for name in names)


def on_call(answer: Callable[[Asked], Reply]) -> Callable[[Asked], Reply | None]:
    return lambda asked: answer(asked) if asked.method == "tools/call" else None


def everywhere(asked: Asked) -> Reply:
    said = echo(asked)
    parts = [
        {"type": "text", "text": said},
        {"type": "resource", "resource": {"uri": "file:///a", "text": said}},
        {"type": "resource_link", "uri": f"https://a.example/{TOKEN}-1", "name": said},
    ]
    more = {"structuredContent": {said: [said]}, "resultType": "complete"}
    return result(asked, {"content": parts, **more})


@pytest.mark.parametrize("era", ERAS)
async def test_no_part_of_a_result_has_a_header_in_it(era: Era) -> None:
    async with scripted(era, on_call(everywhere)) as peer:
        async with session(peer.url, sign_in=Keys()) as opened:
            called = await opened.call("send", {})

        sent = [each.headers["authorization"] for each in peer.calls()]

    assert sent == [f"Bearer {TOKEN}-1"]
    assert isinstance(called, ToolResult)
    assert called.text == f"{CLEAN}\nfile:///a\n{CLEAN}"
    assert called.structured == {CLEAN: [CLEAN]}
    assert [(link.url, link.name) for link in called.links] == [
        ("https://a.example/[hidden]", CLEAN)
    ]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "answer",
    [
        lambda asked: texts(asked, echo(asked), is_error=True),
        lambda asked: error(asked, -32000, echo(asked), {"echo": echo(asked)}),
        lambda asked: error(asked, -32000, echo(asked), status=400),
    ],
    ids=["an error of the tool", "an error of the protocol", "an error with a status"],
)
async def test_no_error_has_a_header_in_it(era: Era, answer: Callable[[Asked], Reply]) -> None:
    async with (
        scripted(era, on_call(answer)) as peer,
        session(peer.url, sign_in=Keys()) as opened,
    ):
        called = await opened.call("send", {})

    assert isinstance(called, ToolResult)
    assert called.text == CLEAN


async def test_no_error_of_a_list_and_no_definition_has_a_header_in_it() -> None:
    def script(asked: Asked) -> Reply | None:
        if asked.method != "tools/list":
            return None
        return error(asked, -32000, echo(asked)) if asked.count > 1 else listed(asked)

    def listed(asked: Asked) -> Reply:
        tool = {**SEND, "description": echo(asked)}
        hints = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        return result(asked, {"tools": [tool], **hints})

    async with (
        scripted("modern", script) as peer,
        session(peer.url, sign_in=Keys()) as opened,
    ):
        found = await opened.list_tools()
        with pytest.raises(ConnectionFailed) as caught:
            await opened.list_tools()

    assert TOKEN not in repr(found)
    assert CLEAN in caught.value.hint


async def test_no_question_of_a_server_has_a_header_in_it() -> None:
    def asks(asked: Asked, request_id: str = "") -> dict[str, Any]:
        form = {"type": "object", "properties": {"a": {"type": "string", "title": echo(asked)}}}
        params = {"mode": "form", "message": echo(asked), "requestedSchema": form}
        return {"method": "elicitation/create", "params": params} | (
            {"jsonrpc": "2.0", "id": request_id} if request_id else {}
        )

    def modern(asked: Asked) -> Reply:
        needed = {"inputRequests": {"k": asks(asked)}, "requestState": echo(asked)}
        return result(asked, {"resultType": "input_required", **needed})

    def legacy(asked: Asked) -> Reply:
        content = {"content": [{"type": "text", "text": "done"}]}
        done = {"jsonrpc": "2.0", "id": asked.id, "result": content}
        return events(asks(asked, "ask"), done)

    async with (
        scripted("modern", on_call(modern)) as peer,
        session(peer.url, sign_in=Keys()) as opened,
    ):
        needed = await opened.call("send", {})
    async with (
        scripted("legacy", on_call(legacy)) as peer,
        session(peer.url, sign_in=Keys()) as opened,
    ):
        told = await opened.call("send", {})

    assert isinstance(needed, InputNeeded)
    assert isinstance(told, ToolResult)
    assert CLEAN in needed.requests[0].message
    assert CLEAN in told.text
    for secret in (TOKEN, KEY):
        assert secret not in repr((needed, told))


async def test_a_token_that_was_renewed_meanwhile_is_not_shown_either() -> None:
    def script(asked: Asked) -> Reply | None:
        if asked.method != "tools/call":
            return None
        if asked.count == 1:
            return Reply(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
        return texts(asked, f"before {TOKEN}-1, now {TOKEN}-2")

    async with (
        scripted("modern", script) as peer,
        session(peer.url, sign_in=Keys()) as opened,
    ):
        assert await opened.call("send", {}) == ToolResult("before [hidden], now [hidden]")


@pytest.mark.parametrize(
    "given",
    [
        lambda said: reply(status=302, headers={"Location": f"https://a.example/{said}/mcp"}),
        lambda said: Reply(f"HTTP/1.1 200 OK\r\n{said}\r\n\r\n".encode(), breaks_off=True),
        lambda said: reply(status=403, headers={"WWW-Authenticate": f"{LACKS} scope={said}"}),
        lambda said: reply(kind=f"text/{said}"),
    ],
    ids=["redirect", "broken header", "scopes", "media type"],
)
async def test_no_failure_has_a_header_in_it(given: Callable[[str], Reply]) -> None:
    """Its owner reads the hint, and it is kept with the connection."""
    async with (
        scripted("modern", on_call(lambda asked: given(bearer(asked)))) as peer,
        session(peer.url, sign_in=Keys()) as opened,
    ):
        with pytest.raises(ConnectionFailed) as caught:
            await opened.call("send", {}, repeatable=True)

    assert TOKEN not in f"{caught.value} {getattr(caught.value, 'scopes', ())}"


LACKS = 'Bearer error="insufficient_scope"'


def bearer(asked: Asked) -> str:
    return asked.headers["authorization"].removeprefix("Bearer ")
