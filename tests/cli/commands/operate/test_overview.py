"""`backburner overview` and `backburner failures`."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.programs.programs import Ended, Start

Call = Callable[..., Ended]


def test_the_state_of_the_install_is_shown(
    call: Call, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("BACKBURNER_PORT", "0")
    start("up").wait_until_ready()

    # The worker starts after the server has said that it is ready.
    shown = next(
        ended
        for ended in (call("overview") for _ in range(100))
        if any(line.startswith("WORKER") for line in ended.out)
    )
    failures = call("failures")

    assert shown.code == 0, shown.err
    assert any(line.split()[:2] == ["database", "sqlite,"] for line in shown.out)
    (header,) = [line for line in shown.out if line.startswith("WORKER")]
    assert "0 of 5" in shown.out[shown.out.index(header) + 1]
    assert failures.out == ["Nothing has failed."]
