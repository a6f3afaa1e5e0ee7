"""`backburner models key`: a key of one's own, from a file or typed."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.programs.programs import Ended, Start
from support.programs.terminals import terminal

Call = Callable[..., Ended]
PROFILES = '{"local": {"engine": "openai", "model": "m", "address": "http://127.0.0.1:9/v1"}}'
KEY = "sk-own-canary-8f1c"


@pytest.fixture(autouse=True)
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKBURNER_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("BACKBURNER_PORT", "0")
    monkeypatch.setenv("BACKBURNER_PROFILES", PROFILES)
    monkeypatch.setenv("BACKBURNER_OWN_MODEL_KEYS", "true")


def test_a_key_is_stored_from_a_file_and_removed(call: Call, start: Start, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    running = start("up")
    running.wait_until_ready()

    missing = call("models", "key", "local", "--file", str(tmp_path / "missing"))
    stored = call("models", "key", "local", "--file", str(file))
    listed = call("models")
    typed = call("models", "key", "local")
    removed = call("models", "key", "local", "--remove")
    again = call("models", "key", "local", "--remove")

    assert missing.code == 2
    assert f"Cannot read {tmp_path / 'missing'}" in missing.err[0]
    assert stored.out == ["Your work with local uses your own key."]
    assert any("local" in line and "your own key" in line for line in listed.out)
    assert typed.code == 2
    assert "typed in a terminal" in typed.err[0]
    assert removed.out == ["local uses the key of the settings."]
    assert again.code == 3
    data = tmp_path / "data"
    assert (data / "master_keys").exists()
    for kept in data.rglob("*"):
        assert not kept.is_file() or KEY.encode() not in kept.read_bytes()


def test_a_key_that_is_typed_is_not_shown(start: Start) -> None:
    start("up").wait_until_ready()

    with terminal("models", "key", "local") as shown:
        shown.answer("Key for local", KEY)
        assert shown.end() == 0

    assert "Your work with local uses your own key." in shown.seen
    assert KEY not in shown.seen
