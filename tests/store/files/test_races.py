"""Files that are named, stored and deleted at the same time, on PostgreSQL."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from support.people.files import put_file
from support.stage.make import NOON, USER
from support.stage.scene import Scene

from backburner.core.content.file import FileOrigin, StoredFile, digest_of
from backburner.core.conversation import Conversation
from backburner.core.ids import new_call_id
from backburner.store.db import Database
from backburner.store.tx import Tx

#: Of a transaction that waits for another one; only what is broken takes as long.
BOUND = 20
#: As long as a transaction that waits for nobody takes at most, in practice.
MOMENT = 0.3


@pytest.fixture
def scene(postgres: Database) -> Scene:
    return Scene(postgres)


@pytest.fixture
def threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(2)


def while_open(
    scene: Scene,
    threads: ThreadPoolExecutor,
    first: Callable[[Tx], object],
    second: Callable[[Tx], object],
) -> "Future[Any]":
    """Begin the second transaction after the first has done its work, and before it commits."""
    has_worked, may_commit = Event(), Event()

    def work(tx: Tx) -> None:
        first(tx)
        has_worked.set()
        assert may_commit.wait(BOUND)

    one = threads.submit(scene.run, work)
    assert has_worked.wait(BOUND)
    other = threads.submit(scene.run, second)
    done_early = True
    try:
        other.exception(MOMENT)
    except TimeoutError:
        done_early = False
    may_commit.set()
    one.result(BOUND)
    other.exception(BOUND)
    assert not done_early, "It did not wait."
    return other


def test_a_file_that_is_being_named_is_not_deleted_with_its_last_use(
    scene: Scene, threads: ThreadPoolExecutor
) -> None:
    old, new = scene.chat(), scene.chat()
    digest = scene.run(lambda tx: put_file(tx, USER, old.id, b"data"))

    while_open(
        scene,
        threads,
        lambda tx: use(tx, new, digest),
        lambda tx: tx.conversations.delete(USER, old.id),
    ).result()

    assert scene.run(lambda tx: tx.files.load(USER, digest)).size == 4
    assert not scene.run(lambda tx: tx.files.sweep(before=scene.clock.now.replace(year=2999)))
    assert scene.run(lambda tx: tx.files.piece(USER, digest, 0)) == b"data"


def test_a_file_that_is_being_deleted_is_stored_anew(
    scene: Scene, threads: ThreadPoolExecutor
) -> None:
    old, new = scene.chat(), scene.chat()
    digest = scene.run(lambda tx: put_file(tx, USER, old.id, b"data"))

    while_open(
        scene,
        threads,
        lambda tx: tx.conversations.delete(USER, old.id),
        lambda tx: put_file(tx, USER, new.id, b"data"),
    ).result()

    assert scene.run(lambda tx: tx.files.load(USER, digest)).origin.conversation_id == new.id
    assert scene.run(lambda tx: tx.files.piece(USER, digest, 0)) == b"data"


def test_two_processes_may_store_the_same_bytes(scene: Scene, threads: ThreadPoolExecutor) -> None:
    one, two = scene.chat(), scene.chat()

    while_open(
        scene,
        threads,
        lambda tx: put_file(tx, USER, one.id, b"data"),
        lambda tx: put_file(tx, USER, two.id, b"data"),
    ).result()

    assert scene.run(lambda tx: tx.files.total_size(USER)) == 4
    scene.run(lambda tx: tx.conversations.delete(USER, one.id))
    assert scene.run(lambda tx: tx.files.piece(USER, digest_of(b"data"), 0)) == b"data"


def test_a_file_that_is_stored_again_is_not_pruned_meanwhile(
    scene: Scene, threads: ThreadPoolExecutor
) -> None:
    chat = scene.chat()
    file = StoredFile(
        digest=digest_of(b"data"),
        size=4,
        media_type="text/plain",
        name="",
        origin=FileOrigin(chat.id),
        created_at=NOON,
    )
    scene.run(lambda tx: tx.files.begin(USER, file))
    scene.run(lambda tx: tx.files.write(USER, file.digest, 0, b"data"))

    while_open(
        scene,
        threads,
        lambda tx: use(tx, chat, file.digest),
        lambda tx: tx.files.sweep(before=scene.clock.now.replace(year=2999)),
    ).result()

    assert scene.run(lambda tx: tx.files.load(USER, file.digest)).size == 4


def use(tx: Tx, where: Conversation, digest: str) -> None:
    tx.files.use(USER, digest, conversation_id=where.id, used_by=new_call_id())
