"""What we use of the library without a promise that it stays: each in the way that we rely on."""

import httpx2
import pytest
from mcp.client.auth import OAuthRegistrationError, PKCEParameters
from mcp.client.auth.oauth2 import check_registration_usable
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    extract_field_from_www_auth,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url


def test_metadata_of_a_server_are_looked_for_where_it_says_and_then_where_they_belong() -> None:
    named = "https://a.example/where"
    assert build_protected_resource_metadata_discovery_urls(named, "https://a.example/mcp") == [
        named,
        "https://a.example/.well-known/oauth-protected-resource/mcp",
        "https://a.example/.well-known/oauth-protected-resource",
    ]
    for root in ("https://a.example", "https://a.example/"):
        assert build_protected_resource_metadata_discovery_urls(None, root) == [
            "https://a.example/.well-known/oauth-protected-resource"
        ]


def test_metadata_of_an_authorization_server_are_looked_for_by_its_path() -> None:
    find = build_oauth_authorization_server_metadata_discovery_urls
    assert find("https://a.example/one", "https://b.example/mcp") == [
        "https://a.example/.well-known/oauth-authorization-server/one",
        "https://a.example/.well-known/openid-configuration/one",
        "https://a.example/one/.well-known/openid-configuration",
    ]
    assert find("https://a.example", "https://b.example/mcp") == [
        "https://a.example/.well-known/oauth-authorization-server",
        "https://a.example/.well-known/openid-configuration",
    ]


def test_fields_of_a_challenge_are_read() -> None:
    said = 'Bearer error="invalid_token", scope="a b", resource_metadata="https://a.example/x"'
    response = httpx2.Response(401, headers={"www-authenticate": said})

    assert extract_field_from_www_auth(response, "scope") == "a b"
    assert extract_field_from_www_auth(response, "resource_metadata") == "https://a.example/x"
    assert extract_field_from_www_auth(httpx2.Response(401), "scope") is None


@pytest.mark.parametrize(
    ("resource", "covers"),
    [
        ("https://a.example", True),
        ("https://a.example/mcp", True),
        ("https://a.example/mcp/", True),
        ("https://a.example/mc", False),
        ("https://a.example/mcp/more", False),
        ("https://b.example/mcp", False),
        ("http://a.example/mcp", False),
        ("https://a.example:444/mcp", False),
        ("https://a.example.evil.example/mcp", False),
        ("https://a.example/mcp/../mcp", False),
        ("https://a.example\\@b.example/", False),
    ],
)
def test_a_resource_covers_what_is_below_it(resource: str, *, covers: bool) -> None:
    own = resource_url_from_server_url("https://A.example/mcp#x")

    assert own == "https://a.example/mcp"
    assert check_resource_allowed(own, resource) is covers


def test_registrations_that_cannot_be_used_are_refused() -> None:
    for method, secret in (("private_key_jwt", None), ("client_secret_basic", None)):
        made = OAuthClientInformationFull(
            client_id="one", token_endpoint_auth_method=method, client_secret=secret
        )
        with pytest.raises(OAuthRegistrationError):
            check_registration_usable(made)
    check_registration_usable(OAuthClientInformationFull(client_id="one"))


def test_models_keep_addresses_as_they_are_and_know_the_fields_that_we_read() -> None:
    metadata = OAuthMetadata.model_validate(
        {
            "issuer": "https://a.example",
            "authorization_endpoint": "https://a.example/authorize?x=y",
            "token_endpoint": "https://a.example/token",
            "code_challenge_methods_supported": ["S256"],
            "client_id_metadata_document_supported": True,
            "authorization_response_iss_parameter_supported": True,
            "revocation_endpoint": "https://a.example/revoke",
        }
    )
    assert str(metadata.issuer) == "https://a.example"
    assert str(metadata.authorization_endpoint) == "https://a.example/authorize?x=y"
    assert metadata.client_id_metadata_document_supported is True
    assert metadata.authorization_response_iss_parameter_supported is True


def test_keys_of_pkce_are_new_each_time_and_long_enough() -> None:
    one, other = PKCEParameters.generate(), PKCEParameters.generate()

    assert one.code_verifier != other.code_verifier
    assert len(one.code_verifier) >= 43
    assert len(one.code_challenge) == 43
