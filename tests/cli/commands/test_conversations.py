"""`backburner conversations`."""

from collections.abc import Callable
from typing import Any

import pytest
from support.programs.cli_server import Call, Running, wait_for
from support.stage.make import NOON

from backburner.core import transitions
from backburner.core.ids import ConversationId, new_conversation_id
from backburner.core.schedule import Event
from backburner.core.transitions import Brief, Step
from backburner.core.transitions.step import system_message
from backburner.ports import Tx


def test_a_conversation_is_shown_with_its_messages_and_found_by_them(
    ask: Callable[..., Any], talk: Call
) -> None:
    conversation_id = ask("say", "--no-wait", "hello there")["conversation_id"]
    wait_for(lambda: len(ask("conversations", conversation_id)["messages"]) > 1)
    shown = talk("conversations", conversation_id)

    assert shown.out[0].split() == ["id", conversation_id]
    assert "hello there" in shown.out
    assert [one["id"] for one in ask("conversations", "--search", "hello there")] == [
        conversation_id
    ]


def test_commands_are_named_as_they_are_started_in_our_own_messages_only(
    running: Running, ask: Callable[..., Any], talk: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "Run `backburner connections accept mail`."
    here = ConversationId(ask("say", "--no-wait", text)["conversation_id"])

    def tell(tx: Tx) -> None:
        conversation = tx.conversations.lock(running.user, here)
        tx.conversations.save(Step(conversation=conversation, messages=(system_message(text),)))

    running.transact(tell)
    monkeypatch.setenv("BACKBURNER_COMMAND", "bb")
    shown = talk("conversations", here)

    assert "Run `bb connections accept mail`." in shown.out
    # This is what the user has written.
    assert text in shown.out


def test_jobs_stand_under_their_conversation_until_all_are_asked_for(
    ask: Callable[..., Any], talk: Call
) -> None:
    chat_id = ask("say", "--no-wait", "hello")["conversation_id"]
    job = ask("jobs", "start", "--in", chat_id, "--name", "Count", "Count the files.")
    wait_for(lambda: ask("jobs", "show", job["id"])["status"] == "completed")

    listed = talk("conversations").out
    assert [line.split()[0] for line in listed[1:2]] == [chat_id[:12]]
    assert listed[2].strip() == "1 more"
    assert listed[3].startswith("List all jobs and tasks of one with `")
    assert listed[3].endswith(" conversations --parent ID`.")
    assert len(listed) == 4
    assert {one["id"] for one in ask("conversations", "--all")} == {chat_id, job["id"]}
    assert [one["id"] for one in ask("conversations", "--parent", chat_id)] == [job["id"]]
    assert ask("conversations", "Count")["id"] == job["id"]


def test_an_open_child_is_indented_under_its_conversation(
    ask: Callable[..., Any], talk: Call, running: Running
) -> None:
    chat_id = ask("say", "--no-wait", "hello")["conversation_id"]
    brief = Brief(title="Check CI", prompt="Look.", schedule=Event("file", {}), parent_id=chat_id)
    child = transitions.start_task(new_conversation_id(), running.user, brief, now=NOON)
    running.transact(lambda tx: tx.conversations.add(child))

    lines = talk("conversations").out
    (line,) = [line for line in lines if "Check CI" in line]
    assert line.startswith(child.conversation.id[:12])
    title_at = lines[0].index("TITLE")
    assert line[title_at:] == "  Check CI"
    assert lines.index(line) == 2


def test_what_is_read_is_seen_and_what_programs_read_is_not(
    ask: Callable[..., Any], talk: Call
) -> None:
    here = ask("say", "hello there")["conversation_id"]
    ask("conversations", here)
    assert [one["unread_count"] for one in ask("conversations")] == [1]
    assert " 1 " in talk("conversations").out[1]

    assert [one["id"] for one in ask("conversations", "--unread")] == [here]

    talk("conversations", here)
    assert [one["unread_count"] for one in ask("conversations")] == [0]
    assert ask("conversations", "--unread") == []

    talk("say", "--in", here, "and now?")
    assert [one["unread_count"] for one in ask("conversations")] == [0]


def test_conversations_are_pinned_and_listed_by_their_state(
    ask: Callable[..., Any], talk: Call
) -> None:
    here = ask("say", "--no-wait", "remind me every day at 9 to water the flowers")[
        "conversation_id"
    ]
    wait_for(lambda: ask("conversations", here)["schedule"])
    title = ask("conversations", here)["title"]

    pinned = talk("conversations", "pin", here)
    listed = [one["id"] for one in ask("conversations", "--pinned")]
    shown = talk("conversations", here)
    unpinned = talk("conversations", "unpin", here)

    assert (pinned.out, unpinned.out) == ([f"Pinned: {title}."], [f"Unpinned: {title}."])
    assert listed == [here]
    assert any(line.split() == ["pinned", "yes"] for line in shown.out)
    assert ask("conversations", "--pinned") == []
    assert [one["id"] for one in ask("conversations", "--state", "scheduled")] == [here]
    assert ask("conversations", "--state", "failed") == []


def test_a_search_shows_what_it_found(ask: Callable[..., Any], talk: Call) -> None:
    here = ask("say", "--no-wait", "the café is closed")["conversation_id"]
    wait_for(lambda: len(ask("conversations", here)["messages"]) > 1)

    found = talk("conversations", "--search", "CAFE closed").out

    assert found[1].startswith(here[:12])
    assert any(line.strip() == "user: the café is closed" for line in found[2:])


def test_a_deleted_conversation_comes_back_for_a_while(ask: Callable[..., Any], talk: Call) -> None:
    here = ask("say", "--no-wait", "hello there")["conversation_id"]

    deleted = talk("conversations", "delete", here, "--yes")
    gone = talk("conversations", here)
    restored = talk("conversations", "undelete", here)
    removed = talk("conversations", "delete", here, "--yes", "--now")
    again = talk("conversations", "undelete", here)

    assert f"`backburner conversations undelete {here}`" in deleted.out[0]
    assert gone.code == 3
    assert restored.out == ["Restored: hello there."]
    assert removed.out == ["Deleted."]
    assert again.code == 3
