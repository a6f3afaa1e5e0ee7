"""Files are kept as long as something names them, for their owner only."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from sqlalchemy import func, select

from backburner.core.content.file import (
    PIECE_BYTES,
    FileOrigin,
    FileReference,
    StoredFile,
    digest_of,
    pieces,
)
from backburner.core.conversation import Conversation
from backburner.core.errors import BackburnerError, Conflict, NotFound
from backburner.core.ids import CallId, RunId, UserId, new_call_id
from backburner.core.schedule import Interval
from backburner.core.tool_policy import Tool, ToolCall
from backburner.ports import CallEnd, Claim
from backburner.store.tables import file_pieces
from backburner.store.tx import Tx
from support.stage.make import MATE, NOON, USER
from support.stage.scene import Scene

CALL = ToolCall(Tool(server="s", name="t", definition="d"), {})
LARGE = b"0123456789abcdef" * (PIECE_BYTES // 8)
DAY = timedelta(days=1)


def a_file_is_read_as_it_was_written(scene: Scene) -> None:
    chat = scene.chat()
    digest = _store(scene, chat, LARGE + b"end", name="large.bin")

    found = scene.run(lambda tx: tx.files.load(USER, digest))
    read = scene.run(lambda tx: b"".join(tx.files.piece(USER, digest, piece) for piece in range(3)))

    assert (found.size, found.name, found.created_at) == (len(read), "large.bin", NOON)
    assert found.origin == FileOrigin(chat.id)
    assert read == LARGE + b"end"


def every_byte_can_be_stored_and_none(scene: Scene) -> None:
    chat, data = scene.chat(), bytes(range(256))
    digest, empty = _store(scene, chat, data), _store(scene, chat, b"")

    assert scene.run(lambda tx: tx.files.piece(USER, digest, 0)) == data
    assert scene.run(lambda tx: tx.files.load(USER, empty)).size == 0
    assert scene.run(lambda tx: tx.files.total_size(USER)) == 256


def equal_bytes_of_two_users_are_two_files(scene: Scene) -> None:
    chat, other = scene.chat(), scene.chat(MATE)
    digest = _store(scene, chat, b"same", name="mine.txt")
    _refuses(NotFound, lambda: scene.run(lambda tx: tx.files.load(MATE, digest)))
    _store(scene, other, b"same", name="theirs.txt", user=MATE)

    scene.run(lambda tx: tx.files.remove(USER, digest))
    _sweep(scene)

    assert scene.run(lambda tx: tx.files.load(MATE, digest)).name == "theirs.txt"
    assert scene.run(lambda tx: tx.files.piece(MATE, digest, 0)) == b"same"
    _refuses(NotFound, lambda: scene.run(lambda tx: tx.files.piece(USER, digest, 0)))


def a_file_that_is_there_already_is_not_stored_again(scene: Scene) -> None:
    chat = scene.chat()
    file = _file(chat, b"same")
    assert scene.run(lambda tx: tx.files.begin(USER, file))
    assert scene.run(lambda tx: tx.files.begin(USER, file)), "It has no bytes yet."
    _write(scene, file, b"same")

    assert not scene.run(lambda tx: tx.files.begin(USER, file))
    assert scene.run(lambda tx: tx.files.total_size(USER)) == 4


def a_file_without_all_its_bytes_is_neither_found_nor_named(scene: Scene) -> None:
    chat = scene.chat()
    file = _file(chat, LARGE)
    scene.run(lambda tx: tx.files.begin(USER, file))
    scene.run(lambda tx: tx.files.write(USER, file.digest, 0, next(pieces(LARGE))))

    _refuses(NotFound, lambda: scene.run(lambda tx: tx.files.load(USER, file.digest)))
    _refuses(Conflict, lambda: _use(scene, chat, file.digest))
    assert scene.run(lambda tx: tx.files.page(USER, None, limit=9)) == []


def files_are_listed_newest_first_page_by_page(scene: Scene) -> None:
    chat = scene.chat()
    stored = [_store(scene, chat, b"1"), _store(scene, chat, b"2")]
    scene.clock.advance(DAY)
    stored.append(_store(scene, chat, b"3"))

    first = scene.run(lambda tx: tx.files.page(USER, None, limit=2))
    key = (first[-1].created_at, first[-1].digest)
    rest = scene.run(lambda tx: tx.files.page(USER, key, limit=2))

    listed = [file.digest for file in (*first, *rest)]
    assert listed == [stored[2], *sorted(stored[:2], reverse=True)]


def a_file_is_found_where_it_is_named_and_next_to_it(scene: Scene) -> None:
    chat, elsewhere = scene.chat(), scene.chat()
    child = scene.task(parent_id=chat.id)
    digest, of_child = _store(scene, chat, b"1"), _store(scene, child, b"2")
    short = digest[:16]

    assert scene.run(lambda tx: tx.files.find(USER, short, chat.id)).digest == digest
    assert scene.run(lambda tx: tx.files.find(USER, digest, child.id)).digest == digest
    assert scene.run(lambda tx: tx.files.find(USER, of_child, chat.id)).digest == of_child
    _refuses(NotFound, lambda: scene.run(lambda tx: tx.files.find(USER, short, elsewhere.id)))
    _refuses(Conflict, lambda: scene.run(lambda tx: tx.files.find(USER, "", chat.id)))


def a_file_goes_with_the_last_conversation_that_names_it(scene: Scene) -> None:
    first, second = scene.chat(), scene.chat()
    shared, own = _store(scene, first, b"shared"), _store(scene, first, b"own")
    _use(scene, second, shared)

    scene.run(lambda tx: tx.conversations.delete(USER, first.id))
    assert _files(scene) == [shared]
    _refuses(NotFound, lambda: scene.run(lambda tx: tx.files.load(USER, own)))
    _sweep(scene)
    assert scene.run(lambda tx: tx.files.piece(USER, shared, 0)) == b"shared"
    _refuses(NotFound, lambda: scene.run(lambda tx: tx.files.piece(USER, own, 0)))
    scene.run(lambda tx: tx.conversations.delete(USER, second.id))
    _sweep(scene)

    assert _files(scene) == []
    assert not scene.dump()["files"]
    assert not scene.dump()["file_pieces"]


def a_file_goes_with_the_last_run_that_names_it(scene: Scene) -> None:
    scene.task(Interval(DAY, anchor=NOON))
    digests, shared = list[str](), _store(scene, scene.chat(), b"shared", keep=False)
    for number in range(3):
        claim = scene.begin_work()
        digest = _store(scene, claim.conversation, f"{number}".encode(), keep=False)
        _end_call(scene, claim, digest, shared)
        digests.append(digest)
        scene.finish(claim)
        scene.clock.advance(DAY)

    scene.run(lambda tx: tx.runs.prune(before=scene.clock.now + 9 * DAY, limit=9))

    assert sorted(_files(scene)) == sorted([digests[-1], shared])


def the_result_of_a_call_names_its_files(scene: Scene) -> None:
    task = scene.task()
    claim = scene.begin_work()
    digest = _store(scene, task, b"image", keep=False)

    call_id = _end_call(scene, claim, digest)

    (entry,) = scene.run(lambda tx: tx.tool_calls.of_run(USER, claim.run.id))
    (row,) = scene.run(lambda tx: tx.browse.calls(USER, claim.run.id))
    (alone,) = scene.run(lambda tx: tx.browse.calls(USER, claim.run.id, with_results=False))
    assert (entry.id, row.files) == (call_id, entry.files)
    assert scene.run(lambda tx: tx.browse.call(USER, claim.run.id, call_id)) == row
    assert (row.result, alone) == (entry.result, replace(row, result=None))
    with pytest.raises(NotFound):
        scene.run(lambda tx: tx.browse.call(USER, RunId("r_other"), call_id))
    assert entry.files == (_reference(digest),)


def a_file_that_its_owner_deleted_is_named_all_the_same(scene: Scene) -> None:
    task = scene.task()
    claim = scene.begin_work()
    digest = _store(scene, task, b"image", keep=False)
    scene.run(lambda tx: tx.files.remove(USER, digest))

    _end_call(scene, claim, digest)

    (entry,) = scene.run(lambda tx: tx.tool_calls.of_run(USER, claim.run.id))
    assert entry.files == (_reference(digest),)


def a_file_that_nothing_names_is_forgotten_after_a_while(scene: Scene) -> None:
    chat = scene.chat()
    _store(scene, chat, b"lost", keep=False)
    begun = _file(chat, LARGE)
    scene.run(lambda tx: tx.files.begin(USER, begun))
    kept = _store(scene, chat, b"kept")
    scene.clock.advance(DAY)
    late = _store(scene, chat, b"late", keep=False)

    _sweep(scene)

    assert _files(scene) == [kept]
    assert scene.run(lambda tx: tx.files.load(USER, late)).size == 4


def a_file_that_is_stored_again_is_not_forgotten_meanwhile(scene: Scene) -> None:
    chat = scene.chat()
    digest = _store(scene, chat, b"again", keep=False)
    scene.clock.advance(DAY)
    scene.run(lambda tx: tx.files.begin(USER, _file(chat, b"again")))

    _sweep(scene)

    _use(scene, chat, digest)
    assert _files(scene) == [digest]


def bytes_are_deleted_step_by_step(scene: Scene) -> None:
    chat, data = scene.chat(), b"0123456789abcdef" * (PIECE_BYTES // 16) * 20
    digest = _store(scene, chat, data)
    scene.run(lambda tx: tx.files.remove(USER, digest))

    counts = [_count_pieces(scene)]
    while scene.run(lambda tx: tx.files.sweep(before=NOON)):
        counts.append(_count_pieces(scene))

    assert counts == [20, 16, 12, 8, 4, 0]
    assert not scene.dump()["files"]


def a_file_whose_bytes_are_being_deleted_can_be_stored_again(scene: Scene) -> None:
    chat, data = scene.chat(), b"0123456789abcdef" * (PIECE_BYTES // 16) * 10
    digest = _store(scene, chat, data, name="old.bin")
    scene.run(lambda tx: tx.files.remove(USER, digest))
    assert scene.run(lambda tx: tx.files.total_size(USER)) == 0
    assert scene.run(lambda tx: tx.files.sweep(before=NOON))
    _refuses(NotFound, lambda: _use(scene, chat, digest))

    _store(scene, chat, data, name="new.bin")
    _sweep(scene)

    assert scene.run(lambda tx: tx.files.load(USER, digest)).name == "new.bin"
    assert _count_pieces(scene) == 10


def files_go_with_their_user(scene: Scene) -> None:
    _store(scene, scene.chat(), LARGE)
    _store(scene, scene.chat(MATE), LARGE, user=MATE)

    scene.run(lambda tx: tx.personal_data.erase(USER))

    dump = scene.dump()
    for table in ("files", "file_pieces", "file_uses"):
        assert dump[table], table
        assert all(MATE in row for row in dump[table])


def _store(
    scene: Scene,
    where: Conversation,
    data: bytes,
    *,
    name: str = "",
    user: UserId = USER,
    keep: bool = True,
) -> str:
    file = replace(_file(where, data), name=name)
    if scene.run(lambda tx: tx.files.begin(user, file)):
        _write(scene, file, data, user)
    if keep:
        _use(scene, where, file.digest, user)
    return file.digest


def _file(where: Conversation, data: bytes) -> StoredFile:
    return StoredFile(
        digest=digest_of(data),
        size=len(data),
        media_type="application/octet-stream",
        name="",
        origin=FileOrigin(where.id),
        created_at=NOON,
    )


def _write(scene: Scene, file: StoredFile, data: bytes, user: UserId = USER) -> None:
    def write(number: int, piece: bytes, tx: Tx) -> None:
        tx.files.write(user, file.digest, number, piece)

    for number, piece in enumerate(pieces(data)):
        scene.run(partial(write, number, piece))


def _use(scene: Scene, where: Conversation, digest: str, user: UserId = USER) -> None:
    call_id = new_call_id()
    scene.run(lambda tx: tx.files.use(user, digest, conversation_id=where.id, used_by=call_id))


def _end_call(scene: Scene, claim: Claim, *digests: str) -> CallId:
    call_id, named = new_call_id(), [_reference(digest) for digest in digests]
    scene.run(lambda tx: tx.tool_calls.begin(claim.turn, call_id, CALL, read_only=False))
    scene.run(lambda tx: tx.tool_calls.end(claim.turn, CallEnd(call_id, "Done.", files=named)))
    return call_id


def _reference(digest: str) -> FileReference:
    return FileReference(digest=digest, size=5, media_type="image/png", name="ä.png", shown=True)


def _files(scene: Scene) -> list[str]:
    return [file.digest for file in scene.run(lambda tx: tx.files.page(USER, None, limit=9))]


def _count_pieces(scene: Scene) -> int:
    count = select(func.count()).select_from(file_pieces)
    return scene.run(lambda tx: tx.connection.execute(count).scalar_one())


def _sweep(scene: Scene) -> None:
    """Delete the bytes of deleted files, and of those that nothing has used until now."""
    while scene.run(lambda tx: tx.files.sweep(before=scene.clock.now)):
        pass


def _refuses(error: type[BackburnerError], attempt: Callable[[], object]) -> None:
    try:
        attempt()
    except error:
        return
    raise AssertionError("It was not refused.")
