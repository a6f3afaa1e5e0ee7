"""`backburner grants`."""

from collections.abc import Callable
from typing import Any

from support.programs.cli_server import Call, Running

from backburner.core.ids import ConversationId, derive_grant_id
from backburner.core.tool_policy import Grant


def test_without_grants_the_list_says_so(talk: Call, ask: Callable[..., Any]) -> None:
    listed = talk("grants", "list")
    assert (listed.code, listed.out) == (0, ["No grants: each call that needs approval asks."])
    assert ask("grants", "list") == []

    missing = talk("grants", "revoke", "g_0")
    assert missing.code == 3
    assert missing.err[0].startswith("No grant has an id that starts with g_0.")


def test_a_grant_names_its_tool_and_the_title_of_its_conversation(
    running: Running, talk: Call, ask: Callable[..., Any]
) -> None:
    said = ask("say", "--no-wait", "hello")
    here = ConversationId(said["conversation_id"])
    grant = Grant(id=derive_grant_id(running.user), server="mail", tool="send", definition="d")
    running.transact(lambda tx: tx.grants.give(running.user, here, [grant]))
    listed = talk("grants")
    talk("grants", "revoke", grant.id)

    title = next(one["title"] for one in ask("conversations") if one["id"] == here)
    assert [line for line in listed.out if f"  {title}  " in line and "  mail/send  " in line]
