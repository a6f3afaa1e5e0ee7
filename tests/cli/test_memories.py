"""`backburner memories` and `backburner discovery`, against a server that runs."""

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
    """Start a server of one's own, and give what a command prints that it does what it is told."""
    monkeypatch.setenv("BACKBURNER_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("BACKBURNER_DISCOVERY_ENABLED", "true")
    start("up", "--port", "0").wait_until_ready()

    def run(*arguments: str) -> list[str]:
        ended = call(*arguments)
        assert (ended.code, ended.err) == (0, []), ended
        return ended.out

    return run


@requirement("B-memory", "B-discovery")
def test_memories_are_seen_and_edited_and_discovery_is_switched(
    served: Callable[..., list[str]], call: Call
) -> None:
    assert served("memories", "list") == ["There is nothing."]
    served("memories", "set", "home/tea & more", "With milk.")
    served("memories", "set", "ci", "All passed.")
    served("memories", "set", "ci", "One failed.")
    listed = served("memories", "list")
    found = json.loads("\n".join(served("memories", "search", "with", "mil", "--json")))
    served("memories", "forget", "home/tea & more")
    gone = call("memories", "forget", "home/tea & more")

    assert [line.split("  ")[0] for line in listed] == ["KEY", "ci", "home/tea & more"]
    assert listed[1].endswith("One failed.")
    assert [(one["key"], one["text"]) for one in found] == [("home/tea & more", "With milk.")]
    assert gone.code == 3
    assert served("memories", "search", "milk") == ["There is nothing."]

    assert served("discovery", "status") == ["off"]
    served("discovery", "on")
    assert served("discovery", "status") == ["on"]
    served("discovery", "off")
    assert served("discovery", "status") == ["off"]
