"""Tasks that people ask for in a chat, from there to their end, with programs that they run.

The programs are stand-ins that print what a file beside them says.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.faults.outside import Outside
from support.model_api import CallTool, GiveOutcome, ModelApi, ModelRequest, Reply, Say
from support.programs.real_workers import RealWorkers
from support.requirements import requirement
from support.servers.model_threads import newest

from backburner.core.conversation import Conversation, EndedAs, Kind, Status
from backburner.core.question import Purpose
from backburner.core.tool_policy import ALWAYS_HERE
from backburner.core.work.views import TaskStatus, task_status

GH = "gh run list --branch main --limit 5"
KUBECTL = "kubectl rollout status deployment/app -n staging --timeout=10s"
GIT, BUN = "git log --oneline -1 feature/auth", "bun test"
WATCH_CI = {
    "name": "watch-ci-main",
    "description": "Monitor CI pipeline for main branch",
    "prompt": f"Check the CI status for the main branch. Run `{GH}` and look at the status. If any"
    " runs failed since the last check, report which ones and what failed. If all passing, report"
    " nothing.",
    "kind": "scheduled",
    "interval": "1s",
    "notify": "on_change",
}
WATCH_DEPLOY = {
    "name": "watch-deploy-staging",
    "description": "Watch staging deploy progress",
    "prompt": f"Check if the staging deploy is still in progress. Run `{KUBECTL}`. If the rollout"
    " is complete, report success. If it failed, report the error. If still in progress, report"
    " nothing.",
    "kind": "scheduled",
    "interval": "1s",
    "notify": "on_change",
    "max_runs": 3,
}
TEST_ON_PUSH = {
    "name": "test-on-push",
    "description": "Run test suite when feature branch changes",
    "prompt": "Check `git log --oneline -1` for the feature/auth branch. If the HEAD commit changed"
    " since last check, run `bun test` and report results. If unchanged, do nothing.",
    "kind": "scheduled",
    "interval": "1s",
    "notify": "on_change",
}
Background = Callable[[ModelRequest, str], Reply]


class Programs:
    """Programs on the path of commands, each of which prints what it is told to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def say(self, name: str, output: str) -> None:
        program = self.folder / name
        if not program.exists():
            program.write_text('#!/bin/sh\nexec cat "$0.txt"\n')
            program.chmod(0o755)
        written = self.folder / f"{name}.new"
        written.write_text(output)
        written.rename(self.folder / f"{name}.txt")


@pytest.fixture
def programs(tmp_path: Path, workers: RealWorkers) -> Programs:
    programs = Programs(tmp_path / "bin")
    workers.settings |= {"readable": [str(programs.folder)], "command_env": ["PATH"]}
    return programs


def start(workers: RealWorkers, programs: Programs) -> None:
    workers.workspace()
    workers.start(env={"PATH": f"{programs.folder}:{os.environ['PATH']}"})


def agent(task: dict[str, Any], work: Background) -> Callable[[ModelRequest], Reply]:
    """Be an agent that sets up a task in a chat, and does its work in the background."""

    def answer(heard: ModelRequest) -> Reply:
        last = newest(heard)
        if heard.wants_outcome:
            return work(heard, last)
        return [Say(last)] if "It is active." in last else [CallTool("task_add", task)]

    return answer


def run(command: str, *, network: bool = False) -> Reply:
    return [CallTool("run_command", {"command": command, "network": network})]


def complete(**outcome: Any) -> Reply:
    return [GiveOutcome({"complete": True, **outcome})]


def look_at_ci(heard: ModelRequest, last: str) -> Reply:
    del heard
    if "[Exit code 0.]" not in last:
        return run(GH, network=True)
    if "failure" in last:
        return complete(message="The build of main failed.", result="failure")
    return complete(result="passing")


def look_at_deploy(heard: ModelRequest, last: str) -> Reply:
    del heard
    if "[Exit code 0.]" not in last:
        return run(KUBECTL, network=True)
    if "successfully" in last:
        return complete(message="Staging is rolled out.", result="done", final=True)
    return complete(result="in progress")


def run_tests(heard: ModelRequest, last: str) -> Reply:
    commits = re.findall(r"abc\d(?= Add)", heard.raw.decode())
    if "47 pass" in last:
        head = {"head": commits[-1]}
        return complete(message="All 47 tests pass.", result=head, state_update=head)
    if "[Exit code 0.]" in last:
        known = re.findall(r'"head\W+(abc\d)', heard.raw.decode())
        return complete(result={"head": commits[-1]}) if commits[-1] in known else run(BUN)
    return run(GIT)


def ask_for(outside: Outside, words: str) -> tuple[Conversation, Conversation, str]:
    """Ask for something in a chat, and give the task that comes of it and what was said."""
    chat = outside.chat()
    outside.tell(chat, words)
    (told,) = outside.wait_for(lambda: outside.said(chat))
    ((which,),) = outside.rows("SELECT id FROM conversations WHERE kind = 'task'")
    user = chat.user_id
    return chat, outside.database.run(lambda tx: tx.conversations.load(user, which)), told


def consent(outside: Outside, task: Conversation, command: str) -> None:
    question = outside.question(task)
    assert question.purpose is Purpose.APPROVAL
    assert command in question.prompt
    outside.answer(task, question, ALWAYS_HERE)


def results(outside: Outside) -> list[str]:
    return [
        row[0]
        for row in outside.rows("SELECT text FROM notices WHERE kind = 'result' ORDER BY number")
    ]


def wait_for_runs(outside: Outside, task: Conversation, more: int) -> None:
    before = outside.load(task).run_count
    outside.wait_for(lambda: outside.load(task).run_count >= before + more)


@requirement("B-tools", "B-command", "B-notify", "B-quiet")
def test_ci_is_watched_and_only_what_changed_is_told(
    workers: RealWorkers, model: ModelApi, outside: Outside, programs: Programs
) -> None:
    model.otherwise = agent(WATCH_CI, look_at_ci)
    programs.say("gh", "completed  success  Build  main\n")
    start(workers, programs)

    chat, task, told = ask_for(
        outside, "Watch CI for the main branch and let me know if anything breaks"
    )
    assert (task.kind, task.parent_id, task.title) == (Kind.TASK, chat.id, "watch-ci-main")
    assert told.startswith(f"Task 'watch-ci-main' ({task.id}), every second. Next: ")
    consent(outside, task, GH)
    wait_for_runs(outside, task, 2)
    assert results(outside) == []
    (answered,) = outside.said(task)
    assert answered.endswith("Answer: always here")

    programs.say("gh", "completed  failure  Build  main\n")
    outside.wait_for(lambda: results(outside))
    wait_for_runs(outside, task, 1)

    assert results(outside) == ["The build of main failed."]
    # The build failed in every run since then, which is told once.
    lines = [line for line in outside.said(chat) if line.startswith("watch-ci-main: ")]
    assert lines == ["watch-ci-main: The build of main failed."]
    calls = outside.rows("SELECT tool, state, failed FROM tool_calls WHERE tool = 'run_command'")
    assert set(calls) == {("run_command", "done", False)}
    ((count,),) = outside.rows("SELECT count(*) FROM questions WHERE purpose = 'approval'")
    assert count == 1


@requirement("B-tools", "B-command", "B-max-runs")
@pytest.mark.parametrize("finishes", [True, False], ids=["it finishes", "it takes too long"])
def test_a_deploy_is_watched_until_it_is_done_or_was_looked_at_often_enough(
    workers: RealWorkers, model: ModelApi, outside: Outside, programs: Programs, *, finishes: bool
) -> None:
    model.otherwise = agent(WATCH_DEPLOY, look_at_deploy)
    programs.say("kubectl", "Waiting for deployment rollout to finish\n")
    start(workers, programs)

    chat, task, told = ask_for(outside, "I have started a deploy: let me know when it's done.")
    assert "It ends after 3 runs." in told
    if finishes:
        programs.say("kubectl", 'deployment "app" successfully rolled out\n')
    consent(outside, task, KUBECTL)
    outside.wait_for(lambda: outside.load(task).ended_as)

    done = outside.load(task)
    assert (done.ended_as, done.status, done.run_count) == (
        EndedAs.COMPLETED,
        Status.ACTIVE,
        1 if finishes else 3,
    )
    assert task_status(done) is TaskStatus.DONE
    assert results(outside) == (["Staging is rolled out."] if finishes else [])
    ended = outside.rows("SELECT text FROM notices WHERE kind = 'stopped'")
    limit = "It reached its limit of 3 runs. The last one had nothing new to report."
    assert ended == ([] if finishes else [(limit,)])
    said = "Staging is rolled out." if finishes else limit
    assert outside.said(chat)[-1] == f"watch-deploy-staging: {said}"


@requirement("B-tools", "B-command", "B-notify")
def test_tests_are_run_when_there_is_a_new_commit(
    workers: RealWorkers, model: ModelApi, outside: Outside, programs: Programs
) -> None:
    model.otherwise = agent(TEST_ON_PUSH, run_tests)
    programs.say("git", "abc1 Add sign-in\n")
    programs.say("bun", "47 pass\n")
    start(workers, programs)

    chat, task, _ = ask_for(outside, "Run tests on this branch when I push")
    outside.wait_for(lambda: results(outside))
    wait_for_runs(outside, task, 1)
    assert outside.load(task).state.data == {"head": "abc1"}
    assert (runs_of(outside, BUN), len(results(outside))) == (1, 1)

    programs.say("git", "abc2 Add sign-out\n")
    outside.wait_for(lambda: outside.load(task).state.data == {"head": "abc2"})

    assert results(outside) == ["All 47 tests pass."] * 2
    assert runs_of(outside, BUN) == 2
    assert runs_of(outside, GIT) >= 3
    assert outside.said(chat)[-1] == "test-on-push: All 47 tests pass."
    # Neither program needs the network.
    assert outside.rows("SELECT id FROM questions") == []


def runs_of(outside: Outside, command: str) -> int:
    query = (
        "SELECT count(*) FROM tool_calls"
        " WHERE tool = 'run_command' AND state = 'done' AND arguments LIKE :like"
    )
    ((count,),) = outside.rows(query, like=f"%{command}%")
    return int(count)
