"""`backburner setup`: by prompts or options; tested, and stored for the owner only."""

import io
import json
import os
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.programs.programs import Ended, Running, Start
from support.programs.terminals import terminal
from support.requirements import requirement
from support.servers.model_servers import ModelServer, model_server
from support.servers.model_threads import model_in_thread

from backburner.api.http.auth import SESSION_HEADER
from backburner.settings import Settings, load

CANARY = "sk-ant-canary-314159265358979"
OTHER_CANARY = "oat-canary-271828182845904523"
Call = Callable[..., Ended]
Patch = pytest.MonkeyPatch


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BACKBURNER_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text(f"{CANARY}\n")
    return path


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())


def stored(data: Path) -> dict[str, Any]:
    return tomllib.loads((data / "models.toml").read_text())


def modes(data: Path) -> tuple[int, int]:
    return tuple(stat.S_IMODE(path.stat().st_mode) for path in (data, data / "models.toml"))  # type: ignore[return-value]


def claude_chat(settings: Settings) -> str:
    profile = settings.profiles[settings.routes.chat]
    assert profile.secret
    return profile.secret.get_secret_value()


@requirement("Z-setup")
def test_prompts_do_not_show_the_key(data: Path, server: ModelServer) -> None:
    with terminal("setup", "--address", server.address) as shown:
        shown.answer("Kind of model", "1")
        shown.answer("API key", CANARY)
        shown.answer("Model", "claude-haiku-4-5")
        code = shown.end()

    assert code == 0, shown.seen
    assert "claude-haiku-4-5 answers." in shown.seen
    assert "Chats and background work will use it when Backburner starts." in shown.seen
    assert CANARY not in shown.seen
    assert modes(data) == (0o700, 0o600)
    assert claude_chat(load()) == CANARY
    assert load().profiles["claude"].model == "claude-haiku-4-5"
    assert server.asked[0].headers["x-api-key"] == CANARY


@requirement("Z-setup")
def test_the_models_of_a_local_server_are_listed(data: Path, server: ModelServer) -> None:
    with terminal("setup") as shown:
        shown.answer("Kind of model", "3")
        shown.answer("http://127.0.0.1:11434/v1", f"{server.address}/v1")
        shown.answer("Model", "2")
        assert shown.end() == 0, shown.seen

    assert "1  large" in shown.seen
    profile = load().profiles["local"]
    assert (profile.model, profile.address) == ("small", f"{server.address}/v1")
    assert profile.seats == 1
    assert [asked.path for asked in server.asked] == ["/v1/models", "/v1/chat/completions"]
    assert modes(data) == (0o700, 0o600)


def test_a_server_that_cannot_list_models_can_be_used(data: Path, server: ModelServer) -> None:
    server.answers["/v1/models"] = (404, "")
    with terminal("setup", "--kind", "openai", "--address", f"{server.address}/v1") as shown:
        shown.answer("Model", "mine")
        assert shown.end() == 0, shown.seen

    assert "Cannot list the models" in shown.seen
    assert stored(data)["profiles"]["local"]["model"] == "mine"


def test_an_invalid_address_or_key_is_asked_for_again(data: Path, server: ModelServer) -> None:
    with terminal("setup", "--kind", "openai", "--model", "small") as shown:
        shown.answer("Address", "over there")
        shown.answer("Address", f"{server.address}/v1")
        assert shown.end() == 0, shown.seen
    with terminal("setup", "--kind", "claude-token", "--address", server.address) as shown:
        shown.answer("Token", "two words")
        shown.answer("Token", OTHER_CANARY)
        shown.answer("Model", "")
        assert shown.end() == 0, shown.seen

    assert stored(data)["profiles"] == {
        "claude": {"engine": "claude", "token": OTHER_CANARY, "address": server.address}
    }


@pytest.mark.parametrize(("answer", "is_stored"), [("y", True), ("n", False), ("", False)])
def test_a_model_that_fails_can_be_stored_anyway(
    data: Path, server: ModelServer, *, answer: str, is_stored: bool
) -> None:
    server.answers["/v1/messages"] = (401, {"error": {"message": f"no {CANARY}"}})
    with terminal("setup", "--kind", "claude-key", "--address", server.address) as shown:
        shown.answer("API key", CANARY)
        shown.answer("Model", "")
        shown.answer("Store it anyway?", answer)
        code = shown.end()

    assert code == (0 if is_stored else 3)
    assert (data / "models.toml").exists() is is_stored
    assert "The key was refused" in shown.seen
    assert CANARY not in shown.seen


@requirement("Z-setup")
def test_options_replace_all_prompts(
    call: Call, data: Path, server: ModelServer, key_file: Path
) -> None:
    ended = call(
        *("setup", "--kind", "claude-key", "--key-file", str(key_file)),
        *("--model", "claude-opus-4-5", "--address", server.address),
    )

    assert (ended.code, ended.err) == (0, [])
    assert "claude-opus-4-5 answers." in ended.out
    assert CANARY not in "".join(ended.out)
    assert claude_chat(load()) == CANARY
    assert modes(data) == (0o700, 0o600)


def test_a_secret_can_be_read_from_standard_input(data: Path, server: ModelServer) -> None:
    command = (sys.executable, "-P", "-m", "backburner", "setup", "--kind", "claude-token")
    done = subprocess.run(
        [*command, "--token-file", "-", "--address", server.address],
        input=f"{OTHER_CANARY}\n",
        capture_output=True,
        check=False,
        text=True,
    )

    assert done.returncode == 0
    assert OTHER_CANARY not in done.stdout + done.stderr
    assert load().profiles["claude"].token
    assert claude_chat(load()) == OTHER_CANARY
    assert modes(data)[1] == 0o600


def test_without_a_test_the_model_is_not_contacted(
    call: Call, data: Path, server: ModelServer, key_file: Path
) -> None:
    where = ("--key-file", str(key_file), "--address", server.address)

    assert call("setup", "--kind", "claude-key", *where, "--no-test").code == 0
    assert server.asked == []
    assert (data / "models.toml").exists()


@pytest.mark.parametrize(
    ("status", "answer", "code", "message"),
    [
        (401, CANARY, 3, "The key was refused"),
        (404, "no", 4, "does not respond as a model API"),
        (404, {"error": {"message": "no such model"}}, 5, "Model not found"),
        (429, "", 6, "Limit reached"),
        (500, {"error": CANARY}, 1, "(500)"),
    ],
)
def test_a_failed_test_has_a_message_and_a_code_and_stores_nothing(
    call: Call,
    data: Path,
    server: ModelServer,
    key_file: Path,
    *,
    status: int,
    answer: Any,
    code: int,
    message: str,
) -> None:
    server.answers["/v1/messages"] = (status, answer)
    options = ("--key-file", str(key_file), "--address", server.address)
    failed = call("setup", "--kind", "claude-key", *options)
    output = "\n".join(failed.out + failed.err)

    assert failed.code == code
    assert message in output
    assert CANARY not in output
    assert not data.exists()
    assert call("setup", "--kind", "claude-key", *options, "--keep").code == 0
    assert (data / "models.toml").exists()


def test_an_unreachable_server_has_its_own_code(call: Call, key_file: Path) -> None:
    options = ("--key-file", str(key_file), "--address", "http://127.0.0.1:9")

    assert call("setup", "--kind", "claude-key", *options).code == 4


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ([], "--kind"),
        (["--kind", "claude-key"], "--key-file"),
        (["--kind", "openai"], "--address"),
        (["--kind", "openai", "--address", "http://127.0.0.1:9/v1"], "--model"),
        (["--kind", "openai", "--address", "x", "--model", "m"], "an invalid address"),
        (["--kind", "claude-key", "--key-file", "absent"], "Cannot read absent"),
        (
            ["--kind", "claude-key", "--key-file", "-"],
            "must contain a key or token and nothing else",
        ),
        (["--kind", "clod"], "--kind"),
    ],
)
def test_a_missing_or_invalid_option_is_one_line_and_exit_code_2(
    call: Call, data: Path, options: list[str], named: str
) -> None:
    ended = call("setup", *options)

    assert (ended.code, ended.out) == (2, [])
    (line,) = ended.err
    assert named in line
    assert not data.exists()


@requirement("Z-setup")
def test_a_second_setup_shows_the_stored_model_without_its_secret_and_replaces_it(
    call: Call, data: Path, key_file: Path, tmp_path: Path
) -> None:
    call("setup", "--kind", "claude-key", "--key-file", str(key_file), "--no-test")
    data.joinpath("models.toml").chmod(0o644)
    (tmp_path / "other").write_text(OTHER_CANARY)
    again = call(
        "setup", "--kind", "claude-token", "--key-file", str(tmp_path / "other"), "--no-test"
    )

    assert again.out[0].endswith(f"with a key ending in {CANARY[-4:]}.")
    assert "canary" not in "".join(again.out)
    assert CANARY not in (data / "models.toml").read_text()
    assert modes(data) == (0o700, 0o600)
    assert os.listdir(data) == ["models.toml"]  # noqa: PTH208 (names are compared)


def test_chats_and_background_work_have_a_model_each(
    call: Call, data: Path, key_file: Path
) -> None:
    local = ("--kind", "openai", "--address", "http://127.0.0.1:9/v1", "--no-test")
    claude = ("--kind", "claude-key", "--key-file", str(key_file), "--no-test")
    call("setup", *claude)
    assert (
        "Background work will use it when Backburner starts."
        in call("setup", *local, "--model", "a", "--background").out[-1]
    )
    assert (load().routes.chat, load().routes.background) == ("claude", "local")

    call("setup", *claude, "--model", "claude-haiku-4-5", "--background")
    assert load().routes.background == "claude-background"
    assert load().profiles["claude"].model == "claude-sonnet-5-5"
    assert "local" not in load().profiles

    call("setup", *local, "--model", "b")
    assert (load().routes.chat, load().routes.background) == ("local", "claude-background")
    call("setup", "--kind", "demo")
    assert stored(data)["profile"] == "demo"
    assert load().routes.chat == "demo"


def test_settings_that_override_it_are_reported(
    call: Call, data: Path, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--kind", "claude-key", "--key-file", str(key_file), "--no-test")
    monkeypatch.setenv("BACKBURNER_PROFILE", "demo")
    assert call("setup", *options).out[-1].startswith("Chats and background work will use demo")

    monkeypatch.setenv("BACKBURNER_PROFILE", "clod")
    assert "cannot start" in call("setup", *options).out[-1]
    assert (data / "models.toml").exists()


@pytest.mark.parametrize(
    "text", ["nonsense", "profiles = 1", '[profiles.x]\nengine = "clod"', "port = 1"]
)
def test_an_invalid_file_is_reported_and_replaced(call: Call, data: Path, text: str) -> None:
    data.mkdir()
    (data / "models.toml").write_text(text)
    ended = call("setup", "--kind", "demo")

    assert ended.code == 0
    assert "is invalid and will be replaced." in ended.out[0]
    assert load().routes.chat == "demo"


def test_any_valid_secret_is_read_back_unchanged(call: Call, data: Path, tmp_path: Path) -> None:
    secret = "".join(chr(code) for code in range(33, 127))
    (tmp_path / "odd").write_text(secret)
    call("setup", "--kind", "claude-key", "--key-file", str(tmp_path / "odd"), "--no-test")

    assert stored(data)["profiles"]["claude"]["key"] == secret
    assert claude_chat(load()) == secret


def test_a_symbolic_link_in_place_of_the_file_is_not_followed(
    call: Call, data: Path, tmp_path: Path, key_file: Path
) -> None:
    data.mkdir()
    (tmp_path / "public").write_text("")
    (tmp_path / "public").chmod(0o666)
    (data / "models.toml").symlink_to(tmp_path / "public")
    call("setup", "--kind", "claude-key", "--key-file", str(key_file), "--no-test")

    assert (tmp_path / "public").read_text() == ""
    assert modes(data)[1] == 0o600


def test_models_are_named_where_one_is_missing_or_not_offered(
    call: Call, server: ModelServer
) -> None:
    local = ("setup", "--kind", "openai", "--address", f"{server.address}/v1")
    missing, unlisted = call(*local), call(*local, "--model", "nosuch")
    listed = call(*local, "--model", "small")

    assert missing.code == 2
    assert "--model is required: large or small." in missing.err[0]
    assert unlisted.code == 0
    assert "The server does not list nosuch. It lists: large, small." in unlisted.out
    assert not [line for line in listed.out if "does not list" in line]


def test_an_empty_key_is_asked_for_again_with_the_reason(data: Path, server: ModelServer) -> None:
    with terminal("setup", "--kind", "claude-key", "--address", server.address) as shown:
        shown.answer("API key", "")
        shown.answer("API key", CANARY)
        shown.answer("Model", "")
        assert shown.end() == 0, shown.seen

    assert "Nothing was entered." in shown.seen
    assert stored(data)["profiles"]["claude"]["key"] == CANARY


@requirement("Z-model-change")
def test_a_server_that_runs_uses_the_model_at_once_also_where_the_demo_was(
    call: Call, data: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    start("up", "--port", "0", "--data", data, env={**os.environ, "TZ": "UTC"}).wait_until_ready()
    assert call("say", "Hello?").code == 0
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    with model_in_thread() as model:
        address = f"{model.address}/v1"
        ended = call("setup", "--kind", "openai", "--address", address, "--model", "m", "--no-test")
        assert ended.out[-1] == "Chats and background work use it now."
        doctor = call("doctor", "--offline")
        (line,) = [line for line in doctor.out if line[5:].startswith("server ")]
        assert line.startswith("[ok]")

        said = call("say", "-c", "And now?")

    # The server may have been started elsewhere, such as by systemd.
    me = json.loads("\n".join(call("me", "--json").out))
    assert (me["zone"], me["zone_source"]) == ("Asia/Tokyo", "terminal")
    assert said.out[-1] == "Hello."
    assert len(model.requests) == 1
    chat = json.loads("\n".join(call("conversations", "Hello?", "--json").out))
    assert chat["profile"] == "local"
    assert "This began with the demo. It uses local from now on." in [
        message["content"] for message in chat["messages"]
    ]


@requirement("Z-model-change")
def test_a_worker_in_another_process_uses_the_model_without_a_restart(
    call: Call, start: Start, tmp_path: Path, migrated_postgres_url: str, monkeypatch: Patch
) -> None:
    monkeypatch.setenv("BACKBURNER_DATABASE_URL", migrated_postgres_url)
    # Without it, only warnings are written where they can be read here.
    monkeypatch.setenv("BACKBURNER_LOG_LEVEL", "info")
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    server = start("serve", "--port", "0", "--data", here)
    address = server.wait_until_ready()
    monkeypatch.setenv("BACKBURNER_URL", address)
    monkeypatch.setenv("BACKBURNER_TOKEN", make_token(address, server))
    worker = start("worker", "--data", elsewhere)
    assert ": worker " in worker.read_line()
    assert call("say", "Hello?").code == 0

    with model_in_thread() as model:
        options = ("--address", f"{model.address}/v1", "--model", "m", "--no-test")
        # Each process reads files of its own.
        for folder in (here, elsewhere):
            assert call("setup", "--kind", "openai", *options, "--data", str(folder)).code == 0
        assert call("models", "reload").code == 0
        worker.wait_for_error("models.reloaded")
        # Replies are given by the worker: the server performs no runs.
        said = call("say", "-c", "And now?")

    assert said.out[-1] == "Hello."
    assert len(model.requests) == 1


def make_token(address: str, server: Running) -> str:
    """Make a token of an operator, with the link that a server prints."""
    link = [server.read_line() for _ in range(2)][-1].split()[-1]
    with httpx2.Client(base_url=address) as browser:
        signed_in = browser.post("/api/sign-in", json={"link": link})
        key = {SESSION_HEADER: signed_in.json()["key"]}
        new = {"name": "test", "scopes": ["read", "write", "operate"]}
        return str(browser.post("/api/tokens", json=new, headers=key).json()["token"])
