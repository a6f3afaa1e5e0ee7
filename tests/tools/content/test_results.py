"""An agent reads on in results that were cut, and looks again at images."""

from typing import Any

import pytest
from support.cases.images import png
from support.doubles.engine import Call, ScriptedEngine
from support.doubles.tool_servers import FakeServers
from support.stage.make import USER
from support.stage.stage import Stage

from backburner.bus.local import LocalBus
from backburner.core.conversation import Conversation
from backburner.ports import MAX_SHOWN_CHARS, Blob, ToolResult
from backburner.runs.tool_results import MAX_RESULT_CHARS
from backburner.store.db import Database
from backburner.tools.toolbox import Toolbox

FETCH = Call("search")


class House:
    """A stage whose agent has a connection to a server."""

    def __init__(self, database: Database) -> None:
        self.servers = FakeServers()
        self.stage = Stage(
            database,
            LocalBus(),
            ScriptedEngine(),
            toolbox=lambda deps: Toolbox(deps, open_session=self.servers.open_session),
        )
        self.servers.add(self.stage)

    async def fetch(self, result: ToolResult, **brief: Any) -> tuple[Conversation, str]:
        """Have a result in a run; return the conversation, and the file that was kept."""
        self.servers["mail"].handler = lambda _name, _arguments: result
        self.stage.engine.then(FETCH)
        task = await self.stage.task(connections=("mail",), **brief)
        await self.stage.work()
        (file,) = self.stage.database.run(lambda tx: tx.files.page(USER, None, limit=1))
        return task, file.digest[:16]

    async def read(self, where: Conversation, **arguments: Any) -> ToolResult:
        self.stage.engine.then(Call("read_result", arguments))
        await self.stage.say(where, "Go on.")
        await self.stage.work()
        return self.stage.engine.results[-1]


@pytest.fixture
def house(database: Database) -> House:
    return House(database)


async def test_a_cut_result_is_read_to_its_end(house: House) -> None:
    text = "".join(f"Line {number} of ä.\n" for number in range(9000))
    task, file = await house.fetch(ToolResult(text))
    shown, _, note = house.stage.engine.results[-1].text.rpartition("\n[Cut here")
    offset: int | None = int(note.rpartition("offset ")[2].removesuffix(".]"))

    while offset is not None:
        result = await house.read(task, file=file, offset=offset)
        part, _, note = result.text.rpartition("\n[")
        offset = int(note.rpartition("offset ")[2].removesuffix(".]")) if part else None
        shown += part or result.text

    assert (len(text) > MAX_RESULT_CHARS, shown == text) == (True, True)


async def test_what_is_read_is_outside_text(house: House) -> None:
    task, file = await house.fetch(ToolResult("x" * (MAX_RESULT_CHARS + 1)))
    (offer,) = [
        one for one in house.stage.engine.requests[-1].tools if one.tool.name == "read_result"
    ]

    assert (offer.outside, offer.read_only, offer.tool.free) == (True, True, True)
    assert (await house.read(task, file=file, offset=10**9)).text == (
        "[The file ends before this offset.]"
    )


async def test_a_part_is_bounded_and_cuts_no_character(house: House) -> None:
    task, file = await house.fetch(ToolResult("€" * (MAX_RESULT_CHARS + 1)))

    result = await house.read(task, file=file)

    part, _, note = result.text.rpartition("\n[")
    assert part == "€" * (MAX_SHOWN_CHARS // 3)
    assert note.endswith(f"offset {len(part.encode())}.]")


async def test_an_image_is_shown_again(house: House) -> None:
    image = Blob(png(), "image/png", "a.png")
    task, file = await house.fetch(ToolResult("Here.", blobs=(image,)))

    result = await house.read(task, file=file)

    assert result.blobs == (image,)
    assert not result.failed


async def test_bytes_are_no_text(house: House) -> None:
    task, file = await house.fetch(ToolResult("", blobs=(Blob(b"PK\0\0", "application/zip"),)))

    result = await house.read(task, file=file)

    assert (result.failed, "not text" in result.text) == (True, True)


@pytest.mark.parametrize("file", ["", "0123456789abcdef", "../../etc", "%", "0" * 64])
async def test_a_file_that_is_not_there_is_refused(house: House, file: str) -> None:
    task, _ = await house.fetch(ToolResult("x" * (MAX_RESULT_CHARS + 1)))

    result = await house.read(task, file=file)

    assert (result.failed, result.text.startswith("There is no file ")) == (True, True)


async def test_files_of_other_conversations_are_not_read(house: House) -> None:
    task, file = await house.fetch(ToolResult("x" * (MAX_RESULT_CHARS + 1)))
    elsewhere = await house.stage.chat()
    assert (await house.read(elsewhere, file=file)).failed

    job = await house.stage.task(parent_id=task.id, connections=("mail",))
    assert not (await house.read(job, file=file)).failed


async def test_work_that_may_use_few_tools_reads_on_all_the_same(house: House) -> None:
    task, file = await house.fetch(ToolResult("x" * (MAX_RESULT_CHARS + 1)), tools=("mail/search",))

    assert not (await house.read(task, file=file)).failed


async def test_without_tools_of_others_there_is_nothing_to_read_on(stage: Stage) -> None:
    await stage.task()
    await stage.work()

    assert "read_result" not in [offer.tool.name for offer in stage.engine.requests[-1].tools]
