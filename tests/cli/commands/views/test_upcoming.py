"""`backburner upcoming`: what will run."""

from collections.abc import Callable
from typing import Any

from support.programs.cli_server import Call


def test_what_will_run_is_listed_with_folded_times(ask: Callable[..., Any], talk: Call) -> None:
    assert talk("upcoming").out == ["Nothing will run."]
    daily = ask("tasks", "add", "CI", "Look.", "--when", "every day at 9:00")["id"]
    ask("tasks", "add", "Often", "Look.", "--when", "0 * * * *")
    ask("tasks", "add", "Then", "Look.", "--after", "CI")

    lines = talk("upcoming", "--days", "2").out

    assert lines[0].split()[:2] == ["AT", "TIMES"]
    assert len([line for line in lines if daily[:12] in line]) == 2
    assert any(", until " in line and "every hour" in line for line in lines), lines
    assert "Then: after another conversation completes" in lines
    assert len(ask("upcoming", "--days", "2")["entries"]) == len(lines) - 2
