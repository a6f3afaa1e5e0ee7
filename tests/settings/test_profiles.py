"""Profiles: their defaults, sources and validation."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.requirements import requirement

from backburner.core.errors import BadSetting
from backburner.settings import Profile, load

CANARY = "sk-ant-canary-31415926"
CLAUDE = {"engine": "claude", "key": CANARY}
LOCAL = {"engine": "openai", "address": "http://127.0.0.1:11434/v1/", "model": "qwen3:8b"}


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BACKBURNER_DATA", str(tmp_path))
    return tmp_path


def one(table: dict[str, Any], name: str = "mine") -> Profile:
    return load(profiles={name: table}).profiles[name]


def refused(**options: Any) -> str:
    with pytest.raises(BadSetting) as caught:
        load(**options)
    assert CANARY not in str(caught.value) + repr(caught.value.__cause__)
    return str(caught.value)


def test_without_profiles_the_demo_is_used() -> None:
    settings = load()

    assert list(settings.profiles) == ["demo"]
    assert settings.routes.chat == "demo"
    assert settings.routes.background is None
    assert settings.seats == {}


def test_a_claude_profile_has_defaults() -> None:
    profile = one(CLAUDE)

    assert (profile.engine, profile.model) == ("claude", "claude-sonnet-5-5")
    assert profile.address == "https://api.anthropic.com"
    assert profile.seats == 5
    assert profile.key
    assert profile.key.get_secret_value() == CANARY
    assert profile.token is None


@requirement("B-single")
@pytest.mark.parametrize(
    ("address", "seats"),
    [
        ("http://127.0.0.1:11434/v1", 1),
        ("http://localhost:1", 1),
        ("http://192.168.1.7:8000/v1", 1),
        ("http://[::1]:1/v1", 1),
        ("http://ollama:11434/v1", 1),
        ("http://box.local/v1", 1),
        ("https://api.example.org/v1", 5),
        ("https://93.184.216.34/v1", 5),
    ],
)
def test_a_model_in_a_private_network_has_one_seat(address: str, seats: int) -> None:
    assert one({**LOCAL, "address": address}).seats == seats
    assert load(profiles={"x": {**LOCAL, "address": address}}).seats == {"x": seats}


def test_addresses_are_normalized() -> None:
    assert one(LOCAL).address == "http://127.0.0.1:11434/v1"
    assert one({**CLAUDE, "address": "http://127.0.0.1:1/v1/"}).address == "http://127.0.0.1:1"


def test_chats_use_the_first_profile_unless_another_is_set() -> None:
    both = {"claude": CLAUDE, "local": LOCAL}

    assert load(profiles=both).routes.chat == "claude"
    assert load(profiles=both, profile="local").routes.chat == "local"
    routes = load(profiles=both, background_profile="local").routes
    assert (routes.chat, routes.background) == ("claude", "local")
    assert routes.names == ("claude", "local", "demo")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "mine has no engine; the engines are claude, openai, demo"),
        ({"engine": "clod"}, "mine has the engine 'clod'; the engines are claude, openai, demo"),
        ({"engine": "claude"}, "mine has no key or token"),
        ({**CLAUDE, "token": CANARY}, "mine has key and token; set only one"),
        ({**CLAUDE, "key_file": "/x"}, "mine has key and key_file"),
        ({**CLAUDE, "key": ""}, "mine has a key that is not text"),
        ({**CLAUDE, "key": f"{CANARY} {CANARY}"}, "contains spaces"),
        ({**CLAUDE, "key": 7}, "mine has a key that is not text"),
        ({**CLAUDE, "address": "ftp://x"}, "mine has an invalid address"),
        ({**CLAUDE, "address": "http://x:port"}, "mine has an invalid address"),
        ({**CLAUDE, "address": f"https://me:{CANARY}@x"}, "mine has a user or password in its"),
        ({**CLAUDE, "address": f"https://x?key={CANARY}"}, "mine has an invalid address"),
        ({**CLAUDE, "seats": 0}, "mine has seats that are not an integer from 1"),
        ({**CLAUDE, "seats": True}, "mine has seats that are not"),
        ({**CLAUDE, "price": "cheap"}, "is not a price"),
        ({**CLAUDE, "colour": "red"}, "mine has 'colour'; the keys are engine, model"),
        ({**CLAUDE, "key_file": 1}, "mine has a key_file that is not text"),
        ({"engine": "claude", "key_file": "/absent"}, "/absent cannot be read"),
        ({"engine": "openai", "model": "m"}, "mine needs address, such as http://127.0.0.1"),
        ({"engine": "openai", "address": "http://x"}, "mine needs model, such as"),
        ({**LOCAL, "token": CANARY}, "mine has a token, which only claude supports"),
        ({**LOCAL, "key": CANARY, "key_file": "x"}, "mine has key and key_file"),
        ({"engine": "demo", "key": CANARY}, "mine has key, which the demo does not support"),
        ("claude", "mine is not a table such as"),
    ],
)
def test_an_invalid_profile_is_one_line_with_the_fix(table: object, words: str) -> None:
    line = refused(profiles={"mine": table})

    assert line.startswith("--profiles is invalid: mine ")
    assert words in line
    assert "\n" not in line


def test_the_name_demo_is_reserved() -> None:
    assert "choose another name" in refused(profiles={"demo": CLAUDE})
    assert load(profiles={"demo": {"engine": "demo", "seats": 2}}).seats == {"demo": 2}


@pytest.mark.parametrize("setting", ["profile", "background_profile"])
def test_an_unknown_profile_is_refused_with_the_known_ones(setting: str) -> None:
    line = refused(profiles={"claude": CLAUDE}, **{setting: "clod"})

    assert line.startswith(f"`{setting}` is 'clod', but no profile has this name.")
    assert "claude, demo" in line


def test_a_secret_can_be_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{CANARY}\n")
    for what in ("key", "token"):
        profile = one({"engine": "claude", f"{what}_file": str(tmp_path / "key")})
        secret = getattr(profile, what)
        assert secret.get_secret_value() == CANARY


def test_secrets_of_profiles_are_listed_for_redaction_and_not_shown() -> None:
    settings = load(profiles={"a": CLAUDE, "b": {"engine": "claude", "token": "tok-canary-27182"}})

    assert {CANARY, "tok-canary-27182"} <= set(settings.secrets())
    shown = repr(settings) + str(settings.profiles) + str(settings.model_dump_json())
    assert "canary" not in shown


def test_profiles_come_from_the_environment_as_json(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BACKBURNER_PROFILES", json.dumps({"claude": CLAUDE}))
    assert load().routes.chat == "claude"

    monkeypatch.delenv("BACKBURNER_PROFILES")
    (tmp_path / "p.json").write_text(json.dumps({"local": LOCAL}))
    monkeypatch.setenv("BACKBURNER_PROFILES_FILE", str(tmp_path / "p.json"))
    assert load().routes.chat == "local"


@pytest.mark.parametrize("name", ["PROFILES", "PRICES"])
@pytest.mark.parametrize("text", [CANARY, f'["{CANARY}"]', f'{{"{CANARY}'])
def test_a_variable_that_is_not_a_table_is_refused_without_showing_it(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.setenv(f"BACKBURNER_{name}", text)

    assert refused() == (
        f'BACKBURNER_{name} is not a JSON object. Write {{"name": ...}}, or use a TOML file.'
    )


def test_profiles_of_different_sources_are_not_merged(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (data / "models.toml").write_text(
        f'profile = "local"\n[profiles.claude]\nengine = "claude"\nkey = "{CANARY}"\n'
        '[profiles.local]\nengine = "openai"\naddress = "http://a"\nmodel = "weakest"\n'
    )
    (data / "backburner.toml").write_text(
        '[profiles.claude]\nengine = "claude"\ntoken = "from-the-file"\n'
        '[profiles.local]\nengine = "openai"\naddress = "http://b"\nmodel = "middle"\n'
    )
    monkeypatch.setenv("BACKBURNER_PROFILES", json.dumps({"local": LOCAL}))
    settings = load()

    assert settings.routes.chat == "local"
    assert settings.profiles["local"].address == "http://127.0.0.1:11434/v1"
    assert settings.profiles["claude"].key is None
    assert settings.profiles["claude"].token


def test_the_models_file_contains_models_only(data: Path) -> None:
    (data / "models.toml").write_text("port = 1\n")

    assert f"`port` in {data / 'models.toml'} is not a setting." in refused()


@pytest.mark.parametrize("file", ["models.toml", "backburner.toml"])
def test_an_invalid_profile_names_the_file_it_came_from(data: Path, file: str) -> None:
    (data / file).write_text('[profiles.mine]\nengine = "claude"\n')

    assert refused().startswith(f"`profiles` in {data / file} is invalid: mine has no key")


def test_models_are_found_in_a_data_folder_that_a_chosen_file_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BACKBURNER_DATA")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "models.toml").write_text('[profiles.x]\nengine = "demo"\n')
    (tmp_path / "x.toml").write_text(f'data = "{tmp_path / "there"}"\n')

    assert load(config=tmp_path / "x.toml").routes.chat == "x"


def test_lists_in_variables_are_separated_by_commas(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BACKBURNER_READABLE", f"{tmp_path}/a, {tmp_path}/b,")
    monkeypatch.setenv("BACKBURNER_COMMAND_ENV", "LANG,TZ")
    monkeypatch.setenv("BACKBURNER_PRIVATE_NETWORKS", "10.0.0.0/8, fd00::/8")
    monkeypatch.setenv("BACKBURNER_CLAUDE_TOOLS", "WebSearch")
    settings = load()

    assert settings.readable == (tmp_path / "a", tmp_path / "b")
    assert settings.command_env == ("LANG", "TZ")
    assert [str(network) for network in settings.private_networks] == ["10.0.0.0/8", "fd00::/8"]
    assert settings.claude_tools == ("WebSearch",)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("COMMAND_ENV", "A-B", "is not a variable name"),
        ("COMMAND_ENV", "BACKBURNER_PROFILES", "cannot be passed on"),
        ("PRIVATE_NETWORKS", "10.0.0.1/8", "'10.0.0.1/8' is not a network such as"),
        ("CLAUDE_TOOLS", "rm -rf", "is not a tool name"),
        ("COMMANDS", "on", "use confined, unconfined or off"),
        ("WARM_CHATS", "-1", "use an integer from 0"),
    ],
)
def test_an_invalid_entry_of_a_list_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    monkeypatch.setenv(f"BACKBURNER_{name}", value)
    line = refused()

    assert line.startswith(f"BACKBURNER_{name} cannot be ")
    assert words in line


def test_workspaces_are_in_the_data_folder_by_default(tmp_path: Path) -> None:
    assert load().workspaces == tmp_path / "workspaces"
    assert load(workspace="/elsewhere").workspaces == Path("/elsewhere")
