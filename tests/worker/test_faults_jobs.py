"""Fifty jobs of one parent, and a process that is killed in the middle of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.doubles.engine import Call, End, Say, Sleep
from support.faults import script
from support.faults.outside import Outside
from support.programs.programs import Start
from support.programs.workers import Workers, assert_sound
from support.requirements import requirement

from backburner.core.conversation import Conversation
from backburner.core.ids import ConversationId

MANY = 50
SOME = 10


@pytest.fixture
def programs(start: Start, tmp_path: Path, sqlite_template: Path) -> Workers:
    """Give what starts them in a folder with a database that has no rows."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "backburner.sqlite3").write_bytes(sqlite_template.read_bytes())
    return Workers(start, tmp_path, url=None)


@pytest.fixture
def file(programs: Workers, tmp_path: Path) -> Iterator[Outside]:
    del programs
    with Outside(f"sqlite:///{tmp_path / 'data' / 'backburner.sqlite3'}") as outside:
        yield outside


def hand_out(outside: Outside) -> tuple[Conversation, list[ConversationId]]:
    """Have a parent that waits for fifty jobs."""
    chat = outside.chat()
    prompts = [
        script.write(
            Sleep(0.3), End({"complete": True, "message": f"Number {n} is done.", "result": n})
        )
        for n in range(MANY)
    ]
    ids = outside.jobs(chat, *prompts)
    wait = Call("background_block", {"task_ids": list(ids), "timeout": 600})
    outside.say(chat, wait, Say("All of them."))
    return chat, ids


def assert_each_told_once(outside: Outside, chat: Conversation, ids: list[ConversationId]) -> None:
    told = [text for text in outside.said(chat) if text.startswith("The job ")]
    assert len(told) == MANY
    assert all(sum(f"Number {n} is done." in text for text in told) == 1 for n in range(MANY))
    ended = "SELECT count(*) FROM conversations WHERE kind = 'job' AND ended_as = 'completed'"
    assert outside.rows(ended) == [(MANY,)]
    served = outside.rows(
        "SELECT count(*), count(DISTINCT content), count(served_by) FROM inbox"
        " WHERE kind = 'job_result'"
    )
    assert served == [(MANY, MANY, MANY)]
    assert outside.rows("SELECT count(*) FROM waits") == [(0,)]
    assert outside.said(chat)[-1] in ("All of them.", "That was all.")
    assert len(ids) == MANY


@requirement("C-events", "C-block")
def test_fifty_jobs_are_told_once_each_though_their_worker_is_killed(
    outside: Outside, workers: Workers
) -> None:
    chat, ids = hand_out(outside)
    dies = workers.start()
    outside.wait_for(lambda: len(outside.said(chat)) >= SOME)

    dies.kill()
    assert len(outside.said(chat)) < MANY
    workers.start()

    assert_sound(outside, workers)
    assert_each_told_once(outside, chat, ids)
    waited = "SELECT count(*) FROM runs WHERE kind = 'reply' AND status = 'success'"
    assert outside.rows(waited)[0][0] >= 1


@requirement("C-events", "C-block", "C-persist")
def test_fifty_jobs_are_told_once_each_though_the_program_is_killed_and_started_again(
    file: Outside, programs: Workers
) -> None:
    chat, ids = hand_out(file)
    dies = programs.start()
    file.wait_for(lambda: len(file.said(chat)) >= SOME)

    dies.kill()
    assert len(file.said(chat)) < MANY
    programs.start()

    assert_sound(file, programs)
    assert_each_told_once(file, chat, ids)
