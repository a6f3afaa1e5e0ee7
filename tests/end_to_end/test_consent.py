"""A command is run once its owner has said yes: that one, once, whoever is there to run it."""

from typing import Any

from support.faults.outside import Outside
from support.model_api import CallTool, GiveOutcome, ModelApi, ModelRequest, Reply
from support.programs.real_workers import RealWorkers
from support.requirements import requirement
from support.servers.model_threads import newest

from backburner.core.conversation import Status
from backburner.core.question import YES, Purpose

FIRST: dict[str, Any] = {"command": "echo first >>lines.txt; cat lines.txt", "network": True}
SECOND: dict[str, Any] = {"command": "echo second >>lines.txt; cat lines.txt", "network": True}


def write_lines(heard: ModelRequest) -> Reply:
    """Be an agent that wants to run a command, and then another one."""
    last = newest(heard)
    if "second\n[Exit code 0.]" in last:
        return [GiveOutcome({"complete": True, "message": "Both are written."})]
    if "first\n[Exit code 0.]" in last or SECOND["command"] in last:
        return [CallTool("run_command", SECOND)]
    return [CallTool("run_command", FIRST)]


@requirement("Z-approve", "B-command")
def test_a_command_is_run_once_after_a_yes_though_its_worker_was_killed(
    workers: RealWorkers, model: ModelApi, outside: Outside
) -> None:
    model.otherwise = write_lines
    lines = workers.workspace() / "lines.txt"
    first = workers.start()
    task = outside.task(prompt="Write two lines.", reports_to=(), may_send=False)

    question = outside.question(task)
    outside.wait_until_settled()
    first.process.kill()
    first.process.wait()

    assert (question.purpose, outside.load(task).status) == (
        Purpose.APPROVAL,
        Status.WAITING_INPUT,
    )
    assert FIRST["command"] in question.prompt
    assert not lines.exists()
    assert outside.rows("SELECT 1 FROM tool_calls") == []

    outside.answer(task, question, YES)
    workers.start()

    # The command that was agreed to is run; another one is asked for.
    again = outside.question(task)
    assert SECOND["command"] in again.prompt
    assert lines.read_text() == "first\n"

    outside.answer(task, again, YES)

    outside.wait_for(lambda: outside.load(task).ended_as)
    assert lines.read_text() == "first\nsecond\n"
    assert outside.said(task)[-1] == "Both are written."
    calls = "SELECT tool, state, grant_id IS NOT NULL FROM tool_calls ORDER BY started_at"
    assert outside.rows(calls) == [("run_command", "done", True)] * 2
    assert outside.rows("SELECT count(*) FROM grants WHERE ended_at IS NULL") == [(0,)]
