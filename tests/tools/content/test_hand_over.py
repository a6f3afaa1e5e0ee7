"""Files that agents hand over: kept for the user, and attached to what the run says."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.cases.images import SVG, png
from support.doubles.clock import SetClock
from support.doubles.engine import Call, End, Fail, Say, Wait
from support.people.agent_files import House
from support.requirements import requirement
from support.stage.make import MATE, USER
from support.stage.stage import LEASE
from support.stage.until import until

from backburner.actions.work import files
from backburner.core.content.attachment import folder_name
from backburner.core.content.file import FileLimits, FileReference, digest_of
from backburner.core.conversation import Conversation, Message, MessageRole, Source
from backburner.core.errors import EngineFailed, SessionGone
from backburner.store.db import Database
from backburner.tools.workspace import MAX_HANDED_OVER

REPORT = b"%PDF-1.7 \0 report"


@pytest.fixture
def house(database: Database, tmp_path: Path) -> House:
    return House(database, tmp_path)


def give(path: str, **more: str) -> Call:
    return Call("hand_over", {"path": path, **more})


def with_files(house: House, place: Conversation) -> list[Message]:
    return [message for message in house.stage.messages(place) if message.files]


def names(message: Message) -> Sequence[str]:
    return [file.name for file in message.files]


@requirement("Z-attach")
async def test_a_file_of_the_workspace_reaches_the_user_with_the_reply(house: House) -> None:
    house.put("out/report.pdf", REPORT)
    house.stage.engine.then(give("out/report.pdf"), Say("Here it is."))
    talk = await house.stage.chat()
    await house.stage.say(talk, "Write a report.")
    await house.stage.work()

    (message,) = with_files(house, talk)
    assert (message.role, message.content) == (MessageRole.ASSISTANT, "Here it is.")
    (file,) = message.files
    assert file == FileReference(
        digest=digest_of(REPORT),
        size=len(REPORT),
        media_type="application/octet-stream",
        name="report.pdf",
    )
    assert await files.load_bytes(house.stage.deps.store, USER, file.digest) == REPORT
    (result,) = house.stage.engine.results
    assert result.text == "Handed over: report.pdf, application/octet-stream, 17 bytes."
    kept = await files.load(house.stage.deps, USER, file.digest)
    assert (kept.origin.conversation_id, kept.origin.run_id) == (talk.id, message.run_id)


@requirement("Z-attach")
@pytest.mark.parametrize("says", ["It is done.", None])
async def test_what_work_hands_over_is_attached_to_its_message(
    house: House, says: str | None
) -> None:
    house.put("a.png", png())
    ends = {"complete": True, "message": says} if says else {"complete": True, "result": 1}
    house.stage.engine.then(give("a.png", name="chart: May/June.png"), End(ends))
    task = await house.stage.task()
    await house.stage.work()

    (message,) = with_files(house, task)
    assert message.source is Source.WORKER
    assert message.content == (says or "Here is a file: June.png")
    assert [(file.name, file.media_type) for file in message.files] == [("June.png", "image/png")]


async def test_images_that_are_handed_over_are_not_shown_to_the_agent(house: House) -> None:
    house.put("a.png", png())
    house.put("b.svg", SVG)
    house.stage.engine.then(give("a.png"), give("b.svg"), Say("Here."))
    talk = await house.stage.chat()
    await house.stage.say(talk, "Draw.")
    await house.stage.work()

    assert [result.blobs for result in house.stage.engine.results] == [(), ()]
    (message,) = with_files(house, talk)
    assert [file.media_type for file in message.files] == ["image/png", "application/octet-stream"]


async def test_a_reply_that_fails_or_is_stopped_gives_what_was_handed_over(house: House) -> None:
    house.put("a.txt", b"data")
    talk = await house.stage.chat()
    house.stage.engine.then(give("a.txt"), Fail(EngineFailed("Broken.", permanent=True)))
    await house.stage.say(talk, "Write.")
    await house.stage.work()

    (message,) = with_files(house, talk)
    assert (message.content, message.source) == ("Here is a file: a.txt", Source.CHAT)
    assert house.stage.said(talk)[-1].startswith("I could not answer: Broken.")


async def test_what_a_run_handed_over_before_it_waits_is_given_once(house: House) -> None:
    house.put("a.txt", b"data")
    house.put("b.txt", b"more")
    asks = Call("run_command", {"command": "curl example.org", "network": True})
    house.stage.engine.then(give("a.txt"), asks)
    house.stage.engine.then(give("a.txt"), give("b.txt"), Say("Done."))
    talk = await house.stage.chat()
    await house.stage.say(talk, "Write.")
    await house.stage.work()
    (first,) = with_files(house, talk)
    await house.stage.answer(talk, "no")
    await house.stage.work()

    assert names(first) == ["a.txt"]
    assert [names(message) for message in with_files(house, talk)] == [
        ["a.txt"],
        ["a.txt", "b.txt"],
    ]


async def test_a_file_of_a_run_that_was_killed_is_given_by_the_next(
    house: House, clock: SetClock
) -> None:
    house.put("a.txt", b"data")
    house.stage.engine.then(give("a.txt"), Wait())
    task = await house.stage.task()
    await house.stage.take_up()
    await until(lambda: len(house.stage.engine.results) == 1)
    house.stage.kill()
    clock.advance(2 * LEASE)
    assert await house.stage.rescuer.run_once()
    await house.stage.work()

    (message,) = with_files(house, task)
    assert names(message) == ["a.txt"]


async def test_a_file_that_was_given_already_is_not_given_again(house: House) -> None:
    house.put("a.txt", b"data")
    task = await house.stage.task()
    house.stage.engine.then(give("a.txt"), Fail(EngineFailed("Broken.")))
    house.stage.engine.then(End({"complete": True, "message": "Done."}))
    await house.stage.work()
    await house.stage.work()

    assert len(with_files(house, task)) == 1


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("missing.txt", "File or folder not found: missing.txt."),
        ("out", "out is a folder."),
        ("../../secret", "This path is outside the workspace."),
        ("/etc/passwd", "This path is outside the workspace."),
        ("link", "This path is outside the workspace."),
        ("pipe", "pipe is not a file"),
        ("large.bin", "large.bin is too large: the limit is 20 bytes."),
        ("$ATTACHMENTS/a.txt", "The messages here have no files."),
        ("a\0b", "The tool call has invalid characters."),
    ],
)
async def test_what_an_agent_may_not_read_is_not_handed_over(
    database: Database, tmp_path: Path, path: str, problem: str
) -> None:
    house = House(database, tmp_path, limits=FileLimits(file=20))
    house.put("out/a.txt", b"data")
    house.put("large.bin", bytes(21))
    workspace = house.workspace / USER
    (tmp_path / "secret").write_bytes(b"canary")
    (workspace / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(workspace / "pipe")
    talk = await house.stage.chat()

    said = await house.ask(talk, "hand_over", path=path)

    assert said.startswith(problem)
    assert with_files(house, talk) == []
    assert (await files.page(house.stage.deps, USER, None, limit=9)).items == []


async def test_a_link_within_the_workspace_is_followed(house: House) -> None:
    file = house.put("out/a.txt", b"data")
    (file.parent.parent / "link").symlink_to("out/a.txt")
    talk = await house.stage.chat()
    await house.ask(talk, "hand_over", path="link")

    (message,) = with_files(house, talk)
    assert names(message) == ["link"]
    assert message.files[0].digest == digest_of(b"data")


async def test_a_file_that_was_attached_can_be_given_back(house: House) -> None:
    talk = await house.stage.chat()
    (file,) = await house.send(talk, "Look.", ("a.txt", b"data"))
    await house.ask(talk, "hand_over", path=f"$ATTACHMENTS/{folder_name(file)}", name="b.txt")

    assert names(with_files(house, talk)[-1]) == ["b.txt"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [("../../x.sh", "x.sh"), ("a\u202egpj.exe", "a gpj.exe"), ("..", "file"), (" ", "a.txt")],
)
async def test_the_name_that_an_agent_gives_is_made_safe(
    house: House, name: str, shown: str
) -> None:
    house.put("a.txt", b"data")
    talk = await house.stage.chat()
    await house.ask(talk, "hand_over", path="a.txt", name=name)

    assert names(with_files(house, talk)[-1]) == [shown]


async def test_what_a_marked_session_hands_over_is_marked(house: House) -> None:
    house.put("a.txt", b"data")
    marked, plain = await house.stage.chat(), await house.stage.chat()
    house.stage.engine.then(Call("read_file", {"path": "a.txt"}), give("a.txt"), End())
    await house.stage.say(marked, "Write.")
    await house.stage.work()
    await house.ask(plain, "hand_over", path="a.txt")

    assert [message.outside for message in with_files(house, marked)] == [True]
    assert [message.outside for message in with_files(house, plain)] == [False]


async def test_a_run_hands_over_a_limited_number_of_files(house: House) -> None:
    house.put("a.txt", b"data")
    calls = [give("a.txt", name=f"{number}.txt") for number in range(MAX_HANDED_OVER + 1)]
    house.stage.engine.then(*calls, Say("Here."))
    talk = await house.stage.chat()
    await house.stage.say(talk, "Write.")
    await house.stage.work()

    (message,) = with_files(house, talk)
    assert len(message.files) == MAX_HANDED_OVER
    assert "Limit reached" in house.stage.engine.results[-1].text


async def test_there_is_no_file_if_the_limit_of_the_user_is_reached(
    database: Database, tmp_path: Path
) -> None:
    house = House(database, tmp_path, limits=FileLimits(file=20, user=5))
    house.put("a.txt", b"data")
    house.put("b.txt", b"more")
    talk = await house.stage.chat()
    await house.ask(talk, "hand_over", path="a.txt")

    assert "Delete files or old conversations first." in await house.ask(
        talk, "hand_over", path="b.txt"
    )
    assert len(with_files(house, talk)) == 1


async def test_what_was_handed_over_is_its_users_alone(house: House) -> None:
    house.put("a.txt", b"data")
    talk = await house.stage.chat()
    await house.ask(talk, "hand_over", path="a.txt")
    house.stage.user(MATE)

    digest = digest_of(b"data")
    assert await files.load_bytes(house.stage.deps.store, MATE, digest) is None
    assert await files.load_bytes(house.stage.deps.store, USER, digest) == b"data"


async def test_a_session_that_begins_anew_is_told_what_was_handed_over(house: House) -> None:
    house.put("a.txt", b"data")
    talk = await house.stage.chat()
    await house.ask(talk, "hand_over", path="a.txt")
    house.stage.engine.then(Fail(SessionGone()))
    await house.stage.say(talk, "And now?")
    await house.stage.work()

    prompt = house.stage.engine.requests[-1].prompt
    assert "a-3a6eb079.txt (application/octet-stream, 4 bytes)" in prompt
    assert not house.stage.load(talk).outside_read
