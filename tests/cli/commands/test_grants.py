"""`backburner grants`."""

from collections.abc import Callable
from typing import Any

from support.programs.cli_server import Call


def test_without_grants_the_list_says_so(talk: Call, ask: Callable[..., Any]) -> None:
    listed = talk("grants", "list")
    assert (listed.code, listed.out) == (0, ["No grants: each call that needs approval asks."])
    assert ask("grants", "list") == []

    missing = talk("grants", "revoke", "g_0")
    assert missing.code == 3
    assert missing.err[0].startswith("No grant has an id that starts with g_0.")
