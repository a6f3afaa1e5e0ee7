"""`backburner memories` and `backburner discovery`, with a real server."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.programs.programs import Ended, Start
from support.requirements import requirement

Call = Callable[..., Ended]


@pytest.fixture
def served(
    start: Start, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[str]]:
    """Start a server; return a function that runs a command and returns its output."""
    monkeypatch.setenv("BACKBURNER_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("BACKBURNER_DISCOVERY_ENABLED", "true")
    start("up", "--port", "0").wait_until_ready()

    def run(*arguments: str) -> list[str]:
        ended = call(*arguments)
        assert (ended.code, ended.err) == (0, []), ended
        return ended.out

    return run


@requirement("B-memory", "B-discovery")
def test_memories_are_listed_and_edited_and_discovery_is_turned_on_and_off(
    served: Callable[..., list[str]], call: Call
) -> None:
    assert served("memories", "list") == ["No memories."]
    served("memories", "set", "home/tea & more", "With milk.")
    served("memories", "set", "ci", "All passed.")
    served("memories", "set", "ci", "One failed.")
    listed = served("memories", "list")
    found = json.loads("\n".join(served("memories", "search", "with", "mil", "--json")))
    served("memories", "forget", "home/tea & more", "--yes")
    gone = call("memories", "forget", "home/tea & more")

    assert [line.split("  ")[0] for line in listed] == ["KEY", "ci", "home/tea & more"]
    assert listed[1].endswith("One failed.")
    assert [(one["key"], one["text"]) for one in found] == [("home/tea & more", "With milk.")]
    assert gone.code == 3
    assert served("memories", "search", "milk") == ["No memories."]

    assert served("discovery", "status") == ["off"]
    assert served("discovery", "on", "--repository", "ada/app", "--yes") == [
        "gh run list --repo ada/app --limit 10",
        "gh pr list --repo ada/app --limit 10",
        "Discovery is on. It looks for work while you are idle.",
    ]
    served("discovery", "off")
    assert call("discovery", "on", "--repository", "--jq/x").code == 2
    assert call("discovery", "on", "--folder", "nowhere").code == 3
    assert served("discovery", "status") == ["off"]
    served("discovery", "on")
    assert served("discovery", "status") == ["on"]
    served("discovery", "off")
    assert served("discovery", "status") == ["off"]
