"""`POST /api/files`: uploads are kept as their user's bytes, known by them, and limited."""

import io
import zipfile
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import httpx2
import pytest
from support.cases.images import GIF, HTML, JPEG, SVG, WEBP_LOSSY, png
from support.doubles.clock import SetClock
from support.people.tokens import issue_token
from support.people.uploads import BYTES_TYPE, PATH, upload
from support.requirements import requirement
from support.stage.api_stage import AskAs, Asker, read_rows
from support.stage.make import MATE, USER
from support.stage.stage import Stage

from backburner.actions.accounts import sign_in
from backburner.actions.deps import Limits
from backburner.api.app import build_api
from backburner.api.http.auth import SESSION_COOKIE, SESSION_HEADER, split_session_secret
from backburner.api.http.caller_limits import MAX_UPLOADS, HeldRequest
from backburner.core.accounts import Scope
from backburner.core.content.file import MEGABYTE, PIECE_BYTES, FileLimits, digest_of

LARGE = b"0123456789abcdef" * (PIECE_BYTES // 8) + b"end"
#: Valid as an image, and as a script that begins with a comment.
POLYGLOT = b"GIF89a/*" + GIF[8:] + b"*/=1;alert(1)//;"


def bomb() -> bytes:
    """Pack a hundred megabytes of nothing into a hundred kilobytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("0", bytes(100 * MEGABYTE))
    return packed.getvalue()


@requirement("Z-attach")
@pytest.mark.parametrize("data", [b"", b"text", LARGE], ids=["empty", "small", "large"])
async def test_an_upload_is_kept_as_it_is(ask: Asker, data: bytes) -> None:
    uploaded = await upload(ask, data, "a.txt")

    assert uploaded == {
        "digest": digest_of(data),
        "size": len(data),
        "media_type": "application/octet-stream",
        "name": "a.txt",
    }
    assert (await ask("GET", f"{PATH}/{uploaded['digest']}")).content == data
    assert await upload(ask, data, "a.txt") == uploaded


@requirement("Z-attach")
@pytest.mark.parametrize(
    ("data", "media_type", "shown"),
    [
        (png(), "image/png", "inline"),
        (JPEG, "image/jpeg", "inline"),
        (WEBP_LOSSY, "image/webp", "inline"),
        (POLYGLOT, "image/gif", "inline"),
        (SVG, "application/octet-stream", "attachment"),
        (HTML, "application/octet-stream", "attachment"),
        (b"%PDF-1.7", "application/octet-stream", "attachment"),
        (b"alert(1)//GIF89a", "application/octet-stream", "attachment"),
    ],
)
async def test_its_bytes_say_what_an_upload_is_and_no_browser_runs_it(
    ask: Asker, data: bytes, media_type: str, shown: str
) -> None:
    claims = {"content-type": "text/html"}
    params = {"name": "page.html"}
    uploaded = (await ask("POST", PATH, content=data, headers=claims, params=params)).json()
    assert uploaded["media_type"] == media_type

    answer = await ask("GET", f"{PATH}/{uploaded['digest']}")

    assert answer.headers["content-type"] == media_type
    assert answer.headers["content-disposition"].startswith(f"{shown}; ")
    assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"


async def test_an_archive_is_not_unpacked(ask: Asker) -> None:
    packed = bomb()

    uploaded = await upload(ask, packed, "bomb.zip")

    assert uploaded["size"] == len(packed) < MEGABYTE
    assert uploaded["media_type"] == "application/octet-stream"


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("Übersicht 2026.pdf", "Übersicht 2026.pdf"),
        ("../../.ssh/authorized_keys", "authorized_keys"),
        ("..\\..\\win.ini", "win.ini"),
        ("invoice\u202egpj.exe", "invoice gpj.exe"),
        ("a\tb\x7f.txt", "a b .txt"),
        ("a\0b.txt", "a\N{REPLACEMENT CHARACTER}b.txt"),
        ("a\r\nset-cookie: x", "a set-cookie_ x"),
        ("x" * 300 + ".png", "x" * 96 + ".png"),
        ("..", ""),
        ("", ""),
    ],
)
async def test_names_are_made_safe(ask: Asker, name: str, kept: str) -> None:
    assert (await upload(ask, b"data", name))["name"] == kept


async def test_a_name_that_cannot_be_one_is_refused(ask: Asker, stage: Stage) -> None:
    params = {"name": "x" * 1001}
    answer = await ask("POST", PATH, content=b"data", headers=BYTES_TYPE, params=params)

    assert answer.status_code == 422
    assert read_rows(stage)["files"] == []


@pytest.mark.parametrize("declared", [True, False])
async def test_an_upload_may_be_as_large_as_a_file_and_not_a_byte_larger(
    ask: Asker, stage: Stage, *, declared: bool
) -> None:
    most = stage.deps.limits.files.file

    async def stream(size: int) -> AsyncIterator[bytes]:
        chunk = bytes(MEGABYTE)
        for start in range(0, size, MEGABYTE):
            yield chunk[: size - start]

    for more, status in ((1, 413), (0, 201)):
        content = bytes(most + more) if declared else stream(most + more)
        answer = await ask("POST", PATH, content=content, headers=BYTES_TYPE)
        assert answer.status_code == status, answer.text
        assert len(read_rows(stage)["files"]) == (status == 201)


async def test_other_requests_may_not_be_as_large_as_files(ask: Asker) -> None:
    content = bytes(2 * MEGABYTE)
    for method, path in (("POST", "/api/conversations"), ("POST", f"{PATH}/"), ("PUT", PATH)):
        answer = await ask(method, path, content=content, headers=BYTES_TYPE)
        assert answer.status_code == 413, path


async def test_all_files_of_a_user_have_a_limit(set_up: Callable[..., Stage]) -> None:
    stage = set_up(limits=Limits(files=FileLimits(file=10, user=15)))
    token = await issue_token(stage.deps, stage.user(), tuple(Scope), name="Test")
    api = build_api(stage.deps, hosts={"localhost"}, checks={})
    transport = httpx2.ASGITransport(app=api)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        ask = Asker(client, token, api)
        await upload(ask, bytes(10))
        answer = await ask("POST", PATH, content=b"1" * 10, headers=BYTES_TYPE)

    assert answer.status_code == 429
    assert answer.json()["hint"] == "Delete files or old conversations first."


async def test_few_uploads_are_in_memory_at_the_same_time(ask: Asker) -> None:
    limits = ask.api.state.limits
    held = [limits.hold(USER, HeldRequest.UPLOAD) for _ in range(MAX_UPLOADS)]
    for one in held:
        one.__enter__()

    refused = await ask("POST", PATH, content=b"data", headers=BYTES_TYPE)
    held[0].__exit__(None, None, None)

    assert refused.status_code == 429
    assert "retry-after" in refused.headers
    await upload(ask, b"data")


async def test_an_upload_that_no_message_names_is_gone_after_a_day(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    uploaded = await upload(ask, b"data")
    assert (await ask.get(PATH))["items"] == []
    clock.advance(timedelta(days=2))

    while stage.database.run(lambda tx: tx.files.sweep(before=clock.now - timedelta(days=1))):
        pass

    assert (await ask("GET", f"{PATH}/{uploaded['digest']}")).status_code == 404


async def test_an_upload_is_its_users_alone(ask: Asker, mate: Asker) -> None:
    mine = await upload(ask, b"secret", "mine.txt")

    assert (await mate("GET", f"{PATH}/{mine['digest']}")).status_code == 404
    theirs = await upload(mate, b"secret", "theirs.txt")
    await ask.do("DELETE", f"{PATH}/{mine['digest']}")
    assert (await mate("GET", f"{PATH}/{theirs['digest']}")).content == b"secret"


async def test_an_upload_needs_the_scope_to_write(ask_as: AskAs) -> None:
    reader = await ask_as(MATE, Scope.READ)

    assert (await reader("POST", PATH, content=b"1", headers=BYTES_TYPE)).status_code == 403


async def test_a_page_uploads_and_shows_with_both_halves_of_its_session(
    client: httpx2.AsyncClient, stage: Stage
) -> None:
    user = stage.user()
    issued = await stage.deps.store.transact(lambda tx: sign_in.start_session(tx, user))
    cookie, header = split_session_secret(issued.secret)
    client.cookies.set(SESSION_COOKIE, cookie)
    halves = {SESSION_HEADER: header, "origin": "http://localhost"}

    uploaded = await client.post(PATH, content=png(), headers={**halves, **BYTES_TYPE})
    digest = uploaded.json()["digest"]
    shown = await client.get(f"{PATH}/{digest}", headers={SESSION_HEADER: header})

    assert (uploaded.status_code, shown.content) == (201, png())
    for headers in (
        {**halves, "content-type": "text/plain"},
        {**halves, "content-type": "multipart/form-data; boundary=x"},
        {**halves, **BYTES_TYPE, "origin": "http://evil.example"},
        BYTES_TYPE,
    ):
        answer = await client.post(PATH, content=b"other", headers=headers)
        assert answer.status_code in (401, 403, 415), headers
    assert len(read_rows(stage)["files"]) == 1
