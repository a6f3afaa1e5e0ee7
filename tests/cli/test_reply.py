"""A fresh install, as somebody meets it: nothing set up, a reply as it comes, what it led to."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.programs.programs import Ended, Start

Call = Callable[..., Ended]


def test_whoever_starts_it_can_talk_to_it_at_once(
    call: Call, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_DATA", str(tmp_path))
    running = start("up", "--port", "0")
    running.wait_until_ready()
    # The owner's credential is there once everything has been said.
    while "Sign in" not in running.read_line():
        pass
    said = call("say", "remind me in 1 hour to stretch")
    which = json.loads("\n".join(call("conversations", "--json").out))[0]
    more = call("say", "--in", which["id"][:8], "--json", "what are you working on?")
    away = call("away", "--seen")

    assert said.code == 0, said.err
    assert said.out[0].startswith("All right.")
    assert said.err == [f"[in {which['id'][:10]}]"]
    assert which["status"] == "background"
    assert "stretch" in json.loads("\n".join(more.out))["messages"][-1]["content"]
    assert away.code == 0
    assert away.out[0].startswith("Since ")
