"""`backburner jobs`, with a real server and the demo agent."""

from collections.abc import Callable
from typing import Any

import pytest
from support.programs.cli_server import Call, wait_for
from support.requirements import requirement

from backburner.cli.commands.jobs import describe_status

#: The start of the demo's reply to anything it does not understand.
REPLY = "I am a demo without a language model"


@pytest.fixture
def jobs(talk: Call) -> Call:
    return lambda *arguments: talk("jobs", *arguments)


@pytest.fixture
def ask_jobs(ask: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments: ask("jobs", *arguments)


@pytest.mark.parametrize(
    ("facts", "shown"),
    [
        ({}, "running"),
        ({"paused": True}, "running (paused)"),
        ({"needs_you": True}, "running (needs you)"),
        # Whichever of them was asked, it is the same for both.
        ({"paused": True, "waits_for": "Reconnect mail."}, "running (waits for: reconnect mail)"),
        (
            {"needs_you": True, "waits_for": "Reconnect mail."},
            "running (waits for: reconnect mail)",
        ),
    ],
)
def test_a_job_is_listed_with_what_it_waits_for(facts: dict[str, Any], shown: str) -> None:
    job = {"status": "running", "paused": False, "needs_you": False, "waits_for": None}

    assert describe_status(job | facts) == shown


def test_a_job_is_started_awaited_shown_resumed_and_deleted(
    jobs: Call, ask_jobs: Callable[..., Any]
) -> None:
    started = ask_jobs("start", "Count", "the", "files.", "--name", "Count")
    prefix = started["id"][:20]
    (completed,) = ask_jobs("block", prefix)
    shown = jobs("show", prefix)
    resumed = jobs("resume", prefix, "And", "again.")
    awaited = jobs("block", prefix)
    listed = jobs("list", "--in", started["parent_id"])
    deleted = jobs("clear", prefix, "--yes")
    gone = jobs("show", prefix)

    assert (started["status"], started["prompt"]) == ("running", "Count the files.")
    assert REPLY in completed["result"]
    assert (started["progress"], completed["progress"]) == (None, None)
    assert shown.out[0].split() == ["id", started["id"]]
    assert any(REPLY in line for line in shown.out)
    assert resumed.out == ["Resumed: Count."]
    assert awaited.code == 0
    assert [line.split()[:2] for line in listed.out] == [
        ["ID", "STATUS"],
        [started["id"][:12], "completed"],
    ]
    assert deleted.out == [f"Deleted: {started['id'][:12]} Count."]
    assert gone.code == 3


def test_a_job_is_started_with_a_timeout(jobs: Call, ask_jobs: Callable[..., Any]) -> None:
    job = ask_jobs("start", "Count.", "--timeout", "2h")
    shown = jobs("show", job["id"])
    refused = jobs("start", "Count.", "--timeout", "2d")

    assert job["timeout"] == 7200
    assert "timeout       2 hours" in shown.out
    assert refused.code == 2
    assert "The timeout cannot be 48 hours. Use 10 seconds to 24 hours." in refused.err[0]


def test_agents_are_listed_and_a_job_is_started_with_one(
    jobs: Call, ask_jobs: Callable[..., Any], talk: Call
) -> None:
    listed = talk("agents")
    job = ask_jobs("start", "Count.", "--agent", "researcher")
    shown = jobs("show", job["id"])
    refused = jobs("start", "Count.", "--agent", "nobody")

    assert listed.out[0].split() == ["NAME", "PROFILE", "TOOLS", "INSTRUCTIONS"]
    assert [line.split()[0] for line in listed.out[1:]] == ["general", "researcher", "coder"]
    assert any(line.split() == ["agent", "researcher"] for line in shown.out)
    assert "There is no agent 'nobody'. Available: general, researcher, coder" in refused.err[0]


def test_a_batch_is_listed_cancelled_and_deleted_together(
    jobs: Call, ask_jobs: Callable[..., Any], talk: Call
) -> None:
    talk("pause", "--everything")
    for name in ("one", "two"):
        ask_jobs("start", "Count.", "--name", name, "--batch", "both")
    job_id = ask_jobs("list", "--batch", "both")[0]["id"]
    waited = jobs("block", job_id, "--timeout", "0")
    cancelled = jobs("cancel", "--batch", "both")
    again = jobs("cancel", job_id)
    talk("resume", "--everything")
    deleted = jobs("clear", "--batch", "both", "--yes")

    assert (waited.code, waited.err) == (1, [f"Not completed: {job_id[:12]} running."])
    assert sorted(line.split()[-1] for line in cancelled.out) == ["one.", "two."]
    assert again.code == 4
    assert len(deleted.out) == 2
    assert jobs("clear", "--batch", "both").out == ["No matching jobs."]
    assert jobs("list", "--batch", "both").out == ["No jobs."]


@requirement("C-batch")
def test_a_batch_is_awaited_as_a_whole(
    jobs: Call, ask_jobs: Callable[..., Any], talk: Call
) -> None:
    talk("pause", "--everything")
    for name in ("one", "two"):
        ask_jobs("start", "Count.", "--name", name, "--batch", "both")
    ask_jobs("start", "Count.", "--name", "other")
    late = jobs("block", "--batch", "both", "--timeout", "0")
    talk("resume", "--everything")
    awaited = ask_jobs("block", "--batch", "both")

    assert late.code == 1
    assert late.err[0].startswith("Not completed: c_")
    assert late.err[0].count(" running") == 2
    assert sorted(job["description"] for job in awaited) == ["one", "two"]
    assert {job["status"] for job in awaited} == {"completed"}
    assert jobs("block", "--batch", "none").out == ["No matching jobs."]
    assert jobs("block").code == 2
    assert jobs("block", awaited[0]["id"], "--batch", "both").code == 2


def test_without_a_command_jobs_are_listed(jobs: Call, ask_jobs: Callable[..., Any]) -> None:
    started = ask_jobs("start", "Count.", "--name", "Listed")
    jobs("block", started["id"])
    listed = jobs()

    assert listed.code == 0
    assert listed.out[0].split() == [
        "ID",
        "STATUS",
        "STARTED",
        "CALLS",
        "DESCRIPTION",
        "PROGRESS",
        "BATCH",
    ]
    assert started["id"] in {job["id"] for job in ask_jobs()}
    (line,) = [line for line in listed.out if line.startswith(started["id"][:12])]
    assert line.split()[1] == "completed"
    assert " Listed" in line


def test_arguments_that_select_no_jobs_are_refused(jobs: Call) -> None:
    assert jobs("cancel").code == 2
    assert jobs("clear").code == 2
    assert jobs("list", "--status", "odd").code == 2


def test_a_job_is_started_and_awaited_in_one_command(jobs: Call, talk: Call) -> None:
    waited = jobs("start", "Count.", "--name", "Waited", "--wait")
    talk("pause", "--everything")
    late = jobs("start", "Count.", "--name", "Late", "--wait", "--wait-timeout", "0")
    talk("resume", "--everything")

    assert waited.code == 0
    assert any(REPLY in line for line in waited.out)
    assert late.code == 1
    assert late.err[0].startswith("Not completed: c_")


def test_one_job_is_one_row_among_conversations(
    ask: Callable[..., Any], ask_jobs: Callable[..., Any]
) -> None:
    started = ask_jobs("start", "Count.", "--name", "Single", "--wait")
    (row,) = ask("conversations")
    by_kind = ask("conversations", "--kind", "job")

    assert row["id"] == started["parent_id"]
    assert [one["id"] for one in by_kind] == [started["id"]]


def test_jobs_are_shown_below_their_conversation(ask: Callable[..., Any], talk: Call) -> None:
    assert talk("jobs", "tree").out == ["No jobs."]
    chat_id = ask("say", "--no-wait", "hello")["conversation_id"]
    job = ask("jobs", "start", "--in", chat_id, "--name", "Count", "Count the files.")
    wait_for(lambda: ask("jobs", "show", job["id"])["status"] == "completed")

    heading, line = talk("jobs", "tree", chat_id).out

    assert heading.startswith(chat_id[:12])
    assert heading.endswith("(1 of 1 done)")
    assert line.split() == [job["id"][:12], "completed", "Count"]
    assert talk("jobs", "tree").out == [heading, line]
    assert ask("jobs", "tree")["trees"][0]["conversation_id"] == chat_id
