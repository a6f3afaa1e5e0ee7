"""`backburner conversations`."""

from collections.abc import Callable
from typing import Any

from support.programs.cli_server import Call, wait_for


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
