"""Permissions of callers, secrets and network addresses."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.stage.make import NOON, USER

from backburner.core.accounts import (
    Caller,
    CredentialKind,
    Role,
    Scope,
    check_new_token,
    network_of,
    role_of,
    scopes_of,
    secret_digest,
)
from backburner.core.errors import NotAllowed

DAY = timedelta(days=1)
SCOPES = st.frozensets(st.sampled_from(list(Scope)))
ENDS = st.none() | st.timedeltas(timedelta(1), timedelta(9)).map(lambda later: NOON + later)


def caller(role: Role, *scopes: Scope, **changes: Any) -> Caller:
    usual = {"user": USER, "credential": "k_1", "kind": CredentialKind.TOKEN}
    return Caller(role=role, scopes=frozenset(scopes), **(usual | changes))


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("given", Scope)
@pytest.mark.parametrize("asked", Scope)
def test_a_credential_allows_only_its_own_scopes(role: Role, given: Scope, asked: Scope) -> None:
    is_enough = given is asked and (asked is not Scope.OPERATE or role is Role.OPERATOR)

    assert caller(role, given).may(asked) == is_enough


@pytest.mark.parametrize("role", Role)
def test_an_invitation_makes_an_account_with_the_role_of_its_scopes(role: Role) -> None:
    assert role_of(scopes_of(role)) is role


@pytest.mark.parametrize(
    ("scopes", "changes", "has_full_access"),
    [
        ((Scope.READ, Scope.WRITE), {}, True),
        ((Scope.READ,), {}, False),
        ((Scope.READ, Scope.WRITE), {"expires_at": NOON}, False),
        ((Scope.READ, Scope.WRITE), {"expires_at": NOON, "kind": CredentialKind.SESSION}, True),
    ],
)
def test_a_caller_has_full_access_with_every_scope_of_the_role_for_good(
    scopes: tuple[Scope, ...], changes: dict[str, Any], *, has_full_access: bool
) -> None:
    assert caller(Role.MEMBER, *scopes, **changes).has_full_access is has_full_access


def test_a_token_is_refused_scopes_that_its_maker_lacks() -> None:
    with pytest.raises(NotAllowed, match="operate"):
        check_new_token(caller(Role.MEMBER, *Scope), frozenset({Scope.OPERATE}), None)


@pytest.mark.parametrize(
    ("changes", "asked", "ends"),
    [
        ({}, None, None),
        ({}, NOON, NOON),
        ({"expires_at": NOON}, None, NOON),
        ({"expires_at": NOON}, NOON - DAY, NOON - DAY),
        ({"expires_at": NOON}, NOON + DAY, NOON),
        ({"expires_at": NOON, "kind": CredentialKind.SESSION}, NOON + DAY, NOON + DAY),
    ],
)
def test_a_token_made_with_a_token_ends_no_later(
    changes: dict[str, Any], asked: datetime | None, ends: datetime | None
) -> None:
    maker = caller(Role.MEMBER, *Scope, **changes)

    assert check_new_token(maker, frozenset({Scope.READ}), asked) == ends


@given(
    role=st.sampled_from(list(Role)),
    has=SCOPES,
    kind=st.sampled_from([CredentialKind.SESSION, CredentialKind.TOKEN]),
    ends=ENDS,
    asked=SCOPES,
    until=ENDS,
)
def test_no_pair_of_credentials_widens(
    role: Role,
    has: frozenset[Scope],
    kind: CredentialKind,
    ends: object,
    asked: frozenset[Scope],
    until: object,
) -> None:
    caller = Caller(user=USER, role=role, scopes=has, credential="k", kind=kind, expires_at=ends)  # type: ignore[arg-type]
    try:
        given_until = check_new_token(caller, asked, until)  # type: ignore[arg-type]
    except NotAllowed:
        assert not all(caller.may(scope) for scope in asked)
        return
    made = Caller(
        user=USER,
        role=role,
        scopes=asked,
        credential="m",
        kind=CredentialKind.TOKEN,
        expires_at=given_until,
    )
    assert all(caller.may(scope) for scope in Scope if made.may(scope))
    assert made.has_full_access <= caller.has_full_access
    if kind is CredentialKind.TOKEN and caller.expires_at is not None:
        assert given_until is not None
        assert given_until <= caller.expires_at


def test_the_digest_of_a_secret_does_not_reveal_it() -> None:
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
def test_all_addresses_of_a_subscriber_are_one_network(address: str, place: str) -> None:
    assert network_of(address) == place
