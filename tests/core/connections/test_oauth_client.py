"""Backburner as authorization servers know it."""

from backburner.core.connections.oauth_client import (
    OAuthClient,
    client_document,
    describe_client,
)


def test_a_client_with_a_public_address_is_a_web_client() -> None:
    assert describe_client("https://bb.example/oauth/callback")["application_type"] == "web"
    assert describe_client("http://127.0.0.1:8484/oauth/callback")["application_type"] == "native"


def test_the_document_names_its_own_address_and_has_no_secret() -> None:
    document = client_document("https://bb.example/oauth/client.json", "https://bb.example/back")

    assert document["client_id"] == "https://bb.example/oauth/client.json"
    assert document["redirect_uris"] == ["https://bb.example/back"]
    assert document["token_endpoint_auth_method"] == "none"  # noqa: S105 (no password)


def test_a_client_is_registered_for_one_address_and_some_scopes() -> None:
    client = OAuthClient(client_id="c", redirect_uri="https://bb.example/back", scopes=("a", "b"))

    assert client.is_registered_for("https://bb.example/back", ("b",))
    assert not client.is_registered_for("https://bb.example/back", ("b", "c"))
    assert not client.is_registered_for("https://other.example/back", ("b",))
