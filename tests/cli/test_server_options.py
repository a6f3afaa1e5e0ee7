"""How commands find a server and sign in to it."""

from pathlib import Path

import pytest
from support.programs.cli_server import Call, Running


def test_a_token_comes_from_the_environment_or_a_file(
    talk: Call, running: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BACKBURNER_TOKEN", "bb_wrong")
    wrong = talk("status")
    monkeypatch.delenv("BACKBURNER_TOKEN")
    none = talk("status")
    (tmp_path / "token").write_text(f"{running.token}\n")
    right = talk("status", "--token-file", str(tmp_path / "token"))

    assert (wrong.code, none.code, right.code) == (5, 5, 0)


def test_the_server_of_a_data_folder_is_found_by_its_client_file(
    call: Call, running: Running, tmp_path: Path
) -> None:
    client = tmp_path / "client.toml"
    client.write_text(f'address = "{running.address}"\ntoken = "{running.token}"\n')
    client.chmod(0o644)
    readable = call("status", "--data", str(tmp_path))
    client.chmod(0o600)
    found = call("status", "--data", str(tmp_path))
    client.write_text("token = 1")
    broken = call("status", "--data", str(tmp_path))

    assert readable.code == 2
    assert "chmod 600" in readable.err[0]
    assert found.code == 0
    assert broken.code == 2


def test_a_folder_without_credentials_may_have_a_server_with_several_accounts(
    call: Call, tmp_path: Path
) -> None:
    missing = call("status", "--data", str(tmp_path))

    assert missing.code == 6
    assert "With a second account or a password, commands need a token" in missing.err[0]
