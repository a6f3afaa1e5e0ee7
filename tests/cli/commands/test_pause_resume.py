"""`backburner pause`, `resume`, `run-now`, `cancel` and `fresh`."""

from collections.abc import Callable
from typing import Any

from support.programs.cli_server import Call, wait_for
from support.requirements import requirement


@requirement("A-pause")
def test_work_is_paused_resumed_run_and_cancelled(ask: Callable[..., Any], talk: Call) -> None:
    said = ask("say", "--no-wait", "remind me every day at 9 to water the flowers")
    conversation_id = said["conversation_id"]
    wait_for(lambda: ask("conversations", conversation_id)["schedule"])
    paused = talk("pause", conversation_id)
    (listed,) = [
        line for line in talk("conversations").out if line.startswith(conversation_id[:12])
    ]
    resumed = talk("resume", conversation_id)
    ran = talk("run-now", conversation_id)
    (run,) = wait_for(
        lambda: [one for one in ask("runs", conversation_id) if one["kind"] == "background"]
    )
    shown = talk("runs", conversation_id, run["id"][:12])
    wait_for(lambda: all(one["ended_at"] for one in ask("runs", conversation_id)))
    fresh = talk("fresh", conversation_id)
    summary, deleted = (
        talk("summary", conversation_id),
        talk("summary", conversation_id, "--delete"),
    )
    cancelled, again = talk("cancel", conversation_id[:20]), talk("cancel", conversation_id)

    title = ask("conversations", conversation_id)["title"]
    assert paused.out == [f"Paused: {title}."]
    assert "paused (user)" in listed
    assert resumed.out[0].startswith(f"Resumed: {title}, next run at ")
    assert ran.out == [f"Running now: {title}."]
    assert shown.out[0].split() == ["id", run["id"]]
    # It was never too long to be remembered.
    assert (summary.code, deleted.code) == (3, 3)
    assert fresh.out == [f"Starts afresh: {title}."]
    assert cancelled.out == [f"Cancelled: {title}."]
    assert again.code == 4


def test_all_background_work_is_paused_and_resumed(ask: Callable[..., Any], talk: Call) -> None:
    paused = talk("pause", "--everything")
    status = talk("status")
    resumed = talk("resume", "--everything")

    assert paused.out == ["Paused: all background work."]
    assert "paused      all your background work" in status.out
    assert resumed.out == ["Resumed: all background work."]
    assert ask("status")["user"]["paused"] is False
    assert talk("pause").code == 2


def test_an_error_says_what_is_wrong_and_what_to_do(ask: Callable[..., Any], talk: Call) -> None:
    conversation_id = ask("say", "--no-wait", "just a chat")["conversation_id"]
    ended = talk("resume", conversation_id)

    assert ended.code == 4
    assert ended.err == ["There is no background work to resume. Give it a schedule."]
