"""Attached files for commands and file tools: they can be read, in one run, and nothing more."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.cases.images import png
from support.doubles.engine import Call
from support.people.agent_files import House
from support.requirements import requirement
from support.stage.make import MATE, USER

from backburner.actions.work import files
from backburner.core.content.attachment import folder_name
from backburner.core.content.file import FileReference
from backburner.store.db import Database
from backburner.tools.content.attachments import (
    MAX_BYTES,
    MAX_FILES,
    select_newest,
    split_path,
)


@pytest.fixture
def house(database: Database, tmp_path: Path) -> House:
    return House(database, tmp_path)


@requirement("Z-attach")
async def test_a_command_works_on_an_attached_file(house: House) -> None:
    talk = await house.stage.chat()
    (table,) = await house.send(talk, "Add it up.", ("my numbers.csv", b"a,1\nb,2\n"))
    await house.stage.work()

    line = f'cut -d, -f2 "$ATTACHMENTS/{folder_name(table)}"'
    assert (await house.ask(talk, "run_command", command=line)).startswith("1\n2\n[Exit code 0.]")


async def test_what_is_attached_can_only_be_read(house: House) -> None:
    talk = await house.stage.chat()
    (file,) = await house.send(talk, "Look.", ("a.txt", b"data"))
    name = folder_name(file)
    for line in (
        f'echo more >> "$ATTACHMENTS/{name}"',
        f'chmod u+w "$ATTACHMENTS/{name}" && echo more >> "$ATTACHMENTS/{name}"',
        f'rm -f "$ATTACHMENTS/{name}"',
        'touch "$ATTACHMENTS/new"',
    ):
        assert "Exit code 0" not in await house.ask(talk, "run_command", command=line), line
    refused = await house.ask(talk, "write_file", path=f"$ATTACHMENTS/{name}", content="x")
    assert refused == "Attached files can only be read. Write to the workspace."

    assert "data" in await house.ask(talk, "run_command", command=f'cat "$ATTACHMENTS/{name}"')


async def test_a_command_sees_nothing_else_of_where_the_files_are(house: House) -> None:
    talk, other = await house.stage.chat(), await house.stage.chat()
    await house.send(talk, "Look.", ("a.txt", b"mine"))
    await house.send(other, "Look.", ("b.txt", b"of another chat"))
    (house.base / "data").mkdir()
    (house.base / "data" / "secret").write_text("canary")

    line = 'ls "$ATTACHMENTS"; ls "$ATTACHMENTS/.."; cat "$ATTACHMENTS/../../../secret"; true'
    said = await house.ask(talk, "run_command", command=line)

    assert "a-" in said
    assert "b-" not in said
    assert "canary" not in said
    assert said.count("Permission denied") == 2


async def test_file_tools_read_what_is_attached(house: House) -> None:
    talk = await house.stage.chat()
    text, image = await house.send(talk, "Look.", ("a.txt", b"data"), ("b.png", png()))
    place = "$ATTACHMENTS"

    assert await house.ask(talk, "read_file", path=f"{place}/{folder_name(text)}") == "data"
    listed = await house.ask(talk, "list_files", path=place)
    assert folder_name(text) in listed
    assert folder_name(image) in listed
    await house.ask(talk, "read_file", path=f"{place}/{folder_name(image)}")
    (shown,) = house.stage.engine.results[-1].blobs
    assert shown.data == png()


@pytest.mark.parametrize("path", ["$ATTACHMENTS/../../secret", "$ATTACHMENTS//../../secret"])
async def test_no_path_leads_out_of_the_folder(house: House, path: str) -> None:
    talk = await house.stage.chat()
    await house.send(talk, "Look.", ("a.txt", b"data"))
    for tool in ("read_file", "list_files", "hand_over"):
        assert "outside the workspace" in await house.ask(talk, tool, path=path)


async def test_nothing_is_written_for_a_conversation_without_files(house: House) -> None:
    talk = await house.stage.chat()

    assert "no files" in await house.ask(talk, "list_files", path="$ATTACHMENTS")
    said = await house.ask(talk, "run_command", command='echo "[$ATTACHMENTS]"')
    assert said.startswith("[]")
    assert not (house.base / "data").exists()


async def test_the_folder_is_there_for_the_run_alone(house: House) -> None:
    talk = await house.stage.chat()
    await house.send(talk, "Look.", ("a.txt", b"data"))

    (line,) = (await house.ask(talk, "run_command", command='pwd; cd "$ATTACHMENTS" && pwd')).split(
        "\n"
    )[1:2]

    assert Path(line).name.startswith("run-")
    assert Path(line).is_relative_to(house.base / "data")
    assert house.left() == []


async def test_a_command_that_is_not_confined_has_the_files_too(
    database: Database, tmp_path: Path
) -> None:
    house = House(database, tmp_path, unconfined=True)
    talk = await house.stage.chat()
    await house.send(talk, "Look.", ("a.txt", b"data"))
    house.stage.engine.then(Call("run_command", {"command": 'cat "$ATTACHMENTS"/*'}))
    await house.stage.say(talk, "Go on.")
    await house.stage.work()
    await house.stage.answer(talk, "yes")
    house.stage.engine.then(Call("run_command", {"command": 'cat "$ATTACHMENTS"/*'}))
    await house.stage.work()

    assert house.stage.engine.results[-1].text.startswith("data\n[Exit code 0.]")


async def test_files_of_earlier_messages_are_there_and_deleted_ones_are_not(house: House) -> None:
    talk = await house.stage.chat()
    one, two = await house.send(talk, "Look.", ("a.txt", b"1"), ("b.txt", b"2"))
    (three,) = await house.send(talk, "And.", ("a.txt", b"3"))
    await files.remove(house.stage.deps, USER, two.digest)

    listed = await house.ask(talk, "list_files", path="$ATTACHMENTS")

    assert [folder_name(file) in listed for file in (one, two, three)] == [True, False, True]


def test_the_newest_files_are_there_as_far_as_they_fit() -> None:
    small = [
        FileReference(digest=f"{number:064}", size=1, media_type="", name="a")
        for number in range(MAX_FILES + 1)
    ]
    large = [replace(file, size=MAX_BYTES - 1) for file in small[:3]]

    assert select_newest(small) == small[MAX_FILES - 1 :: -1]
    assert select_newest([large[0], large[1], small[2]]) == [small[2], large[0]]
    assert select_newest([small[0], small[0]]) == [small[0]]


async def test_work_below_a_conversation_has_its_files(house: House) -> None:
    talk = await house.stage.chat()
    await house.send(talk, "Look.", ("a.txt", b"data"))
    await house.stage.work()
    house.stage.engine.then(Call("list_files", {"path": "$ATTACHMENTS"}))
    await house.stage.task(parent_id=talk.id)
    await house.stage.work()

    assert "a-" in house.stage.engine.results[-1].text


async def test_files_of_others_are_not_there(house: House) -> None:
    theirs = await house.stage.chat(MATE)
    await house.send(theirs, "Look.", ("secret.txt", b"theirs"), user=MATE)
    talk = await house.stage.chat()
    await house.send(talk, "Look.", ("a.txt", b"mine"))

    assert "secret" not in await house.ask(talk, "list_files", path="$ATTACHMENTS")


@pytest.mark.parametrize(
    ("path", "rest"),
    [
        ("$ATTACHMENTS", "."),
        ("$ATTACHMENTS/", "."),
        ("$ATTACHMENTS/a.txt", "a.txt"),
        ("${ATTACHMENTS}/a.txt", "a.txt"),
        ("$ATTACHMENTS_/a.txt", None),
        ("./$ATTACHMENTS/a.txt", None),
        ("attachments/a.txt", None),
    ],
)
def test_paths_of_attached_files_are_known_by_their_beginning(path: str, rest: str | None) -> None:
    assert split_path(path) == rest
