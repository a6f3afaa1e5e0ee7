"""Files of messages are kept while the message is there, and gone with it."""

from collections.abc import Callable
from datetime import timedelta

from backburner.core.content.file import FileOrigin, FileReference, StoredFile, digest_of
from backburner.core.conversation import Conversation, MessageRole, Source
from backburner.core.errors import BackburnerError, NotFound
from backburner.core.ids import MessageId, RunId, UserId, new_message_id, new_run_id
from backburner.core.transitions import NewMessage
from backburner.store.tx import Tx
from support.stage.make import MATE, NOON, USER
from support.stage.scene import Scene

DAY = timedelta(days=1)


def files_of_a_message_are_read_with_it(scene: Scene) -> None:
    chat = scene.chat()
    one, two = _upload(scene, b"1"), _upload(scene, b"2")
    _say(scene, chat, one, two)

    (message,) = scene.run(lambda tx: tx.messages.recent(USER, chat.id, limit=9))

    assert message.files == (one, two)


def a_file_that_is_uploaded_comes_from_the_first_conversation_that_names_it(scene: Scene) -> None:
    chat, other = scene.chat(), scene.chat()
    file = _upload(scene, b"data")
    assert scene.run(lambda tx: tx.files.load(USER, file.digest)).origin == FileOrigin(None)
    for place in (chat, other):
        _say(scene, place, file)

    assert scene.run(lambda tx: tx.files.load(USER, file.digest)).origin == FileOrigin(chat.id)
    assert [one.digest for one in scene.run(lambda tx: tx.files.page(USER, None, limit=9))] == [
        file.digest
    ]


def an_upload_that_no_message_names_is_deleted_after_a_while(scene: Scene) -> None:
    chat = scene.chat()
    named, unnamed = _upload(scene, b"named"), _upload(scene, b"unnamed")
    _say(scene, chat, named)
    _sweep(scene)
    assert scene.run(lambda tx: tx.files.load(USER, unnamed.digest)).size == 7

    scene.clock.advance(2 * DAY)
    _sweep(scene)

    _refuses(NotFound, lambda: scene.run(lambda tx: tx.files.load(USER, unnamed.digest)))
    assert scene.run(lambda tx: tx.files.load(USER, named.digest)).size == 5


def a_message_of_its_user_is_not_stored_without_its_file(scene: Scene) -> None:
    chat = scene.chat()
    scene.user(MATE)
    theirs = _upload(scene, b"theirs", user=MATE)
    for file in (theirs, _reference(b"nothing")):
        _refuses(NotFound, lambda file=file: _say(scene, chat, file))  # type: ignore[misc]

    assert scene.run(lambda tx: tx.messages.recent(USER, chat.id, limit=9)) == ()


def what_a_run_handed_over_is_named_though_its_owner_has_deleted_it(scene: Scene) -> None:
    chat = scene.chat()
    file = _upload(scene, b"data")
    scene.run(lambda tx: tx.files.remove(USER, file.digest))
    _say(scene, chat, file, role=MessageRole.ASSISTANT)

    (message,) = scene.run(lambda tx: tx.messages.recent(USER, chat.id, limit=9))
    assert message.files == (file,)


def files_go_with_the_message_that_is_replaced(scene: Scene) -> None:
    chat, other = scene.chat(), scene.chat()
    gone, kept, shared = (_upload(scene, data) for data in (b"gone", b"kept", b"shared"))
    _say(scene, chat, kept)
    _say(scene, chat, gone, shared)
    _say(scene, other, gone)
    scene.run(lambda tx: tx.messages.remove_last(USER, chat.id))
    _say(scene, chat, shared)
    scene.run(lambda tx: tx.messages.detach_replaced(USER, chat.id))
    assert scene.run(lambda tx: tx.files.load(USER, gone.digest)).size == 4, "In the other chat."

    scene.run(lambda tx: tx.messages.remove_last(USER, other.id))
    scene.run(lambda tx: tx.messages.detach_replaced(USER, other.id))

    _refuses(NotFound, lambda: scene.run(lambda tx: tx.files.load(USER, gone.digest)))
    for file in (kept, shared):
        found = scene.run(lambda tx, file=file: tx.files.load(USER, file.digest))  # type: ignore[misc]
        assert found.digest == file.digest


def files_go_with_the_conversation_of_their_message(scene: Scene) -> None:
    chat = scene.chat()
    file = _upload(scene, b"data")
    _say(scene, chat, file)

    scene.run(lambda tx: tx.conversations.delete(USER, chat.id))

    _refuses(NotFound, lambda: scene.run(lambda tx: tx.files.load(USER, file.digest)))


def files_of_the_newest_messages_are_found_of_all_runs_or_of_some(scene: Scene) -> None:
    chat, run = scene.chat(), new_run_id()
    one, two, three = (_upload(scene, data) for data in (b"1", b"2", b"3"))
    _say(scene, chat, one, role=MessageRole.ASSISTANT, run=run)
    _say(scene, chat)
    _say(scene, chat, two, three)

    def find(tx: Tx, limit: int = 9, runs: list[RunId] | None = None) -> list[str]:
        found = tx.messages.files_of(USER, chat.id, limit=limit, runs=runs)
        return [file.name for file in found]

    assert scene.run(find) == [two.name, three.name, one.name]
    assert scene.run(lambda tx: find(tx, limit=1)) == [two.name, three.name]
    assert scene.run(lambda tx: find(tx, runs=[run])) == [one.name]


def _upload(scene: Scene, data: bytes, *, user: UserId = USER) -> FileReference:
    file = StoredFile(
        digest=digest_of(data),
        size=len(data),
        media_type="text/plain",
        name="",
        origin=FileOrigin(),
        created_at=NOON,
    )
    scene.run(lambda tx: tx.files.begin(user, file))
    scene.run(lambda tx: tx.files.write(user, file.digest, 0, data))
    return _reference(data)


def _reference(data: bytes) -> FileReference:
    return FileReference(
        digest=digest_of(data), size=len(data), media_type="text/plain", name=data.decode()
    )


def _say(
    scene: Scene,
    where: Conversation,
    *files: FileReference,
    role: MessageRole = MessageRole.USER,
    run: RunId | None = None,
) -> MessageId:
    which = new_message_id()
    message = NewMessage(role=role, content="Here.", source=Source.CHAT, id=which, files=files)
    scene.run(lambda tx: tx.messages.append(USER, where.id, [message], run_id=run))
    return which


def _sweep(scene: Scene) -> None:
    while scene.run(lambda tx: tx.files.sweep(before=scene.clock.now - DAY)):
        pass


def _refuses(kind: type[BackburnerError], attempt: Callable[[], object]) -> None:
    try:
        attempt()
    except kind:
        return
    raise AssertionError("Nothing refused it.")
