"""Four tasks on somebody's own machine: CI, a deploy, a pull request that was found, and tests on a
push.

The program, Claude Code, git and pytest are real; `gh` and `kubectl` need their own sign-in file,
and the service that they ask needs the token in it.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.model_api import CallTool, GiveOutcome, ModelApi, ModelRequest, Reply, Say
from support.programs.one_account import OneAccount
from support.programs.programs import starter
from support.programs.repository import Repository
from support.programs.signed_in import SignedInOwner
from support.requirements import requirement
from support.servers.model_threads import model_in_thread, newest
from support.servers.signed_in_service import SignedInService, serving_signed_in

from backburner.core.conversation import Conversation, EndedAs
from backburner.core.question import Purpose, Question
from backburner.core.tool_policy import ALWAYS_HERE

EXITED, FAILED = "[Exit code", "<tool_use_error>"
CI = ("run", "list", "--repo", "ada/app", "--branch", "main")
DEPLOY = ("rollout", "status", "deployment/app", "-n", "staging", "--timeout=10s")
PULL_REQUEST = ("pr", "view", "7", "--repo", "ada/app")
LOG = "git log --oneline -1 main"
CHECK_OUT = "rm -rf checkout && mkdir checkout && git archive main | tar -x -C checkout"
TESTS = f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable} -m pytest -q"
Work = Callable[[ModelRequest, str], Reply]


@dataclass(frozen=True)
class Machine:
    """A machine whose owner has signed in, and has added two folders."""

    account: OneAccount
    owner: SignedInOwner
    repository: Repository
    service: SignedInService
    model: ModelApi

    def ask_for(self, task: dict[str, Any], work: Work, *, folder: str) -> Conversation:
        """Ask for a task in a chat about a folder, with an agent that does its work."""

        def answer(heard: ModelRequest) -> Reply:
            last = newest(heard)
            if heard.wants_outcome:
                return work(heard, last)
            return [Say(last)] if "It is active." in last else [CallTool("task_add", task)]

        self.model.otherwise = answer
        said = self.account.call("say", "--folder", folder, task["description"])
        assert "It is active." in "\n".join(said.out)
        return self.account.find(task["name"])

    def allow_for_good(self, task: Conversation, asked: str) -> None:
        """Answer the only question of a task with "always here"."""
        question = self.question(task)
        assert question.purpose is Purpose.APPROVAL
        assert question.prompt == f"May I do this?\nrun_signed_in:\n    {asked}"
        assert ALWAYS_HERE in question.options
        assert self.service.count(asked.splitlines()[0]) == 0
        self.account.call("answer", question.id, ALWAYS_HERE, "--yes")

    def question(self, task: Conversation) -> Question:
        return self.account.looks.question(task)

    def wait_for_end(self, task: Conversation) -> Conversation:
        looks = self.account.looks
        looks.wait_for(lambda: looks.load(task).ended_as)
        return looks.load(task)

    def questions(self, task: Conversation) -> list[str]:
        query = "SELECT purpose FROM questions WHERE conversation_id = :task"
        return [row[0] for row in self.account.looks.rows(query, task=task.id)]

    def notices(self, task: Conversation, kind: str = "result") -> list[str]:
        query = (
            "SELECT text FROM notices WHERE conversation_id = :task AND kind = :kind"
            " ORDER BY number"
        )
        return [row[0] for row in self.account.looks.rows(query, task=task.id, kind=kind)]

    def results(self, text: str) -> int:
        """Count the results of calls that reached the model with a text."""
        last = (newest(heard) for heard in self.model.requests)
        return sum(text in told and EXITED in told for told in last)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    root = tmp_path_factory.mktemp("machine")
    owner = SignedInOwner(root)
    repository = Repository(owner.home / "code")
    with model_in_thread() as model, serving_signed_in(owner) as service, starter() as start:
        account = OneAccount(
            start,
            root / "data",
            model.address,
            env={"HOME": str(owner.home), "PATH": f"{owner.programs}:{os.environ['PATH']}"},
            # The interpreter of the tests, wherever it is.
            readable=[sys.prefix, sys.base_prefix],
            idle_threshold="1s",
            discovery_interval="1s",
            allowance_day="none",
        )
        with account.looks:
            for folder in (repository.app, repository.remote):
                account.call("folders", "add", str(folder))
            yield Machine(account, owner, repository, service, model)
            assert model.complaints == []
            # No agent has seen a token.
            assert not model.holds(owner.token)


def watch(program: str, arguments: tuple[str, ...], broken: str, news: str) -> Work:
    """Be an agent that looks with a program, and reports one thing."""
    call = CallTool("run_signed_in", {"program": program, "arguments": [*arguments]})

    def work(heard: ModelRequest, last: str) -> Reply:
        del heard
        if FAILED in last:
            return [GiveOutcome({"complete": True, "message": last})]
        if EXITED not in last:
            return [call]
        if broken in last:
            return [GiveOutcome({"complete": True, "message": news, "result": broken})]
        return [GiveOutcome({"complete": True, "result": "same"})]

    return work


@pytest.mark.parametrize("program", ["gh", "kubectl"])
def test_the_programs_fail_without_their_sign_in(
    machine: Machine, tmp_path: Path, program: str
) -> None:
    variables = {"GH_CONFIG_DIR": str(tmp_path), "KUBECONFIG": str(tmp_path / "config")}
    line = [str(machine.owner.programs / program), "run", "list"]
    failed = subprocess.run(line, env=variables, capture_output=True, check=False)
    assert failed.returncode != 0
    assert machine.service.answer([program, "run"], None)[0] == 401


@requirement("B-folder", "B-signed-in", "B-command", "B-notify", "B-quiet")
@pytest.mark.parametrize(
    ("program", "arguments", "answers", "news", "sign_in"),
    [
        (
            "gh",
            CI,
            ["1 completed success", "2 completed success", "3 completed failure"],
            "The build of main failed.",
            "octocat at github.com",
        ),
        (
            "kubectl",
            DEPLOY,
            ["1 of 2 updated", "successfully rolled out"],
            "Staging is rolled out.",
            "developer, context kind-one",
        ),
    ],
    ids=["CI", "a deploy"],
)
def test_a_watch_runs_unattended_after_one_always_here(
    machine: Machine,
    program: str,
    arguments: tuple[str, ...],
    answers: list[str],
    news: str,
    sign_in: str,
) -> None:
    line = " ".join((program, *arguments))
    machine.service.say(line, *answers)
    wanted = {
        "name": f"watch-{program}",
        "description": f"Watch {line} and tell me what happens.",
        "prompt": f"Run `{line}`, and report what is new.",
        "interval": "1s",
        "max_runs": len(answers),
    }
    task = machine.ask_for(wanted, watch(program, arguments, answers[-1], news), folder="app")

    machine.allow_for_good(task, f"{line}\nUse your {program} sign-in ({sign_in}) here?")
    ended = machine.wait_for_end(task)

    assert (ended.ended_as, ended.run_count) == (EndedAs.COMPLETED, len(answers))
    assert machine.service.count(line) == len(answers)
    # What the program printed in each run is what the model was told next.
    assert [machine.results(answer) for answer in answers] == [1] * len(answers)
    assert machine.questions(task) == ["approval"]
    assert machine.notices(task) == [news]


class PushTester:
    """An agent that runs the tests when there is a new commit."""

    def __init__(self) -> None:
        self._head = ""
        self.tested: list[str] = []

    def __call__(self, heard: ModelRequest, last: str) -> Reply:
        del heard
        if EXITED not in last:
            return self._run(LOG)
        if ran := re.search(r"^(\d+ (?:passed|failed).*) in [\d.]+s", last, re.MULTILINE):
            self.tested.append(self._head)
            report = f"{self._head}: {ran[1]}"
            return [GiveOutcome({"complete": True, "message": report, "result": report})]
        (self._head,) = re.findall(r"^([0-9a-f]{7,}) ", last, re.MULTILINE)
        if self._head in self.tested:
            return [GiveOutcome({"complete": True, "result": "unchanged"})]
        return self._run(f"{CHECK_OUT} && cd checkout && {TESTS}")

    def _run(self, command: str) -> Reply:
        return [CallTool("run_command", {"command": command})]


@requirement("B-folder", "B-command", "B-notify")
def test_tests_run_on_a_push_without_any_question(machine: Machine) -> None:
    repository, looks = machine.repository, machine.account.looks
    wanted = {
        "name": "test-on-push",
        "description": "Run the tests when I push.",
        "prompt": "If there is a new commit, run the tests and report the results.",
        "interval": "1s",
    }
    agent = PushTester()
    task = machine.ask_for(wanted, agent, folder="remote.git")
    looks.wait_for(lambda: machine.notices(task))

    repository.write_test("broken", "1 + 1 == 3")
    second = repository.push("Break a test")
    looks.wait_for(lambda: len(machine.notices(task)) > 1)
    machine.account.call("tasks", "cancel", task.id)

    assert machine.notices(task) == [
        f"{repository.first}: 1 passed",
        f"{second}: 1 failed, 1 passed",
    ]
    assert agent.tested == [repository.first, second]
    assert machine.questions(task) == []
    # The tests themselves have said so.
    assert machine.results("assert (1 + 1) == 3") == 1
    assert (repository.remote / "checkout" / "test_broken.py").exists()


@requirement("B-discovery-context", "B-propose", "B-signed-in")
def test_a_pull_request_is_found_proposed_and_watched_after_a_yes(machine: Machine) -> None:
    account, service = machine.account, machine.service
    line = " ".join(("gh", *PULL_REQUEST))
    service.say("gh run list --repo ada/app --limit", "completed success")
    service.say("gh pr list", "7 Mend the sign-in OPEN")
    service.say(line, "waits for review", "merged")
    proposed = {
        "name": "watch-sign-in",
        "prompt": f"Run `{line}`, and report when it is merged.",
        "interval": "1s",
        "max_runs": 2,
        "why": "It is open.",
    }
    watches = watch("gh", PULL_REQUEST, "merged", "It is merged.")

    def answer(heard: ModelRequest) -> Reply:
        last = newest(heard)
        if not heard.wants_outcome:
            return [Say("All right.")]
        if "7 Mend the sign-in OPEN" in last and "Add a test" in last:
            return [CallTool("task_propose", proposed)]
        if "watch-sign-in" in last and "proposed" in last:
            return [GiveOutcome({"complete": True})]
        return watches(heard, last)

    machine.model.otherwise = answer
    account.call("say", "--folder", "app", "Back in a moment.")
    account.call("discovery", "on", "--folder", "app", "--repository", "ada/app", "--yes")
    task = account.find("watch-sign-in")
    account.call("discovery", "off")

    assert machine.question(task).purpose is Purpose.PROPOSAL
    assert service.count(line) == 0
    account.call("approve", "watch-sign-in")
    machine.allow_for_good(task, f"{line}\nUse your gh sign-in (octocat at github.com) here?")
    ended = machine.wait_for_end(task)

    assert (ended.ended_as, ended.run_count) == (EndedAs.COMPLETED, 2)
    assert service.count(line) == 2
    assert machine.notices(task) == ["It is merged."]
    assert machine.questions(task) == ["proposal", "approval"]
