"""`backburner tasks`, `approve` and `reject`, with a real server and the demo agent."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from support.programs.cli_server import Call, Running, wait_for
from support.requirements import requirement

from backburner.cli.commands.tasks import describe_status
from backburner.core import transitions
from backburner.core.ids import ConversationId, UserId, new_conversation_id
from backburner.core.schedule import Cron
from backburner.core.transitions import Brief
from backburner.store.tx import Tx

#: A schedule that is not due while a test runs.
LATER = ("--when", "every monday at 3:33")
MONDAYS = Cron("33 3 * * 1", "UTC")


def propose(tx: Tx, user: UserId, name: str) -> ConversationId:
    conversation_id = new_conversation_id()
    brief = Brief(title=name, prompt=f"Do {name}.", schedule=MONDAYS)
    step = transitions.propose(conversation_id, user, brief, why="It helps.", now=tx.now)
    tx.conversations.add(step)
    return conversation_id


def test_a_task_is_created_and_shown(ask: Callable[..., Any], talk: Call) -> None:
    options = ("--max-runs", "3", "--tool", "look", "--notify", "always", "--description", "Us.")
    failing = ("--on-repeated-failure", "notify")
    made = talk("tasks", "add", "shown", "Look at CI.", *LATER, *options, *failing)
    listed, shown = talk("tasks", "--status", "active"), talk("tasks", "show", "shown")
    found = ask("tasks", "show", "SHOWN")

    assert made.out[0].startswith("Created: shown, at 03:33 on Monday (UTC), next run at ")
    assert listed.out[0].split() == ["ID", "STATUS", "RUNS", "NEXT", "RUN", "NAME", "SCHEDULE"]
    assert any(line.startswith(found["id"][:12]) and " shown " in line for line in listed.out)
    facts = dict(line.split(maxsplit=1) for line in shown.out)
    assert (facts["prompt"], facts["runs"], facts["tools"]) == ("Look at CI.", "0 of 3", "look")
    assert found["on_repeated_failure"] == "notify"
    assert found["id"] in {one["id"] for one in ask("tasks")}
    assert found["id"] in {one["id"] for one in ask("tasks", "--status", "active")}


def test_the_timeout_of_a_task_is_set_and_changed(ask: Callable[..., Any], talk: Call) -> None:
    options = ("--timeout", "20m", "--agent", "coder")
    made = ask("tasks", "add", "lasting", "Look at CI.", *LATER, *options)
    changed = talk("tasks", "edit", "lasting", "--timeout", "3h")
    shown = talk("tasks", "show", "lasting")
    nothing = talk("tasks", "edit", "lasting")

    assert (made["timeout"], made["agent"]) == (1200, "coder")
    assert "run_command" in made["tools"]
    assert changed.out[0].startswith("Changed: lasting, at 03:33 on Monday (UTC)")
    assert any(line.split() == ["timeout", "3", "hours"] for line in shown.out)
    assert (nothing.code, nothing.out) == (2, [])


def test_a_task_is_paused_resumed_run_and_cancelled(ask: Callable[..., Any], talk: Call) -> None:
    which = ask("tasks", "add", "steered", "tell me to stretch", *LATER)["id"]
    paused, resumed = talk("tasks", "pause", "steered"), talk("tasks", "resume", which[:12])
    ran = talk("tasks", "run-now", which[2:12])
    wait_for(lambda: [one for one in ask("tasks", "history", which) if one["status"] == "success"])
    listed = talk("tasks", "history", "steered")
    shown = dict(re.split(r"  +", line, maxsplit=1) for line in talk("tasks", "show", which).out)
    runs = talk("runs", which)
    cancelled = talk("tasks", "cancel", "steered", "--reason", "Enough.")
    ended = [line.split()[0] for line in talk("conversations", which).out if line.strip()]

    assert paused.out == ["Paused: steered."]
    assert resumed.out == ["Resumed: steered."]
    assert ran.out == ["Running now: steered."]
    assert listed.out[0].split() == ["STARTED", "STATUS", "TOKENS", "RESULT"]
    assert " success " in listed.out[1]
    assert cancelled.out == ["Cancelled: steered."]
    # What the run said, and not the data that the next one compares.
    assert listed.out[1].endswith(" Time to stretch.")
    assert shown["last result"] == "Time to stretch."
    assert runs.out[1].endswith(" Time to stretch.")
    assert "step" not in ended
    assert ask("tasks", "show", which)["status"] == "done"
    messages = ask("conversations", which)["messages"]
    assert messages[-1]["content"] == "It was cancelled: Enough."


def test_a_task_is_previewed_and_test_run(ask: Callable[..., Any], talk: Call) -> None:
    which = ask("tasks", "add", "tried", "tell me to stretch", *LATER)["id"]
    seen = talk("tasks", "preview", "tried")
    tried = talk("tasks", "test-run", "tried")

    def results() -> Any:
        return [
            one
            for one in ask("conversations", which)["messages"]
            if one["content"].startswith("Test run of tried: ")
        ]

    wait_for(results)
    assert any(line.startswith("next runs") and line.count("Mon ") == 5 for line in seen.out)
    assert any(line.startswith("per month") for line in seen.out)
    assert which in tried.out[0]
    assert ask("tasks", "show", which)["run_count"] == 0


@requirement("B-approve-cli")
def test_a_proposal_is_approved_or_rejected_by_id_or_name(
    ask: Callable[..., Any], talk: Call, running: Running
) -> None:
    good, bad = running.transact(
        lambda tx: [propose(tx, running.user, name) for name in ("good", "bad")]
    )
    listed = talk("tasks", "--status", "proposed")
    approved, rejected = talk("approve", good[:20]), talk("reject", "bad")
    again = talk("approve", good)

    assert {line.split()[1] for line in listed.out[1:]} == {"proposed"}
    assert approved.out[0].startswith("Approved: good, at 03:33 on Monday (UTC), next run at ")
    assert rejected.out == ["Rejected: bad."]
    assert again.code == 4
    assert ask("tasks", "show", good)["status"] == "active"
    assert talk("tasks", "show", bad).code == 3
    assert ask("tasks", "--status", "proposed") == []


def test_an_unknown_ambiguous_or_unscheduled_task_is_one_line(
    ask: Callable[..., Any], talk: Call
) -> None:
    for _ in range(2):
        ask("tasks", "add", "twin", "Look.", *LATER)
        ask("tasks", "pause", "twin")
        talk("tasks", "cancel", "twin")
    unknown, both = talk("tasks", "show", "nothing"), talk("tasks", "history", "twin")
    ask("tasks", "add", "twin", "Look.", *LATER)
    untimed = talk("tasks", "add", "never", "Look.")

    assert (unknown.code, len(unknown.err)) == (3, 1)
    assert both.code == 2
    assert both.err[0].startswith("2 tasks are named twin: c_")
    assert untimed.code == 2
    assert untimed.err[0] == (
        "The schedule is missing. Pass one of --when, --interval, --after and --once."
    )
    # Of several with one name, the one that is not done is meant.
    assert ask("tasks", "show", "twin")["status"] == "active"


def test_a_name_that_looks_the_same_is_refused(talk: Call) -> None:
    first = talk("tasks", "add", "Caf\N{LATIN SMALL LETTER E WITH ACUTE}", "Look.", *LATER)
    again = talk("tasks", "add", "cafe\N{COMBINING ACUTE ACCENT}", "Look.", *LATER)

    assert (first.code, again.code) == (0, 4)
    assert again.err[0].startswith("There is already a task named")


@requirement("B-chaining")
def test_a_task_is_created_to_run_after_another(ask: Callable[..., Any]) -> None:
    first = ask("tasks", "add", "before", "Look.", *LATER)
    then = ask("tasks", "add", "behind", "Look.", "--after", "before", "--on", "any")
    once = ask("tasks", "add", "at-once", "tell me to stretch", "--once")

    assert (then["after"], then["schedule"]["on"]) == (first["id"], "any")
    assert once["kind"] == "oneshot"


@pytest.mark.parametrize(
    ("status", "reason", "shown"),
    [
        ("paused", "user", "paused"),
        ("paused", "failures", "paused (failures)"),
        ("paused", "connection_removed", "paused (connection removed)"),
        ("done", None, "done"),
    ],
)
def test_a_paused_task_is_listed_with_the_reason(
    status: str, reason: str | None, shown: str
) -> None:
    assert describe_status({"status": status, "pause_reason": reason, "needs_you": False}) == shown


def test_times_that_are_seconds_apart_are_told_apart(ask: Callable[..., Any], talk: Call) -> None:
    ask("pause", "--everything")
    ask("tasks", "add", "often", "Look.", "--interval", "5s")
    shown = [line for line in talk("tasks", "show", "often").out if line.startswith("next runs")]
    ask("tasks", "edit", "often", "--when", "every day at 9")
    daily = [line for line in talk("tasks", "show", "often").out if line.startswith("next runs")]

    times = shown[0].removeprefix("next runs").split(",")
    assert len({time.strip() for time in times}) == 3
    assert [line.count(":00") for line in daily] == [3]
