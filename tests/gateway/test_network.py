"""Fetching for the agent: which servers it can reach, and the text of their responses."""

import asyncio
import gzip
import socket
from collections.abc import Sequence
from datetime import timedelta
from ipaddress import ip_network

import httpx2
import pytest
from support.servers.web import Answers, answer, redirect, web

from backburner.core.errors import BadRequest, ConnectionFailed, NotAllowed
from backburner.gateway.content import MAX_BODY_BYTES
from backburner.gateway.network import MAX_REDIRECTS, CheckedNetwork
from backburner.gateway.transport import CheckedTransport, Resolve, checked_client
from backburner.ports import MAX_SHOWN_CHARS, WebPage

LOOPBACK = [ip_network("127.0.0.1/32")]
#: The response of a server that must not be reached.
CANARY = "canary-of-an-inner-server"


def network(*, resolve: Resolve | None = None, seconds: float = 20) -> CheckedNetwork:
    return CheckedNetwork(allow=LOOPBACK, resolve=resolve, within=timedelta(seconds=seconds))


def names(**addresses: str) -> Resolve:
    """Resolve each name to its addresses, one at a time; the last one repeats."""
    left = {name.replace("_", "."): texts.split() for name, texts in addresses.items()}

    async def resolve(host: str, port: int) -> Sequence[str]:  # noqa: ARG001 (of one kind)
        texts = left.get(host)
        if texts is None:
            raise socket.gaierror(host)
        return [texts.pop(0) if len(texts) > 1 else texts[0]]

    return resolve


async def fetch(answers: Answers, path: str = "/") -> WebPage:
    async with web(answers) as serving:
        return await network().fetch(serving.url(path))


async def test_a_text_page_is_returned_unchanged() -> None:
    async with web(lambda _: answer("text, with ü")) as serving:
        page = await network().fetch(serving.url("/a?b=c#d"))

        assert page == WebPage(
            url=serving.url("/a?b=c#d"), status=200, content_type="text/plain", text="text, with ü"
        )
        assert serving.asked[0].startswith("GET /a?b=c HTTP/1.1\r\n")
        assert f"Host: 127.0.0.1:{serving.port}\r\n" in serving.asked[0]


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "0x7f000001",
        "2130706433",
        "127.1",
        "0.0.0.0",  # noqa: S104 (not to listen on)
        "10.0.0.1",
        "169.254.169.254",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:a9fe:a9fe]",
        "[fe80::1]",
        "[64:ff9b::7f00:1]",
    ],
)
async def test_an_address_that_is_not_public_is_refused_with_the_reason(host: str) -> None:
    async with web(lambda _: answer(CANARY)) as serving:
        with pytest.raises(NotAllowed, match=r"is not a public address|cloud metadata") as caught:
            await CheckedNetwork().fetch(serving.url("/", host))

        assert serving.asked == []
        assert CANARY not in str(caught.value)


async def test_cloud_metadata_is_refused_whatever_the_operator_allows() -> None:
    everything = CheckedNetwork(allow=[ip_network("0.0.0.0/0"), ip_network("::/0")])

    for host in ("169.254.169.254", "[fd00:ec2::254]", "[::ffff:169.254.169.254]"):
        with pytest.raises(NotAllowed, match="cloud metadata address"):
            await everything.fetch(f"http://{host}/latest/meta-data/")


async def test_a_name_is_checked_by_the_address_it_resolves_to() -> None:
    async with web(lambda _: answer(CANARY)) as serving:
        inner = CheckedNetwork(resolve=names(inner_example="127.0.0.1"))
        with pytest.raises(
            NotAllowed, match=r"inner\.example resolves to 127\.0\.0\.1, which is not"
        ):
            await inner.fetch(serving.url("/", "inner.example"))

        assert serving.asked == []


async def test_a_name_with_one_private_address_among_several_is_refused() -> None:
    async def both(host: str, port: int) -> Sequence[str]:  # noqa: ARG001 (of one kind)
        return ["127.0.0.1", "127.0.0.2"]

    with pytest.raises(NotAllowed, match=r"resolves to 127\.0\.0\.2"):
        await network(resolve=both).fetch("http://both.example/")


async def test_the_address_that_was_checked_is_the_one_connected_to() -> None:
    resolved: list[str] = []

    async def once(host: str, port: int) -> Sequence[str]:  # noqa: ARG001 (of one kind)
        resolved.append(host)
        # The second answer would lead elsewhere: there is no second question.
        return ["127.0.0.1"] if len(resolved) == 1 else ["127.0.0.2"]

    async with web(lambda _: answer("here")) as serving:
        page = await network(resolve=once).fetch(serving.url("/", "turning.example"))

        assert page.text == "here"
        assert resolved == ["turning.example"]
        assert f"Host: turning.example:{serving.port}\r\n" in serving.asked[0]


async def test_tls_asks_for_a_certificate_of_the_name_not_the_address() -> None:
    greeted: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        greeted.set_result(await reader.read(4096))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        secure = network(resolve=names(secure_example="127.0.0.1"))
        with pytest.raises(ConnectionFailed, match="could not be fetched"):
            await secure.fetch(f"https://secure.example:{port}/")

    assert b"secure.example" in await greeted


async def test_a_name_that_resolves_differently_later_is_checked_again() -> None:
    async with web(lambda _: redirect("/next")) as serving:
        turning = network(resolve=names(turning_example="127.0.0.1 127.0.0.2"))
        with pytest.raises(NotAllowed, match=r"resolves to 127\.0\.0\.2"):
            await turning.fetch(serving.url("/", "turning.example"))

        assert len(serving.asked) == 1


async def test_a_redirect_to_an_address_that_is_not_public_is_refused() -> None:
    async with web(lambda _: answer(CANARY)) as inner:
        to = f"http://127.0.0.2:{inner.port}/"
        async with web(lambda _: redirect(to)) as outer:
            with pytest.raises(NotAllowed, match=r"127\.0\.0\.2 is not a public address"):
                await network().fetch(outer.url(), other_hosts=True)

        assert inner.asked == []


async def test_a_redirect_to_another_host_is_reported_and_not_followed() -> None:
    async with web(lambda _: redirect("https://other.example/path")) as serving:
        with pytest.raises(ConnectionFailed, match=r"https://other\.example/path") as caught:
            await network().fetch(serving.url())

    assert caught.value.permanent


async def test_a_redirect_within_a_host_is_followed() -> None:
    def answers(path: str) -> bytes:
        return answer("there") if path == "/there" else redirect("there")

    async with web(answers) as serving:
        page = await network().fetch(serving.url("/here"))

        assert (page.text, page.url) == ("there", serving.url("/there"))


async def test_endless_redirects_are_refused() -> None:
    async with web(lambda path: redirect(path + "x")) as serving:
        with pytest.raises(ConnectionFailed, match="redirects more than"):
            await network().fetch(serving.url())

        assert len(serving.asked) == MAX_REDIRECTS + 1


@pytest.mark.parametrize(
    "to", ["file:///etc/passwd", "http://", "http://user@127.0.0.1/", "http://[x"]
)
async def test_a_redirect_to_an_invalid_address_is_refused(to: str) -> None:
    with pytest.raises((BadRequest, ConnectionFailed)):
        await fetch(lambda _: redirect(to))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "ftp://example.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://",
        "http://user:password@example.com/",
        "http://user@example.com/",
        "http://exa\0mple.com/",
        "http://0177.0.0.1/",
        "http://example.com:99999/",
        "http://good.example\\@bad.example/",
        " http://example.com/",
        "http://example.com/" + "x" * 9000,
    ],
)
async def test_an_invalid_address_is_refused(url: str) -> None:
    with pytest.raises(BadRequest):
        await network().fetch(url)


async def test_an_unknown_host_is_reported() -> None:
    with pytest.raises(ConnectionFailed, match=r"Host not found: missing\.example"):
        await network(resolve=names()).fetch("http://missing.example/")


async def test_a_refused_connection_is_reported() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(ConnectionFailed, match="could not be fetched"):
            await network().fetch(f"http://127.0.0.1:{port}/")


@pytest.mark.parametrize("given", [None, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nslow"])
async def test_a_fetch_has_one_timeout_for_all_its_steps(given: bytes | None) -> None:
    hanging = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(given or b"")
        await reader.read()
        writer.close()
        hanging.set()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ConnectionFailed, match=r"within 0\.2 seconds"):
            await network(seconds=0.2).fetch(f"http://127.0.0.1:{port}/")
        await asyncio.wait_for(hanging.wait(), 20)


async def test_a_large_page_is_cut() -> None:
    page = await fetch(lambda _: answer(b"x" * (3 * MAX_BODY_BYTES)))

    assert (len(page.text), page.truncated) == (MAX_SHOWN_CHARS, True)


async def test_an_endless_response_is_cut() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        try:
            while True:
                writer.write(b"x" * 100_000)
                await writer.drain()
        except ConnectionError:
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert (await network().fetch(f"http://127.0.0.1:{port}/")).truncated


async def test_a_compressed_response_is_decompressed() -> None:
    packed = gzip.compress(b"text")
    page = await fetch(lambda _: answer(packed, Content_Encoding="gzip"))

    assert (page.text, page.truncated) == ("text", False)


async def test_a_decompression_bomb_is_cut() -> None:
    bomb = gzip.compress(b" " * 100_000_000, compresslevel=1)
    page = await fetch(lambda _: answer(bomb, Content_Encoding="gzip"))

    assert page.truncated
    assert len(page.text) <= MAX_SHOWN_CHARS


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd"])
async def test_a_response_that_cannot_be_decompressed_is_reported(encoding: str) -> None:
    with pytest.raises(ConnectionFailed, match="compress"):
        await fetch(lambda _: answer("not packed", Content_Encoding=encoding))


@pytest.mark.parametrize("kind", ["image/png", "application/pdf", "application/octet-stream"])
async def test_a_response_that_is_not_text_is_refused_with_its_media_type(kind: str) -> None:
    with pytest.raises(BadRequest, match=kind):
        await fetch(lambda _: answer(b"\x89PNG", kind))


async def test_a_binary_response_declared_as_text_is_refused() -> None:
    with pytest.raises(BadRequest, match="is not text"):
        await fetch(lambda _: answer(b"\0\1\2", "text/plain"))


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("grüß".encode("latin-1"), "text/plain; charset=ISO-8859-1"),
        ("grüß".encode("utf-16"), "text/plain"),
        ("grüß".encode(), "application/json"),
        ("grüß".encode(), ""),
        ("grüß".encode(), "text/plain; charset=nonsense"),
        ("grüß".encode(), "text/plain; charset=punycode"),
        ("<meta charset='windows-1252'>grüß".encode("cp1252"), "text/html"),
    ],
)
async def test_text_is_decoded_with_its_charset(body: bytes, kind: str) -> None:
    assert (await fetch(lambda _: answer(body, kind))).text == "grüß"


async def test_an_error_page_is_returned_with_its_status() -> None:
    page = await fetch(lambda _: answer("no such page", status="404 Not Found"))

    assert (page.status, page.text) == (404, "no such page")


async def test_an_html_page_is_reduced_to_its_text() -> None:
    html = "<title>T</title><h1>Head</h1><script>no()</script><p>A <a href='/x'>link</a></p>"

    async with web(lambda _: answer(html, "text/html; charset=utf-8")) as serving:
        page = await network().fetch(serving.url("/dir/page"))

        assert page.text == f"T\n\n# Head\n\nA link ({serving.url('/x')})"


async def test_proxy_variables_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")

    assert (await fetch(lambda _: answer("direct"))).text == "direct"


async def test_a_checked_client_refuses_private_addresses() -> None:
    async with checked_client(CheckedTransport(), within=timedelta(seconds=5)) as client:
        with pytest.raises(NotAllowed):
            await client.post("http://localhost:1/token", data={"secret": "x"})


async def test_plain_http_that_nobody_allows_is_refused_before_a_look_up() -> None:
    asked = list[str]()

    async def resolve(host: str, _port: int) -> list[str]:
        asked.append(host)
        return ["93.184.216.34"]

    transport = CheckedTransport(resolve=resolve, public=False)
    async with checked_client(transport, within=timedelta(seconds=5)) as client:
        with pytest.raises(NotAllowed, match="would not be encrypted"):
            await client.get("http://mcp.example/mcp")

    assert asked == []


async def test_to_look_a_name_up_takes_no_longer_than_to_connect() -> None:
    async def silent(host: str, port: int) -> Sequence[str]:  # noqa: ARG001 (of one kind)
        await asyncio.Event().wait()
        return []

    transport = CheckedTransport(resolve=silent)
    async with checked_client(transport, within=timedelta(seconds=0.05)) as client:
        async with asyncio.timeout(5):
            with pytest.raises(httpx2.ConnectTimeout):
                await client.get("https://mail.example/")


@pytest.mark.parametrize("place", ["javascript:alert(1)", "http://[", "http://a:99999/"])
async def test_a_redirect_to_what_is_no_address_is_an_error_in_words(place: str) -> None:
    with pytest.raises((BadRequest, ConnectionFailed)):
        await fetch(lambda _: redirect(place))
