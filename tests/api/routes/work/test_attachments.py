"""Messages with files: stored with them, shown with them, and nothing is sent without them."""

import json
from typing import Any

import pytest
from support.cases.images import png
from support.people.uploads import named, upload
from support.requirements import requirement
from support.stage.api_stage import Asker, read_rows
from support.stage.stage import Stage

from backburner.core.content.attachment import MAX_ATTACHMENTS
from backburner.core.content.file import digest_of

PATH = "/api/conversations"


@requirement("Z-attach")
async def test_a_message_has_its_files_wherever_it_is_read(ask: Asker, stage: Stage) -> None:
    chat = await stage.chat()
    image, text = await upload(ask, png(), "a.png"), await upload(ask, b"text", "b.txt")
    body = {"content": "Look.", "attachments": [named(image), {"digest": text["digest"]}]}

    sent = await ask.do("POST", f"{PATH}/{chat.id}/messages", body)

    assert sent["attachments"] == [image, text]
    (listed,) = (await ask.get(f"{PATH}/{chat.id}/messages"))["items"]
    assert listed["attachments"] == [image, text]
    exported = json.loads((await ask("GET", "/api/export")).content)
    (message,) = exported["messages"]
    assert [file["digest"] for file in message["files"]] == [image["digest"], text["digest"]]
    assert {file["digest"] for file in exported["files"]} == {image["digest"], text["digest"]}
    listed_files = (await ask.get("/api/files"))["items"]
    assert {file["conversation_id"] for file in listed_files} == {chat.id}


async def test_a_file_has_the_name_that_the_message_gives_it(ask: Asker, stage: Stage) -> None:
    chat = await stage.chat()
    digest = (await upload(ask, b"data", "first.txt"))["digest"]
    given = {"digest": digest, "name": "../\u202eevil.txt"}

    sent = await ask.do(
        "POST", f"{PATH}/{chat.id}/messages", {"content": "Look.", "attachments": [given, given]}
    )

    assert [file["name"] for file in sent["attachments"]] == ["evil.txt"]
    assert (await ask.get("/api/files"))["items"][0]["name"] == "first.txt"


async def test_a_new_conversation_begins_with_files(ask: Asker) -> None:
    image = await upload(ask, png(), "a.png")
    body = {"message": "Look.", "attachments": [named(image)]}

    made = await ask.do("POST", PATH, body)

    (message,) = (await ask.get(f"{PATH}/{made['id']}/messages"))["items"]
    assert message["attachments"] == [image]
    (file,) = (await ask.get("/api/files"))["items"]
    assert file["conversation_id"] == made["id"]


async def test_files_need_no_words(ask: Asker, stage: Stage) -> None:
    chat, image = await stage.chat(), await upload(ask, png(), "a.png")
    path = f"{PATH}/{chat.id}/messages"

    sent = await ask.do("POST", path, {"content": "", "attachments": [named(image)]})

    assert (sent["content"], sent["attachments"]) == ("", [image])
    assert (await ask("POST", path, {"content": " "})).status_code == 400


async def test_a_message_that_is_replaced_takes_its_files_along(ask: Asker, stage: Stage) -> None:
    chat = await stage.chat()
    path = f"{PATH}/{chat.id}/messages"
    gone, kept = await upload(ask, b"gone", "gone.txt"), await upload(ask, b"kept", "kept.txt")
    both = {"content": "Look.", "attachments": [named(gone), named(kept)]}
    await ask.do("POST", path, both)

    edited = {"content": "Look here.", "attachments": [named(kept)]}
    sent = await ask.do("PUT", f"{path}/last", edited)

    assert sent["attachments"] == [kept]
    assert (await ask("GET", f"/api/files/{gone['digest']}")).status_code == 404
    assert (await ask("GET", f"/api/files/{kept['digest']}")).content == b"kept"
    refused = await ask("PUT", f"{path}/last", both)
    assert refused.status_code == 404
    assert [message.content for message in stage.messages(chat)] == ["Look here."]


@requirement("Z-attach")
async def test_nothing_is_sent_with_a_file_that_its_sender_does_not_have(
    ask: Asker, mate: Asker, stage: Stage
) -> None:
    chat = await stage.chat()
    await stage.say(chat, "First.")
    theirs = await upload(mate, b"theirs", "theirs.txt")
    mine = await upload(ask, b"mine", "mine.txt")
    before = read_rows(stage)
    unknown: list[Any] = [theirs["digest"], digest_of(b"nothing"), "x", "", "A" * 64]
    for digest in unknown:
        attachments = [named(mine), {"digest": digest}]
        for method, path, body in (
            ("POST", f"{PATH}/{chat.id}/messages", {"content": "Look."}),
            ("PUT", f"{PATH}/{chat.id}/messages/last", {"content": "Look."}),
            ("POST", PATH, {"message": "Look."}),
        ):
            answer = await ask(method, path, {**body, "attachments": attachments})
            assert answer.status_code == 404, (method, digest)
            assert answer.json()["hint"] == "Upload it first."

    assert read_rows(stage) == before


async def test_a_message_has_a_limited_number_of_files(ask: Asker, stage: Stage) -> None:
    chat = await stage.chat()
    attachments = [
        named(await upload(ask, str(number).encode())) for number in range(MAX_ATTACHMENTS + 1)
    ]
    path = f"{PATH}/{chat.id}/messages"

    refused = await ask("POST", path, {"content": "Look.", "attachments": attachments})
    sent = await ask.do("POST", path, {"content": "Look.", "attachments": attachments[1:]})

    assert refused.status_code == 422
    assert len(sent["attachments"]) == MAX_ATTACHMENTS


async def test_files_belong_to_a_message(ask: Asker, stage: Stage) -> None:
    stage.user()
    file = named(await upload(ask, b"data"))
    task = {"what": "Look.", "when": "every day at 9"}
    for body in ({"title": "A chat"}, task):
        answer = await ask("POST", PATH, {**body, "attachments": [file]})
        assert answer.status_code == 400
        assert "message" in answer.json()["detail"]


@pytest.mark.parametrize("way", ["conversation", "file"])
async def test_files_of_messages_are_deleted(ask: Asker, stage: Stage, way: str) -> None:
    chat, image = await stage.chat(), await upload(ask, png(), "a.png")
    path = f"{PATH}/{chat.id}/messages"
    await ask.do("POST", path, {"content": "Look.", "attachments": [named(image)]})

    deleted = (
        f"{PATH}/{chat.id}?now=true" if way == "conversation" else f"/api/files/{image['digest']}"
    )
    await ask.do("DELETE", deleted)

    assert (await ask("GET", f"/api/files/{image['digest']}")).status_code == 404
    if way == "file":
        (message,) = (await ask.get(path))["items"]
        assert message["attachments"] == [image]
