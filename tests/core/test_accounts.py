"""Permissions of callers, secrets and network addresses."""

from typing import Any

import pytest
from support.stage.make import NOON, USER

from backburner.core.accounts import (
    LOCAL_CLIENT_NAME,
    Caller,
    Credential,
    CredentialKind,
    Role,
    Scope,
    ZoneSource,
    check_new_token,
    network_of,
    role_of,
    scopes_of,
    secret_digest,
)
from backburner.core.conversation import Use, Uses
from backburner.core.errors import NotAllowed


def caller(role: Role, *scopes: Scope, **changes: Any) -> Caller:
    usual = {"user": USER, "credential": "k_1", "kind": CredentialKind.TOKEN}
    return Caller(role=role, scopes=frozenset(scopes), **(usual | changes))


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("given", Scope)
@pytest.mark.parametrize("asked", Scope)
def test_a_credential_allows_only_its_own_scopes(role: Role, given: Scope, asked: Scope) -> None:
    for_all = asked not in (Scope.METRICS, Scope.OPERATE)
    is_enough = given is asked and (for_all or role is Role.OPERATOR)

    assert caller(role, given).may(asked) == is_enough


@pytest.mark.parametrize("role", Role)
def test_an_invitation_makes_an_account_with_the_role_of_its_scopes(role: Role) -> None:
    assert role_of(scopes_of(role)) is role


def test_a_session_has_every_scope_of_the_role() -> None:
    member = caller(Role.MEMBER, kind=CredentialKind.SESSION)

    assert {scope for scope in Scope if member.may(scope)} == scopes_of(Role.MEMBER)


@pytest.mark.parametrize(
    ("changes", "is_direct"),
    [
        ({"kind": CredentialKind.SESSION}, True),
        ({"name": LOCAL_CLIENT_NAME}, True),
        ({"name": "calendar"}, False),
        ({}, False),
    ],
)
def test_only_people_in_person_create_credentials(
    changes: dict[str, Any], *, is_direct: bool
) -> None:
    maker = caller(Role.OPERATOR, *Scope, **changes)

    assert maker.is_direct is is_direct
    assert maker.is_local_client is (is_direct and maker.kind is CredentialKind.TOKEN)
    if is_direct:
        check_new_token(maker, frozenset(Scope))
    else:
        with pytest.raises(NotAllowed, match="create credentials"):
            check_new_token(maker, frozenset({Scope.READ}))


@pytest.mark.parametrize(
    ("changes", "uses"),
    [
        ({"kind": CredentialKind.SESSION}, None),
        ({"name": LOCAL_CLIENT_NAME}, None),
        ({"name": "calendar"}, frozenset()),
        ({"name": "calendar", "uses": frozenset(Use)}, frozenset(Use)),
    ],
)
def test_work_of_a_token_uses_what_the_token_was_given(changes: dict[str, Any], uses: Uses) -> None:
    maker = caller(Role.MEMBER, **changes)
    listed = Credential(
        id=maker.credential,
        kind=maker.kind,
        name=maker.name,
        scopes=maker.scopes,
        uses=maker.uses,
        connections=maker.connections,
        created_at=NOON,
        expires_at=None,
        used_at=None,
    )

    assert maker.work_uses == listed.work_uses == uses
    assert maker.work_connections == listed.work_connections


def test_work_of_a_token_uses_the_connections_that_the_token_was_given_by_name() -> None:
    token = caller(Role.MEMBER, name="calendar", connections=frozenset({"mail"}))

    assert caller(Role.MEMBER, kind=CredentialKind.SESSION).work_connections is None
    assert caller(Role.MEMBER, name="calendar").work_connections == frozenset()
    assert token.work_connections == frozenset({"mail"})


def test_a_token_is_refused_scopes_that_its_maker_lacks() -> None:
    maker = caller(Role.MEMBER, *Scope, name=LOCAL_CLIENT_NAME)

    with pytest.raises(NotAllowed, match="operate"):
        check_new_token(maker, frozenset({Scope.OPERATE}))


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
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.77", "127.0.0.1"),
        ("::1", "127.0.0.1"),
        ("::ffff:127.1.2.3", "127.0.0.1"),
        ("", ""),
        ("testclient", "testclient"),
    ],
)
def test_all_addresses_of_a_subscriber_are_one_network(address: str, place: str) -> None:
    assert network_of(address) == place


def test_a_zone_is_replaced_by_one_of_the_same_source_or_of_a_nearer_one() -> None:
    nearest_last = [ZoneSource.NONE, ZoneSource.TERMINAL, ZoneSource.BROWSER, ZoneSource.USER]
    for number, source in enumerate(nearest_last):
        replaced = [before for before in nearest_last if source.may_replace(before)]
        assert replaced == nearest_last[: number + 1]
