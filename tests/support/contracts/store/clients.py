"""A token has one conversation for what is handed out with it, and finds it again."""

from datetime import timedelta

from backburner.core import transitions
from backburner.core.accounts import CredentialKind, Scope
from backburner.core.conversation import Conversation
from backburner.core.errors import NotFound
from backburner.core.ids import ConversationId, UserId
from backburner.ports import NewCredential
from support.stage.make import MATE, USER
from support.stage.scene import Scene

HOUR = timedelta(hours=1)


def a_token_finds_its_conversation_again(scene: Scene) -> None:
    chat, token = scene.chat(), _token(scene)
    assert _place(scene, token) is None
    _keep(scene, token, chat)

    assert _place(scene, token) == chat.id
    assert scene.database.run(lambda tx: tx.mcp_clients.name_of(USER, token)) == "editor"


def a_token_has_no_conversation_that_is_archived_or_gone(scene: Scene) -> None:
    chat, token = scene.chat(), _token(scene)
    _keep(scene, token, chat)
    scene.change(chat, lambda found: transitions.archive(found, now=scene.clock.now))
    assert _place(scene, token) is None

    other = scene.chat()
    _keep(scene, token, other)
    scene.database.run(lambda tx: tx.conversations.delete(USER, other.id))
    assert _place(scene, token) is None


def the_conversation_of_a_token_is_nobody_elses(scene: Scene) -> None:
    chat, token = scene.chat(), _token(scene)
    scene.user(MATE)
    _keep(scene, token, chat)

    assert _place(scene, token, MATE) is None
    assert _former(scene, MATE) is None
    scene.database.run(
        lambda tx: tx.mcp_clients.remember_conversation(MATE, token, ConversationId("c_theirs"))
    )
    assert _place(scene, token) == chat.id
    try:
        scene.database.run(lambda tx: tx.mcp_clients.name_of(MATE, token))
    except NotFound:
        return
    raise AssertionError


def a_token_leaves_its_conversation_to_those_of_its_name_when_it_ends(scene: Scene) -> None:
    first, second = scene.chat(), scene.chat()
    revoked = _token(scene)
    scene.clock.advance(HOUR)
    expiring = _token(scene, lives=HOUR)
    _keep(scene, revoked, first)
    assert _former(scene) is None

    kind = CredentialKind.TOKEN
    scene.database.run(lambda tx: tx.credentials.revoke(USER, revoked, kind, now=scene.clock.now))
    assert _former(scene) == first.id
    assert _former(scene, name="other") is None
    _keep(scene, expiring, second)
    assert _former(scene) == first.id
    scene.clock.advance(HOUR)
    assert _former(scene) == second.id


def _token(scene: Scene, *, lives: timedelta | None = None) -> str:
    scene.user()
    now = scene.clock.now
    digest = f"digest of {now} {lives}"
    return scene.database.run(
        lambda tx: tx.credentials.issue(
            USER,
            digest,
            NewCredential(
                CredentialKind.TOKEN,
                [Scope.WRITE],
                name="editor",
                expires_at=now + lives if lives else None,
            ),
            now=now,
        )
    )


def _keep(scene: Scene, token: str, chat: Conversation) -> None:
    scene.database.run(lambda tx: tx.mcp_clients.remember_conversation(USER, token, chat.id))


def _place(scene: Scene, token: str, user: UserId = USER) -> ConversationId | None:
    return scene.database.run(lambda tx: tx.mcp_clients.conversation_of(user, token))


def _former(scene: Scene, user: UserId = USER, name: str = "editor") -> ConversationId | None:
    now = scene.clock.now
    return scene.database.run(lambda tx: tx.mcp_clients.former_conversation_of(user, name, now=now))
