"""The whole program on a SQLite file: killed, and started again."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.doubles.engine import Call, End, Say, Spend
from support.faults.halting import Point
from support.faults.outside import Outside
from support.programs.programs import Start
from support.programs.workers import Workers, assert_sound
from support.requirements import requirement
from support.stage.make import USER


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


@requirement("B-persist")
@pytest.mark.parametrize("point", [Point.BEFORE_COMMIT, Point.IN_WORDS])
def test_what_a_killed_program_left_is_finished_when_it_is_started_again(
    file: Outside, programs: Workers, point: Point
) -> None:
    done = End({"complete": True, "message": "It is done."})
    task = file.task(Spend(10), Say("Well."), Call("send", {"text": "letter"}), done)
    chat = file.chat()
    file.say(chat, Say("Good "), Spend(3), Say("morning."))
    dies = programs.start(halt_at=point)
    # Both: a call that a kill cuts off would be asked about.
    for _ in (task, chat):
        dies.wait_until_halted(point)
    dies.kill()
    assert file.rows("SELECT 1 FROM runs WHERE status = 'running'")

    programs.start()

    assert_sound(file, programs)
    assert file.said(task) == ["It is done."]
    assert file.said(chat) == ["Good morning."]
    assert programs.sent() == ["letter"]
    assert programs.delivered() == ["It is done."]


@requirement("B-command")
def test_what_a_command_changed_before_the_program_was_killed_is_shown_and_left_as_it_is(
    file: Outside, programs: Workers, tmp_path: Path
) -> None:
    changed = tmp_path / "data" / "workspaces" / USER / ".envrc"
    line = "test -e .envrc && exit; echo 'export A=1' >.envrc; sleep 600"
    done = End({"complete": True, "message": "It is done."})
    task = file.task(Call("run_command", {"command": line}), done)
    dies = programs.start()
    file.wait_for(lambda: changed.exists() and changed.read_text())
    dies.kill()

    programs.start("--poll-interval", "100ms")

    file.wait_for(lambda: file.said(task))
    question = file.question(task)
    assert question.prompt.startswith("This command was interrupted")
    assert line in question.prompt
    assert question.prompt.endswith("Created: the file .envrc:\n    @@ -0,0 +1 @@\n    +export A=1")
    assert changed.read_text() == "export A=1\n"
    # Nor is anybody asked whether the command was run.
    assert file.rows("SELECT purpose FROM questions") == [("approval",)]
    assert file.said(task) == ["It is done."]
