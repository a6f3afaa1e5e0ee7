"""Who may do what."""

import pytest
from support.stage.make import USER

from backburner.core.accounts import Caller, CredentialKind, Role, Scope, network_of, secret_digest


def caller(role: Role, *scopes: Scope) -> Caller:
    return Caller(
        user=USER,
        role=role,
        scopes=frozenset(scopes),
        credential="k_1",
        kind=CredentialKind.TOKEN,
    )


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("given", Scope)
@pytest.mark.parametrize("asked", Scope)
def test_a_credential_is_good_for_what_it_was_given_for(
    role: Role, given: Scope, asked: Scope
) -> None:
    is_enough = given is asked and (asked is not Scope.OPERATE or role is Role.OPERATOR)

    assert caller(role, given).may(asked) == is_enough


def test_what_is_kept_of_a_secret_does_not_tell_it() -> None:
    assert secret_digest("secret") == secret_digest("secret") != secret_digest("Secret")
    assert "secret" not in secret_digest("secret")


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("", ""),
        ("testclient", "testclient"),
    ],
)
def test_all_addresses_of_a_line_are_one_place(address: str, place: str) -> None:
    assert network_of(address) == place
