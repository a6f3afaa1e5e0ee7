"""`/api/files`: files are listed, downloaded as bytes that no browser runs, and deleted."""

import json
import re
from base64 import b64decode
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from support.cases.images import GIF, HTML, JPEG, SVG, WEBP_LOSSY, png
from support.doubles.clock import SetClock
from support.doubles.engine import Call
from support.people.files import put_file
from support.requirements import requirement
from support.stage.api_stage import Asker, read_rows
from support.stage.make import MATE, USER
from support.stage.stage import Stage
from support.statements import watched

from backburner.actions import personal_data
from backburner.actions.work import files
from backburner.core.content.file import PIECE_BYTES, FileLimits, FileOrigin, digest_of
from backburner.core.ids import UserId
from backburner.ports import Blob, ToolResult
from backburner.store.db import Database
from backburner.store.tx import Tx

LARGE = b"0123456789abcdef" * (PIECE_BYTES // 8) + b"end"


async def put(
    stage: Stage, data: bytes, *, user: UserId = USER, name: str = "", claims: str = ""
) -> str:
    """Store a file in a new chat; return its digest."""
    chat = await stage.chat(user)

    def store(tx: Tx) -> str:
        return put_file(tx, user, chat.id, data, name=name, claims=claims)

    return stage.database.run(store)


async def test_files_are_listed_newest_first_page_by_page(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    stored = list[str]()
    for number in range(3):
        stored.insert(0, await put(stage, f"{number}".encode(), name=f"{number}.txt"))
        clock.advance(timedelta(seconds=1))

    first = await ask.get("/api/files", limit=2)
    second = await ask.get("/api/files", limit=2, cursor=first["next"])

    listed = [*first["items"], *second["items"]]
    assert [file["digest"] for file in listed] == stored
    assert [file["name"] for file in listed] == ["2.txt", "1.txt", "0.txt"]
    assert (listed[0]["size"], listed[0]["media_type"]) == (1, "application/octet-stream")
    assert second["next"] is None


@pytest.mark.parametrize("data", [b"", b"text", LARGE], ids=["empty", "small", "large"])
async def test_a_file_is_downloaded_as_it_is(ask: Asker, stage: Stage, data: bytes) -> None:
    answer = await ask("GET", f"/api/files/{await put(stage, data)}")

    assert answer.content == data
    assert answer.headers["content-length"] == str(len(data))


@pytest.mark.parametrize(
    ("data", "claims", "media_type", "shown"),
    [
        (png(), "text/html", "image/png", "inline"),
        (JPEG, "", "image/jpeg", "inline"),
        (GIF, "", "image/gif", "inline"),
        (WEBP_LOSSY, "", "image/webp", "inline"),
        (SVG, "image/svg+xml", "application/octet-stream", "attachment"),
        (HTML, "text/html", "application/octet-stream", "attachment"),
        (HTML, "image/png", "application/octet-stream", "attachment"),
        (b"%PDF-1.7", "application/pdf", "application/octet-stream", "attachment"),
        (b"alert(1)", "text/javascript", "application/octet-stream", "attachment"),
    ],
)
async def test_no_browser_takes_a_file_for_a_page(
    ask: Asker, stage: Stage, data: bytes, claims: str, media_type: str, shown: str
) -> None:
    answer = await ask("GET", f"/api/files/{await put(stage, data, claims=claims)}")

    assert answer.headers["content-type"] == media_type
    assert answer.headers["content-disposition"].startswith(f"{shown}; ")
    assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("Übersicht.pdf", "attachment; filename*=UTF-8''%C3%9Cbersicht.pdf"),
        ('a";\r\nset-cookie: x=1', "attachment; filename*=UTF-8''a_%3B%20set-cookie_%20x%3D1"),
        ("../../.ssh/authorized_keys", "attachment; filename*=UTF-8''authorized_keys"),
        ("", "attachment; filename*=UTF-8''9f86d081884c7d65"),
    ],
)
async def test_a_name_cannot_leave_its_header(
    ask: Asker, stage: Stage, name: str, header: str
) -> None:
    answer = await ask("GET", f"/api/files/{await put(stage, b'test', name=name)}")

    assert answer.headers["content-disposition"] == header
    assert "set-cookie" not in answer.headers


async def test_a_file_is_deleted(ask: Asker, stage: Stage) -> None:
    path = f"/api/files/{await put(stage, b'data')}"

    assert (await ask("DELETE", path)).status_code == 204
    assert (await ask("DELETE", path)).status_code == 404
    assert (await ask("GET", path)).status_code == 404
    assert (await ask.get("/api/files"))["items"] == []


async def test_files_of_others_are_answered_as_those_that_are_not_there(
    ask: Asker, mate: Asker, stage: Stage
) -> None:
    theirs = await put(stage, b"secret", user=MATE)
    nothing = digest_of(b"nothing")
    for method in ("GET", "DELETE"):
        other = await ask(method, f"/api/files/{theirs}")
        missing = await ask(method, f"/api/files/{nothing}")
        assert (other.status_code, other.json()) == (404, missing.json())
    assert (await ask.get("/api/files"))["items"] == []

    mine = await put(stage, b"secret")
    await ask.do("DELETE", f"/api/files/{mine}")

    assert mine == theirs
    assert (await mate("GET", f"/api/files/{theirs}")).content == b"secret"


@pytest.mark.parametrize("odd", ["x", "%00", "..%2f..", "A" * 64, "0" * 63, "0" * 65])
async def test_what_cannot_be_a_digest_is_not_there(ask: Asker, odd: str) -> None:
    assert (await ask("GET", f"/api/files/{odd}")).status_code == 404


async def test_a_run_names_the_files_of_its_calls(ask: Asker, stage: Stage) -> None:
    async def show(_arguments: Mapping[str, Any]) -> ToolResult:
        return ToolResult("Here.", blobs=(Blob(png(), "image/png", "a.png"),))

    stage.tools.handlers["look"] = show
    stage.engine.then(Call("look"))
    task = await stage.task()
    await stage.work()
    (file,) = (await ask.get("/api/files"))["items"]

    run = await ask.get(f"/api/runs/{file['run_id']}")

    (call,) = run["tool_calls"]
    assert (file["conversation_id"], file["call_id"]) == (task.id, call["id"])
    (named,) = call["files"]
    assert named == {
        "digest": file["digest"],
        "size": len(png()),
        "media_type": "image/png",
        "name": "a.png",
        "shown": True,
    }


@requirement("Z-mine")
async def test_files_are_in_the_export_with_their_bytes(ask: Asker, stage: Stage) -> None:
    stored = {await put(stage, data, name="a.bin"): data for data in (LARGE, b"", b"\0\xff")}
    await put(stage, b"theirs", user=MATE)
    await ask.do("DELETE", f"/api/files/{await put(stage, b'deleted')}")
    begun = FileOrigin((await stage.chat()).id)
    await files.store_file(
        stage.deps.store,
        USER,
        b"unused",
        media_type="text/plain",
        name="",
        origin=begun,
        limits=FileLimits(),
    )

    exported = json.loads((await ask("GET", "/api/export")).content)["files"]

    found = {file["digest"]: b64decode(file["content"], validate=True) for file in exported}
    assert found == stored
    assert {file["name"] for file in exported} == {"a.bin"}


@requirement("Z-mine")
async def test_erasing_deletes_the_bytes_of_files_step_by_step(
    ask: Asker, stage: Stage, database: Database
) -> None:
    await put(stage, LARGE * 4)
    theirs = await put(stage, b"theirs", user=MATE)
    with watched(database) as statements:
        await ask.do("POST", "/api/erase", {"confirm": personal_data.ERASE_CONFIRMATION})

    step = re.compile(r"DELETE FROM file_pieces\b.* IN \(SELECT", re.DOTALL)
    steps = [one for one, _ in statements if step.match(one)]
    assert len(steps) > 2
    assert stage.database.run(lambda tx: tx.files.piece(MATE, theirs, 0)) == b"theirs"
    assert len(read_rows(stage)["file_pieces"]) == 1


async def test_deleting_a_conversation_deletes_its_files(ask: Asker, stage: Stage) -> None:
    chat = await stage.chat()
    store = partial(put_file, user=USER, place=chat.id, data=b"data")
    digest = stage.database.run(store)

    await ask.do("DELETE", f"/api/conversations/{chat.id}?now=true")

    assert (await ask("GET", f"/api/files/{digest}")).status_code == 404
