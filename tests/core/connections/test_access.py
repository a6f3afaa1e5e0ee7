"""Which connections of a user a conversation may use."""

from dataclasses import replace

import pytest
from support.stage import make
from support.stage.make import MATE, NOON, USER

from backburner.core.connections import access
from backburner.core.connections.connection import Connection, ConnectionState
from backburner.core.conversation import Conversation, Kind
from backburner.core.errors import BadRequest
from backburner.core.ids import ConnectionId

MAIL = Connection(
    id=ConnectionId("x_mail"), user_id=USER, name="mail", title="Mail", created_at=NOON
)
NEWS = replace(MAIL, id=ConnectionId("x_news"), name="news", title="News", in_chats=False)
CHAT = make.conversation()


def names(conversation: Conversation) -> list[str]:
    return [one.name for one in access.usable(conversation, [MAIL, NEWS])]


@pytest.mark.parametrize(
    ("conversation", "expected"),
    [
        (CHAT, ["mail"]),
        (replace(CHAT, connections=("news",)), ["news"]),
        (replace(CHAT, connections=()), []),
        # What a token hands out.
        (replace(CHAT, uses=frozenset()), []),
        (replace(CHAT, uses=frozenset(), connections=("mail",)), ["mail"]),
        (replace(CHAT, kind=Kind.TASK), []),
        (replace(CHAT, kind=Kind.TASK, connections=("mail", "gone")), ["mail"]),
        (replace(CHAT, kind=Kind.JOB), []),
        (replace(CHAT, kind=Kind.JOB, connections=("news",)), ["news"]),
        (replace(CHAT, kind=Kind.DISCOVERY, connections=("mail",)), []),
        (replace(CHAT, user_id=MATE, connections=("mail",)), []),
    ],
)
def test_a_conversation_uses_those_of_its_kind_or_those_that_are_named(
    conversation: Conversation, expected: list[str]
) -> None:
    assert names(conversation) == expected


def test_nothing_uses_a_connection_that_is_disabled() -> None:
    off = replace(MAIL, disabled=True)

    assert access.usable(replace(CHAT, connections=("mail",)), [off]) == []


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("connections", [None, (), ("mail",)])
@pytest.mark.parametrize("uses", [None, frozenset()])
def test_where_nothing_may_be_used_nothing_has_to_be_read(
    kind: Kind, connections: tuple[str, ...] | None, uses: frozenset[str] | None
) -> None:
    conversation = replace(CHAT, kind=kind, connections=connections, uses=uses)  # type: ignore[arg-type]

    assert access.has_any(conversation) == bool(names(conversation))


def test_new_work_has_the_connections_that_it_names_and_no_others() -> None:
    existing = [MAIL, NEWS]
    assert access.choose(None, existing=existing) == ()
    assert access.choose([" news", "mail", "news", ""], existing=existing) == ("news", "mail")
    assert access.choose(["mail"], existing=existing, parent=CHAT, given=["mail"]) == ("mail",)

    off = replace(MAIL, disabled=True)
    assert access.choose(["mail"], existing=[off], parent=CHAT) == ("mail",)

    for limits in ({"parent": CHAT}, {"given": ["mail"]}):
        with pytest.raises(BadRequest, match="may not use news") as refused:
            access.choose(["mail", "news"], existing=existing, **limits)
        assert refused.value.hint == "It may use these connections: mail."
    with pytest.raises(BadRequest) as refused:
        access.choose(["mail"], existing=existing, given=[])
    assert refused.value.hint == "It may use these connections: none."
    with pytest.raises(BadRequest, match="You have no connection mail, nope"):
        access.choose(["mail", "news", "nope"], existing=[NEWS])


def test_work_lacks_what_its_brief_names_and_cannot_use() -> None:
    out, off = (
        replace(MAIL, state=ConnectionState.SIGNED_OUT),
        replace(MAIL, name="off", state=ConnectionState.SIGNED_OUT, disabled=True),
    )
    task = replace(CHAT, kind=Kind.TASK, connections=("mail", "news", "off", "gone"))

    lacking = access.find_lacking(task, [out, off, NEWS])
    assert (lacking.signed_out, lacking.disabled, lacking.gone) == ((out,), (off,), ("gone",))
    assert sorted(lacking.unusable) == ["gone", "off"]
    assert lacking.warnings == (
        "mail is not signed in: the work waits for that. Sign in with `backburner connect mail`.",
        "off is disabled: the work asks first. Enable it with `backburner connections enable off`.",
    )

    besides = access.find_lacking(task, [out, off, NEWS], besides=["gone", "mail", "off"])
    assert besides == access.NOTHING_LACKING
    # A chat may use them, and is not about them.
    assert access.find_lacking(replace(task, kind=Kind.CHAT), [out]) == access.NOTHING_LACKING
