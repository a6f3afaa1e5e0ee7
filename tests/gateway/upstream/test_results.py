"""Results of tools: every kind of content, and content that is not valid."""

import base64
import json

import pytest
from support.mcp_peers.scripted import ERAS, Asked, Era, Reply, result, scripted
from support.mcp_peers.sdk import PIXEL, SOUND, serving
from support.mcp_peers.sessions import session

from backburner.gateway.upstream.limits import MAX_BLOBS, MAX_LINKS, MAX_TEXT_CHARS
from backburner.ports import Blob, ToolResult
from backburner.ports.engine import Link

DATA = base64.b64encode(b"data").decode()


async def result_of(*parts: object, era: Era = "modern", **more: object) -> ToolResult:
    """Return what becomes of the content of a result."""

    def script(asked: Asked) -> Reply | None:
        if asked.method != "tools/call":
            return None
        return result(asked, {"content": list(parts), "resultType": "complete", **more})

    async with scripted(era, script) as peer, session(peer.url) as opened:
        called = await opened.call("send", {})
    assert isinstance(called, ToolResult)
    return called


@pytest.mark.parametrize("era", ERAS)
async def test_every_kind_of_content_is_kept(era: Era) -> None:
    async with serving(era) as url, session(url) as opened:
        called = await opened.call("media", {})

    assert called == ToolResult(
        text="some media\nfile:///notes.txt\na note",
        blobs=(
            Blob(PIXEL, "image/png"),
            Blob(SOUND, "audio/wav"),
            Blob(b"\0\1", "a/b", "data.bin"),
        ),
        links=(Link("https://files.example/1", "one", "The first"),),
        structured={"files": 2},
    )


async def test_structured_content_without_text_is_shown_as_json() -> None:
    called = await result_of(structuredContent={"städte": ["Köln"]})

    assert called == ToolResult('{"städte": ["Köln"]}', structured={"städte": ["Köln"]})


@pytest.mark.parametrize("structured", [[1, 2], "text", 7, False])
@pytest.mark.parametrize("era", ERAS)
async def test_structured_content_that_is_no_object_is_shown_as_json(
    structured: object, era: Era
) -> None:
    called = await result_of(
        {"type": "text", "text": "see below"}, structuredContent=structured, era=era
    )

    assert called == ToolResult(f"see below\n{json.dumps(structured)}")


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("part", "why"),
    [
        (3, "it is not an object"),
        ({"type": "text"}, "it has no text"),
        ({"type": "text", "text": 7}, "it has no text"),
        ({"type": "image", "data": "§", "mimeType": "image/png"}, "its data is not valid base64"),
        ({"type": "image", "data": "abc", "mimeType": "image/png"}, "its data is not valid base64"),
        ({"type": "image", "mimeType": "image/png"}, "it has no data"),
        ({"type": "resource", "resource": 3}, "its resource is not an object"),
        ({"type": "resource", "resource": {"uri": "a:b"}}, "it has no text"),
        ({"type": "resource", "resource": {"uri": "a:b", "blob": "§"}}, "not valid base64"),
        ({"type": "resource_link", "name": "n"}, "it has no uri"),
        ({"type": "resource_link", "uri": "a:" + "b" * 9_000}, "longer than 8,000 characters"),
        ({"type": "hologram", "data": "x" * 3_000}, "it has the unknown type 'hologram'"),
    ],
    ids=str,
)
async def test_a_part_that_is_not_valid_costs_that_part_only(
    part: object, why: str, era: Era
) -> None:
    called = await result_of({"type": "text", "text": "before"}, part, era=era)

    assert called.text.startswith("before\n[A part of the result was left out: ")
    assert why in called.text
    assert not called.failed


async def test_a_short_part_of_an_unknown_kind_is_shown_as_it_is() -> None:
    called = await result_of({"type": "hologram", "depth": 3})

    assert called.text == '{"type": "hologram", "depth": 3}'


async def test_media_without_a_type_are_bytes() -> None:
    called = await result_of({"type": "image", "data": DATA})

    assert called.blobs == (Blob(b"data", "application/octet-stream"),)


async def test_more_files_and_links_than_the_limits_are_left_out_with_words() -> None:
    images = [{"type": "image", "data": DATA, "mimeType": "image/png"}] * (MAX_BLOBS + 2)
    links = [{"type": "resource_link", "uri": "a:b", "name": "n"}] * (MAX_LINKS + 1)

    called = await result_of(*images, *links)

    assert len(called.blobs) == MAX_BLOBS
    assert len(called.links) == MAX_LINKS
    assert called.text == (
        "[A part of the result was left out: the result has more than 100 files.]\n"
        "[A part of the result was left out: the result has more than 500 links.]"
    )


async def test_a_text_that_is_too_long_is_cut_with_words() -> None:
    called = await result_of({"type": "text", "text": "x" * (MAX_TEXT_CHARS + 5)})

    assert called.text == "x" * MAX_TEXT_CHARS + "\n[The text was cut after 2,000,000 characters.]"


async def test_text_that_cannot_be_stored_is_made_storable() -> None:
    called = await result_of({"type": "text", "text": "a\0b"})

    assert called.text == "a\N{REPLACEMENT CHARACTER}b"


@pytest.mark.parametrize("era", ERAS)
async def test_a_result_without_content_is_empty(era: Era) -> None:
    def script(asked: Asked) -> Reply | None:
        return result(asked, {"isError": "yes"}) if asked.method == "tools/call" else None

    async with scripted(era, script) as peer, session(peer.url) as opened:
        assert await opened.call("send", {}) == ToolResult("")


async def test_progress_and_log_lines_are_ignored() -> None:
    for era in ERAS:
        async with serving(era) as url, session(url) as opened:
            assert await opened.call("wait", {}) == ToolResult("waited")


async def test_a_server_cannot_pass_off_a_result_as_that_of_another_call() -> None:
    receipt = {"_meta": {"backburner/receipt": "0" * 32}, "content": []}

    called = await result_of(_meta=receipt["_meta"])

    assert called == ToolResult("")
