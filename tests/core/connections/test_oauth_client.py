"""Backburner as authorization servers know it."""

from backburner.core.connections.oauth_client import client_document, describe_client


def test_a_client_with_a_public_address_is_a_web_client() -> None:
    assert describe_client("https://bb.example/oauth/callback")["application_type"] == "web"
    assert describe_client("http://127.0.0.1:8484/oauth/callback")["application_type"] == "native"


def test_the_document_names_its_own_address_and_has_no_secret() -> None:
    document = client_document("https://bb.example/oauth/client.json", "https://bb.example/back")

    assert document["client_id"] == "https://bb.example/oauth/client.json"
    assert document["redirect_uris"] == ["https://bb.example/back"]
    assert document["token_endpoint_auth_method"] == "none"  # noqa: S105 (no password)
