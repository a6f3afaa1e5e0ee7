"""Clients of the operator in the settings file."""

from pathlib import Path

import pytest

from backburner.core.connections.oauth_client import ConfiguredClient, OAuthClient
from backburner.core.errors import BadSetting
from backburner.settings import Settings, load

CLIENT = """
[oauth_clients."https://login.example.com"]
id = "backburner"
secret = "canary-secret"
servers = ["mcp.example.com", "mail.example.com:8443"]
"""
SERVERS = '\nservers = ["mcp.example.com"]'


def load_from(folder: Path, text: str) -> Settings:
    file = folder / "backburner.toml"
    file.write_text(text, encoding="utf-8")
    return load(data=str(folder / "data"), config=str(file))


def test_a_client_is_known_by_its_issuer(tmp_path: Path) -> None:
    settings = load_from(tmp_path, CLIENT)

    assert settings.oauth_clients == {
        "https://login.example.com": ConfiguredClient(
            OAuthClient(client_id="backburner", secret="canary-secret"),  # noqa: S106
            frozenset({"mcp.example.com", "mail.example.com:8443"}),
        )
    }
    assert "canary-secret" in set(settings.secrets())
    assert "canary-secret" not in repr(settings)


def test_a_client_may_have_no_secret(tmp_path: Path) -> None:
    settings = load_from(tmp_path, f'[oauth_clients."https://a.example"]\nid = "one"{SERVERS}')

    assert settings.oauth_clients["https://a.example"] == ConfiguredClient(
        OAuthClient(client_id="one"), frozenset({"mcp.example.com"})
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("oauth_clients = 3", "use a table of clients"),
        ('[oauth_clients.x]\nid = "a"', "is not the address of an authorization server"),
        ('[oauth_clients]\n"https://a.example" = 3', "is not a table such as"),
        ('[oauth_clients."https://a.example"]\nsecret = "canary"', "is not a table such as"),
        ('[oauth_clients."https://a.example"]\nid = "a"\nkey = "canary"', "the keys are id, sec"),
        ('[oauth_clients."https://a.example"]\nid = "a"', "needs `servers`"),
        ('[oauth_clients."https://a.example"]\nid = "a"\nservers = []', "needs `servers`"),
        ('[oauth_clients."https://a.example"]\nid = "a"\nservers = "a.b"', "needs `servers`"),
        ('[oauth_clients."https://a.example"]\nid = "a"\nservers = ["a/b"]', "needs `servers`"),
        ('[oauth_clients."https://a.example"]\nid = "a"\nsecret = "canary x"', "cannot be sent"),
    ],
)
def test_what_is_wrong_is_said_without_the_secret(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadSetting, match=said) as caught:
        load_from(tmp_path, text)

    assert "canary" not in str(caught.value)
