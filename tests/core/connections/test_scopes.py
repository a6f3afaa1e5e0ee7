"""Scopes that a server wants besides: asked for once, and refused once that was in vain."""

from dataclasses import replace

import pytest
from support.stage.make import NOON, USER

from backburner.core.connections.connection import Connection, ConnectionState
from backburner.core.connections.scopes import (
    MAX_SCOPES,
    UNNAMED,
    describe_missing,
    name_scopes,
    read_scopes,
    scopes_to_ask_for,
    settle_scopes,
    sign_out,
)
from backburner.core.ids import ConnectionId

MAIL = Connection(
    id=ConnectionId("x_mail"),
    user_id=USER,
    name="mail",
    title="Mail",
    url="https://mcp.mail.example/mcp",
    scopes=("read",),
    created_at=NOON,
)
MANY = [f"s{number}" for number in range(MAX_SCOPES + 5)]


def wants(connection: Connection, *wanted: str) -> Connection:
    found = sign_out(connection, wanted)
    assert found is not None
    return found


def test_what_a_server_wants_besides_is_asked_for_with_what_there_was() -> None:
    found = wants(MAIL, "read", "send")

    assert (found.state, found.wanted_scopes) == (ConnectionState.SIGNED_OUT, ("send",))
    assert scopes_to_ask_for(found) == ("read", "send")
    assert scopes_to_ask_for(found, ["admin", "send"]) == ("read", "send", "admin")
    assert scopes_to_ask_for(MAIL, ["admin"]) == ("read", "admin")
    # Else those count that the server names when the sign-in begins.
    assert scopes_to_ask_for(MAIL) == ()


def test_what_several_calls_want_is_asked_for_together() -> None:
    assert wants(wants(MAIL, "send"), "admin").wanted_scopes == ("admin", "send")


def test_what_was_given_is_wanted_no_more() -> None:
    found = settle_scopes(wants(MAIL, "send"), asked=("read", "send"), given=("read", "send"))

    assert found.scopes == ("read", "send")
    assert (found.wanted_scopes, found.refused_scopes) == ((), ())


def test_what_was_asked_for_in_vain_is_not_asked_for_again_until_it_is_given() -> None:
    refused = settle_scopes(wants(MAIL, "send"), asked=("read", "send"), given=("read",))

    assert (refused.wanted_scopes, refused.refused_scopes) == ((), ("send",))
    assert sign_out(refused, ("read", "send")) is None
    assert scopes_to_ask_for(refused) == ()
    # Something else is news, and so is the end of the sign-in itself.
    assert wants(refused, "send", "admin").wanted_scopes == ("send", "admin")
    assert wants(refused).state is ConnectionState.SIGNED_OUT
    given = settle_scopes(refused, asked=("read", "send"), given=("read", "send"))
    assert given.refused_scopes == ()


def test_a_server_that_refuses_what_was_given_is_not_signed_in_to_again() -> None:
    assert sign_out(MAIL, ("read",)) is None


def test_what_a_server_wants_while_its_user_signs_in_is_asked_for_afterwards() -> None:
    found = settle_scopes(wants(MAIL, "send"), asked=("read",), given=("read",))

    assert found.refused_scopes == ()
    assert wants(found, "send").wanted_scopes == ("send",)


def test_scopes_without_a_name_are_worth_one_sign_in_unless_that_brings_more() -> None:
    asked = wants(MAIL, UNNAMED)
    assert scopes_to_ask_for(asked) == ("read",)

    in_vain = settle_scopes(asked, asked=("read",), given=("read",))
    more = settle_scopes(asked, asked=("read",), given=("read", "send"))

    assert sign_out(in_vain, (UNNAMED,)) is None
    assert more.refused_scopes == ()


def test_however_much_a_server_wants_the_last_of_it_is_remembered() -> None:
    found = MAIL
    for scope in MANY:
        asked = wants(found, scope)
        found = settle_scopes(asked, asked=scopes_to_ask_for(asked), given=found.scopes)
        assert sign_out(found, (scope,)) is None

    assert len(found.refused_scopes) == MAX_SCOPES
    assert len(wants(MAIL, *MANY).wanted_scopes) == MAX_SCOPES


def test_a_connection_that_nobody_has_signed_in_to_stays_so() -> None:
    new = replace(MAIL, state=ConnectionState.SIGNING_IN)

    assert wants(new, "send").state is ConnectionState.SIGNING_IN


@pytest.mark.parametrize("text", ["", "a b", 'a"b', "a\\b", "ü", "a\x1b[31m", "x" * 201, UNNAMED])
def test_what_no_scope_can_be_is_left_out(text: str) -> None:
    assert read_scopes(["read", text]) == ("read",)


def test_people_are_shown_the_first_few_scopes() -> None:
    assert name_scopes(["read", UNNAMED, "send"]) == "read, send"
    assert name_scopes([UNNAMED]) == ""
    assert name_scopes(MANY).endswith("s4 and 100 more")
    assert name_scopes(["x" * 200]) == "x" * 80 + "…"


def test_an_agent_is_told_what_is_missing() -> None:
    assert "for this call (send), and" in describe_missing(MAIL, ("send",))
    assert "for this call, and" in describe_missing(MAIL, (UNNAMED,))
