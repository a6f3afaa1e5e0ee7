"""Command lines of several programs: shown step by step, and granted as they are."""

from collections.abc import Callable

import pytest
from support.doubles.engine import Call
from support.requirements import requirement
from support.stage.stage import Stage

from backburner.core.question import NO, YES
from backburner.core.shown_call import UNREADABLE_LINE
from backburner.core.tool_policy import ALWAYS_HERE
from backburner.process.line_reader import read_line


@pytest.fixture
def stage(set_up: Callable[..., Stage]) -> Stage:
    return set_up(read_line=read_line)


def command(line: str) -> Call:
    return Call("command", {"command": line, "network": True})


async def test_a_question_shows_a_line_whole_and_step_by_step(stage: Stage) -> None:
    stage.engine.then(command("cd repo && npm publish"))
    task = await stage.task()
    await stage.work()

    assert stage.question(task).options == (YES, NO)
    assert stage.question(task).prompt.splitlines() == [
        "May I do this?",
        "command with network:",
        "    cd repo && npm publish",
        "Step by step:",
        "    1. Go to the folder with `cd repo`.",
        "    2. If the last step that ran succeeded: run `npm publish`.",
    ]


async def test_a_question_about_a_line_that_cannot_be_read_says_so(stage: Stage) -> None:
    stage.engine.then(command("curl $(cat address)"))
    task = await stage.task()
    await stage.work()

    assert stage.question(task).options == (YES, NO)
    assert stage.question(task).prompt.endswith(f"    curl $(cat address)\n{UNREADABLE_LINE}")


@requirement("Z-grants")
async def test_always_here_allows_a_line_of_several_programs_and_no_other(stage: Stage) -> None:
    line = "gh run list | head -5 && git fetch"
    stage.engine.then(command(line))
    task = await stage.task()
    await stage.work()
    assert stage.question(task).options == (YES, ALWAYS_HERE, NO)
    stage.engine.then(command(line), command(line), command(f"{line} origin"))
    await stage.answer(task, ALWAYS_HERE)
    await stage.work()

    assert stage.tools.calls == [("command", {"command": line, "network": True})] * 2
    (bound,) = stage.question(task).binds_to["calls"]
    assert bound["arguments"]["command"] == f"{line} origin"
