"""Notices are seen where their work is seen, and every page of the user hears of it."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from support.stage import make
from support.stage.make import MATE, USER
from support.stage.scene import Scene

from backburner.core import transitions
from backburner.core.conversation import Conversation
from backburner.core.notice import Notice, NoticeKind
from backburner.core.transitions.step import worker_message
from backburner.ports import EventKind
from backburner.store.db import Database
from backburner.store.tx import Tx

FAILED = Notice(NoticeKind.FAILURE, "It failed.")


@pytest.fixture
def scene(database: Database) -> Scene:
    return Scene(database)


def tell(scene: Scene, conversation: Conversation) -> None:
    told = [FAILED]
    scene.run(lambda tx: tx.notices.put(conversation, told, cause=None, run_id=None))


def count(scene: Scene, *, limit: int = 9) -> int:
    return scene.run(lambda tx: tx.browse.count_unseen_notices(USER, limit=limit))


def heard(scene: Scene, work: Callable[[Tx], object]) -> list[tuple[str, str | None]]:
    """Do something, and return the changes that the user's pages hear of."""
    before = scene.run(lambda tx: tx.events.latest(USER))
    scene.run(work)
    changes = scene.run(lambda tx: tx.events.after(USER, before, limit=9))
    return [(change.kind, change.conversation) for change in changes]


def test_unseen_notices_are_counted_up_to_a_limit(scene: Scene) -> None:
    chat, mates = scene.chat(), scene.chat(MATE)
    for _ in range(3):
        tell(scene, chat)
    tell(scene, mates)

    assert (count(scene), count(scene, limit=2)) == (3, 2)
    # What is deleted is not listed, nor counted.
    scene.run(lambda tx: tx.marks.hide(tx.conversations.lock(USER, chat.id), root=chat.id))
    assert count(scene) == 0


def test_other_pages_hear_that_notices_were_seen(scene: Scene) -> None:
    chat = scene.chat()
    tell(scene, chat)
    tell(scene, chat)
    last, first = scene.run(lambda tx: tx.browse.notices(USER, None, unseen=True, limit=9))

    change = [(EventKind.NOTICE, None)]
    assert heard(scene, lambda tx: tx.notices.mark_seen(USER, [first.id])) == change
    assert heard(scene, lambda tx: tx.notices.mark_seen(USER, [first.id])) == []
    assert heard(scene, lambda tx: tx.notices.mark_seen_until(USER, last.id)) == change
    assert heard(scene, lambda tx: tx.notices.mark_seen_until(USER, last.id)) == []
    assert count(scene) == 0


def test_who_sees_a_conversation_has_seen_its_notices(scene: Scene) -> None:
    chat, other = scene.chat(), scene.chat()
    tell(scene, chat)
    tell(scene, other)
    scene.clock.advance(timedelta(minutes=1))
    scene.run(lambda tx: tx.messages.append(USER, chat.id, worker_message("Hello."), run_id=None))
    message = scene.run(lambda tx: tx.browse.messages(USER, chat.id, None, limit=1))[0]
    scene.clock.advance(timedelta(minutes=1))
    tell(scene, chat)

    def see(tx: Tx) -> object:
        return tx.marks.see(tx.conversations.lock(USER, chat.id))

    # Up to a message: what came after it is new.
    scene.run(lambda tx: tx.marks.see(tx.conversations.lock(USER, chat.id), message.id))
    assert count(scene) == 2
    # Its messages were all seen before.
    assert (EventKind.NOTICE, chat.id) in heard(scene, see)
    assert count(scene) == 1
    assert heard(scene, see) == []


def test_an_answer_shows_that_the_notice_of_its_question_was_seen(scene: Scene) -> None:
    task = scene.task()
    tell(scene, task)
    scene.change(task, lambda found: transitions.ask_owner(found, make.question()))
    assert count(scene) == 2

    scene.run(lambda tx: tx.notices.mark_question_seen(USER, task.id, make.QUESTION))

    (left,) = scene.run(lambda tx: tx.browse.notices(USER, None, unseen=True, limit=9))
    assert left.kind is NoticeKind.FAILURE
