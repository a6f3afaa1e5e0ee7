"""Connections: what is kept of them and of their tools, and who may use them."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

from sqlalchemy import select

from backburner.core.accounts import CredentialKind, Scope
from backburner.core.connections.connection import (
    AuthKind,
    Connection,
    ConnectionState,
    ConnectionTool,
    Ticks,
    ToolDefinition,
    ToolNature,
)
from backburner.core.errors import Conflict, NotFound
from backburner.core.ids import ConnectionId, UserId, new_connection_id
from backburner.core.transitions import Step
from backburner.ports import NewCredential
from backburner.store import tables
from backburner.store.tx import Tx
from support.stage.make import MATE, NOON, USER
from support.stage.scene import Scene

MAIL = Connection(
    id=new_connection_id(),
    user_id=USER,
    name="mail",
    title="Mail",
    url="https://mail.example/mcp",
    auth=AuthKind.OAUTH,
    state=ConnectionState.SIGNING_IN,
    catalogue="mail",
    created_at=NOON,
)
WIKI = Connection(
    id=new_connection_id(),
    user_id=USER,
    name="Wiki",
    title="Wiki",
    program="wiki",
    auth=AuthKind.HEADER,
    headers=("X-Key", "X-Team"),
    call_timeout=timedelta(minutes=5),
    created_at=NOON,
)
READ = ConnectionTool(
    definition=ToolDefinition(
        name="read",
        description="Read ünïcode.",
        parameters={"type": "object", "properties": {"of": {"type": "string"}}},
        says_read_only=True,
    ),
    digest="new",
    accepted="old",
    accepted_definition=ToolDefinition(name="read", description="Read."),
    reported="new",
    nature=ToolNature(read_only=True, discloses=True),
    ticks=Ticks(read_only=False),
)
SEND = ConnectionTool(
    definition=ToolDefinition(name="send"),
    digest="send",
    ticks=Ticks(repeatable=True, off=True),
    gone=True,
)


def a_connection_is_found_as_it_was_added_and_only_by_its_owner(scene: Scene) -> None:
    _add(scene, MAIL, WIKI)
    scene.user(MATE)

    # By their bytes: capital letters come first.
    assert scene.run(lambda tx: tx.connections.list(USER)) == [WIKI, MAIL]
    assert scene.run(lambda tx: tx.connections.load(USER, MAIL.id)) == MAIL
    assert scene.run(lambda tx: tx.connections.lock(USER, MAIL.id)) == MAIL
    assert scene.run(lambda tx: tx.connections.find(USER, "mail")) == MAIL
    assert scene.run(lambda tx: tx.connections.find(USER, "wiki")) is None
    assert scene.run(lambda tx: tx.connections.list(MATE)) == []
    assert scene.run(lambda tx: tx.connections.find(MATE, "mail")) is None
    assert scene.run(lambda tx: tx.connections.hold(USER, ["mail", "none"])) == {"mail"}
    assert scene.run(lambda tx: tx.connections.hold(MATE, ["mail"])) == frozenset()
    assert scene.run(lambda tx: tx.connections.hold(USER, [])) == frozenset()
    assert _is_missing(scene, MATE, MAIL.id)
    assert _is_missing(scene, USER, ConnectionId("x_none"))


def a_user_has_one_connection_of_a_name_and_others_have_theirs(scene: Scene) -> None:
    _add(scene, MAIL)
    scene.user(MATE)
    theirs = replace(MAIL, user_id=MATE)
    scene.run(lambda tx: tx.connections.add(theirs))

    same_name = replace(MAIL, id=new_connection_id(), title="Another")
    try:
        scene.run(lambda tx: tx.connections.add(same_name))
    except Conflict:
        assert scene.run(lambda tx: tx.connections.list(USER)) == [MAIL]
        assert scene.run(lambda tx: tx.connections.list(MATE)) == [theirs]
        return
    raise AssertionError


def a_connection_is_changed_and_its_use_recorded(scene: Scene) -> None:
    _add(scene, MAIL, WIKI)
    changed = replace(
        MAIL,
        title="Post",
        state=ConnectionState.READY,
        disabled=True,
        in_chats=False,
        sign_in_revision=3,
        scopes=("mail.read", "offline_access"),
        wanted_scopes=("mail.send", "mail.delete"),
        refused_scopes=("mail.admin",),
        listed_at=NOON,
        expires_at=NOON + timedelta(hours=1),
    )

    scene.run(lambda tx: tx.connections.save(changed))
    assert scene.run(lambda tx: tx.connections.load(USER, MAIL.id)) == changed
    scene.run(lambda tx: tx.connections.note_use(USER, MAIL.id, at=NOON, error="No answer."))
    failed = scene.run(lambda tx: tx.connections.load(USER, MAIL.id))
    later = NOON + timedelta(minutes=1)
    scene.run(lambda tx: tx.connections.note_use(USER, MAIL.id, at=later))
    # Within a minute, only the end of an error is news.
    soon = later + timedelta(seconds=59)
    scene.run(lambda tx: tx.connections.note_use(USER, MAIL.id, at=soon))

    assert failed == replace(changed, last_error="No answer.", last_error_at=NOON)
    used = replace(changed, last_used_at=later)
    assert scene.run(lambda tx: tx.connections.load(USER, MAIL.id)) == used
    assert scene.run(lambda tx: tx.connections.load(USER, WIKI.id)) == WIKI
    much_later = later + timedelta(minutes=1)
    scene.run(lambda tx: tx.connections.note_use(USER, MAIL.id, at=much_later))
    assert scene.run(lambda tx: tx.connections.load(USER, MAIL.id)).last_used_at == much_later


def tools_are_added_replaced_and_removed_one_by_one(scene: Scene) -> None:
    _add(scene, MAIL, WIKI)
    scene.run(lambda tx: tx.connections.put_tools(USER, MAIL.id, [SEND, READ]))
    scene.run(lambda tx: tx.connections.put_tools(USER, WIKI.id, [SEND]))

    assert scene.run(lambda tx: tx.connections.tools(USER, MAIL.id)) == [READ, SEND]
    assert scene.run(lambda tx: tx.connections.tools(MATE, MAIL.id)) == []
    accepted = replace(READ, accepted=READ.digest, accepted_definition=READ.definition)
    scene.run(lambda tx: tx.connections.put_tools(USER, MAIL.id, [accepted]))
    scene.run(lambda tx: tx.connections.remove_tools(USER, MAIL.id, ["send"]))

    # Definitions only of what agents are offered on the connections that are asked for.
    assert accepted.is_offered
    assert not SEND.is_offered
    found = scene.run(lambda tx: tx.connections.tools_of_all(USER, shown=[MAIL.id, WIKI.id]))
    without = replace(SEND, definition=ToolDefinition(name=SEND.name))
    assert found == {MAIL.id: [replace(accepted, accepted_definition=None)], WIKI.id: [without]}
    found = scene.run(lambda tx: tx.connections.tools_of_all(USER))
    assert found[MAIL.id][0].definition == ToolDefinition(name=READ.name)
    assert scene.run(lambda tx: tx.connections.tools_of_all(MATE)) == {}


def the_size_of_the_tools_of_other_connections_is_known(scene: Scene) -> None:
    _add(scene, MAIL, WIKI)
    scene.run(lambda tx: tx.connections.put_tools(USER, MAIL.id, [SEND, READ]))

    assert scene.run(lambda tx: tx.connections.size_of_others(USER, MAIL.id)) == 0
    size = scene.run(lambda tx: tx.connections.size_of_others(USER, WIKI.id))
    assert size > len(SEND.definition.description) + len(READ.definition.description)
    assert scene.run(lambda tx: tx.connections.size_of_others(MATE, WIKI.id)) == 0


def a_conversation_keeps_the_connections_that_it_may_use(scene: Scene) -> None:
    chat, task = scene.chat(), scene.task(connections=("mail", "wiki"))
    none = scene.change(chat, lambda found: Step(conversation=replace(found, connections=())))

    assert chat.connections is None
    assert scene.load(none).connections == ()
    assert scene.load(task).connections == ("mail", "wiki")


def a_removed_connection_leaves_nothing_that_a_later_one_of_its_name_would_get(
    scene: Scene,
) -> None:
    mails = replace(WIKI, name="mails")
    _add(scene, MAIL, mails)
    scene.run(lambda tx: tx.connections.put_tools(USER, MAIL.id, [READ]))
    both, only = scene.task(connections=("mail", "mails")), scene.task(connections=("mail",))
    other = scene.task(connections=("mails",))
    new = NewCredential(
        CredentialKind.TOKEN, Scope, name="editor", connections=frozenset({"mail", "mails"})
    )
    token = scene.run(lambda tx: tx.credentials.issue(USER, "digest", new, now=NOON))

    scene.run(lambda tx: tx.connections.remove(USER, MAIL.id))

    assert scene.run(lambda tx: tx.connections.list(USER)) == [mails]
    count = select(tables.connection_tools.c.name)
    assert scene.run(lambda tx: tx.connection.execute(count).all()) == []
    assert scene.load(both).connections == ("mails",)
    assert scene.load(only).connections == ()
    assert scene.load(other).connections == ("mails",)
    found = scene.run(lambda tx: tx.credentials.find(USER, token, now=NOON))
    assert found is not None
    assert found[0].connections == {"mails"}


def _add(scene: Scene, *added: Connection) -> None:
    scene.user()
    for one in added:
        scene.run(partial(_add_one, one))


def _add_one(one: Connection, tx: Tx) -> None:
    tx.connections.add(one)


def _is_missing(scene: Scene, user: UserId, connection_id: ConnectionId) -> bool:
    try:
        scene.run(lambda tx: tx.connections.load(user, connection_id))
    except NotFound:
        return True
    return False
