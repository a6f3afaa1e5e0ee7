"""`backburner notices`."""

from collections.abc import Callable
from typing import Any

from support.programs.cli_server import Call, wait_for


def test_a_reminder_becomes_a_notice_that_can_be_marked_as_seen(
    ask: Callable[..., Any], talk: Call
) -> None:
    conversation_id = ask("say", "--no-wait", "remind me in 1 second to stretch")["conversation_id"]

    def notices(*options: str) -> Any:
        return [
            one for one in ask("notices", *options) if one["conversation_id"] == conversation_id
        ]

    (notice,) = wait_for(notices)
    listed = talk("notices")
    assert "stretch" in notice["text"]
    assert listed.out[0].split() == ["TIME", "KIND", "ID", "CONVERSATION", "TEXT"]
    (line,) = [line for line in listed.out if conversation_id[:12] in line]
    assert line.startswith("new ")
    assert notice["title"] == "Remind me to stretch"
    assert " Remind me to stretch " in line

    assert notices("--new", "--seen") == [notice]
    assert notices("--new") == []
    assert notices()[0]["seen_at"] is not None
