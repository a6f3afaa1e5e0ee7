"""`backburner models`: keys of one's own, and the setup of models on a running server."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.programs.programs import Ended, Start
from support.programs.terminals import terminal
from support.servers.model_servers import model_server

from backburner.cli.commands.operate.model_setup import KINDS
from backburner.ports import ModelKind

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


def test_a_model_is_tested_set_up_chosen_and_removed_from_the_terminal(
    call: Call, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BACKBURNER_PROFILES")
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    start("up").wait_until_ready()
    with model_server() as server:
        entry = ("--kind", "openai", "--address", f"{server.address}/v1", "--key-file", str(file))

        offered = call("models", "offered", *entry)
        tried = call("models", "test", *entry, "--name", "small")
        saved = call("models", "save", "mine", *entry, "--name", "small", "--chats")
        shown = call("models", "setup")
        again = call("models", "test", "mine")
        server.answers["/v1/chat/completions"] = (401, "")
        refused = call("models", "test", "mine")
    background = call("models", "default", "demo", "--background")
    as_chats = call("models", "default", "--as-chats")
    in_use = call("models", "remove", "mine", "--yes")
    chats = call("models", "default", "demo")
    removed = call("models", "remove", "mine", "--yes")

    assert offered.out == ["MODEL", "large", "small"]
    assert tried.out[0].startswith("small answers. It took ")
    assert saved.out == ["mine is set up, and can be used now."]
    (row,) = [line for line in shown.out if line.startswith("mine")]
    assert row.split() == [
        *("mine", "openai", "small", f"{server.address}/v1", "yes"),
        *("chats,", "background", "work"),
    ]
    assert again.code == 0
    assert (refused.code, refused.err[0]) == (
        1,
        "The key was refused (401). Check the key, and enter it again.",
    )
    assert background.out == ["Background work uses demo now."]
    assert as_chats.out == ["Background work uses the model of chats now."]
    assert (in_use.code, in_use.err) == (
        4,
        ["Chats use this model. Choose another one for chats first."],
    )
    assert chats.out == ["Chats use demo now."]
    assert removed.out == ["Removed mine."]
    for ended in (offered, tried, saved, shown, again, refused):
        assert KEY not in "".join(ended.out + ended.err)
    assert KEY not in "".join(path.read_text() for path in (tmp_path / "data" / "log").iterdir())


@pytest.mark.parametrize(
    "options",
    [
        ("test", "--name", "small"),
        ("save", "mine"),
        ("default",),
        ("default", "mine", "--as-chats"),
        ("test", "--kind", "demo"),
    ],
)
def test_what_is_missing_for_a_setup_is_a_usage_error(
    call: Call, start: Start, options: tuple[str, ...]
) -> None:
    start("up").wait_until_ready()

    assert call("models", *options).code == 2


def test_the_command_line_knows_the_kinds_of_the_api() -> None:
    assert {*KINDS, "demo"} == {kind.value for kind in ModelKind}
