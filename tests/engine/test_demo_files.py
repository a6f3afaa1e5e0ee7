"""The demo watches files, and reports what changed in them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.doubles.clock import SetClock
from support.stage.make import NOON
from support.stage.stage import Stage
from support.stage.talks import SECOND, say, wait

from backburner.actions.origin import Origin
from backburner.actions.work import control
from backburner.core.question import Purpose
from backburner.core.run import RunStatus
from backburner.core.schedule import Interval

WATCH = "every 10 seconds check the file notes.txt and tell me when it changes"


async def test_only_changes_of_a_watched_file_are_reported(
    stage: Stage, clock: SetClock, folder: Path
) -> None:
    notes, chat = folder / "notes.txt", await stage.chat()
    answer = await say(stage, chat, WATCH)
    assert answer == "notes.txt does not exist yet."
    for text in ("eggs\n", "eggs\n", "eggs\nmilk\n", "milk\n\n", None):
        notes.unlink() if text is None else notes.write_text(text)
        await wait(stage, clock, 10)

    reports = [
        "notes.txt does not exist yet.",
        "notes.txt was created: + eggs",
        "notes.txt has changed: + milk",
        "notes.txt has changed: - eggs",
        "notes.txt was deleted.",
    ]
    assert stage.said(chat)[2:] == reports
    assert stage.notices() == reports
    assert [run.status for run in stage.history(chat)] == [RunStatus.SUCCESS] * 7


async def test_an_existing_file_is_not_reported_until_it_changes(
    stage: Stage, clock: SetClock, folder: Path
) -> None:
    (folder / "notes.txt").write_text("eggs")
    chat = await stage.chat()
    await say(stage, chat, WATCH)
    await wait(stage, clock, 10)
    assert stage.notices() == []

    await control.run_now(stage.deps, Origin.by_user(chat.user_id), chat.id)
    await stage.work()
    assert stage.said(chat)[-1] == "notes.txt has not changed."


@pytest.mark.parametrize(
    ("content", "changes"),
    [
        ("x" * 200, f"+ {'x' * 80}…, - eggs"),
        ("\n".join("abcdefgh"), "+ a, + b, + c, + d, + e, + f, and 3 more"),
    ],
)
async def test_long_and_many_changes_are_shortened(
    stage: Stage, clock: SetClock, folder: Path, content: str, changes: str
) -> None:
    (folder / "notes.txt").write_text("eggs")
    chat = await stage.chat()
    await say(stage, chat, WATCH)
    (folder / "notes.txt").write_text(content)
    await wait(stage, clock, 10)

    assert stage.said(chat)[-1] == f"notes.txt has changed: {changes}"


@pytest.mark.parametrize("content", [b"eggs \n", "é\n".encode() * 500, b"\xff"])
async def test_a_file_with_any_content_can_be_watched(
    stage: Stage, clock: SetClock, folder: Path, content: bytes
) -> None:
    (folder / "notes.txt").write_bytes(content)
    chat = await stage.chat()
    await say(stage, chat, WATCH)
    (folder / "notes.txt").write_bytes(content + content)
    await wait(stage, clock, 10)

    assert stage.said(chat)[-1].startswith("notes.txt has changed")


async def test_a_file_that_cannot_be_read_is_reported_once(
    stage: Stage, clock: SetClock, folder: Path
) -> None:
    (folder / "notes.txt").mkdir()
    chat = await stage.chat()
    answer = await say(stage, chat, WATCH)
    assert answer.startswith("I could not read notes.txt: ")
    await wait(stage, clock, 10)
    assert len(stage.notices()) == 1
    (folder / "notes.txt").rmdir()
    (folder / "notes.txt").write_text("eggs")
    await wait(stage, clock, 10)

    assert stage.notices()[1:] == ["I can read notes.txt again."]

    (folder / "notes.txt").unlink()
    (folder / "notes.txt").mkdir()
    await wait(stage, clock, 10)
    assert stage.notices()[2:] == stage.notices()[:1]


async def test_a_single_check_of_a_file_is_reported(
    stage: Stage, clock: SetClock, folder: Path
) -> None:
    (folder / "notes.txt").write_text("eggs\n")
    chat = await stage.chat()
    await say(stage, chat, "In 5 seconds check notes.txt.")
    await wait(stage, clock, 5)

    assert stage.notices() == ["notes.txt exists, with one line."]


async def test_a_missing_tool_is_reported(stage: Stage) -> None:
    task = await stage.task(prompt=WATCH, tools=())
    await stage.work()

    assert stage.said(task) == [
        "I could not read notes.txt: The tool read_file is not available here."
    ]


async def test_a_state_that_the_demo_did_not_write_is_tolerated(
    stage: Stage, clock: SetClock, folder: Path
) -> None:
    (folder / "notes.txt").write_text("eggs")
    task = await stage.task(Interval(SECOND, NOON), prompt=WATCH)
    stage.database.run(
        lambda tx: tx.connection.exec_driver_sql(
            "UPDATE conversations SET data = ?", ('{"demo_file": {"path": "notes.txt"}}',)
        )
    )
    await stage.work()
    assert stage.said(task) == ["notes.txt has changed: + eggs"]
    stage.database.run(
        lambda tx: tx.connection.exec_driver_sql(
            "UPDATE conversations SET data = ?", ('{"demo_file": 7}',)
        )
    )
    await wait(stage, clock, 1)
    assert len(stage.said(task)) == 1


async def test_a_call_that_needs_approval_ends_the_run_and_is_made_after_a_yes(
    set_up: Callable[..., Stage], folder: Path
) -> None:
    (folder / "notes.txt").write_text("eggs")
    stage = set_up(free=False)
    task = await stage.task(prompt=WATCH)
    await stage.work()
    assert stage.question(task).purpose is Purpose.APPROVAL
    assert stage.said(task) == []

    await stage.answer(task, "yes")
    await stage.work()

    assert stage.said(task)[1:] == ["notes.txt exists, with one line."]
