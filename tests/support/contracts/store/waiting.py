"""Whatever reaches a conversation waits in its inbox until a run has served it."""

from dataclasses import replace

from sqlalchemy import select

from backburner.core import transitions
from backburner.core.conversation import Conversation
from backburner.core.ids import ItemId, new_item_id
from backburner.core.run import ItemKind, NewItem, RunKind, RunStatus
from backburner.core.schedule import Event
from backburner.ports import Reply
from backburner.store import tables
from support.stage.make import NOON, USER
from support.stage.scene import Scene


def an_item_waits_until_a_run_that_loaded_it_commits(scene: Scene) -> None:
    chat = scene.chat()
    scene.say(chat)
    claim = scene.begin_reply()
    loaded = scene.items(claim)
    assert scene.waiting(chat, RunKind.REPLY) == loaded

    scene.finish(claim, "Hello.", served=loaded)

    assert scene.waiting(chat, RunKind.REPLY) == ()
    assert _served_by(scene) == [claim.run.id]


def a_message_during_a_reply_waits_for_the_next_reply(scene: Scene) -> None:
    chat = scene.chat()
    scene.say(chat, "One.")
    first = scene.begin_reply()
    loaded = scene.items(first)
    scene.say(chat, "Two.")
    assert scene.claim_reply() is None
    scene.finish(first, "Hello.", served=loaded)

    second = scene.begin_reply()

    assert second.turn.epoch == first.turn.epoch + 1
    assert [item.content["text"] for item in scene.items(second)] == ["Two."]


def an_event_during_a_run_waits_for_the_next_run(scene: Scene) -> None:
    task = scene.task(Event("file", {}))
    scene.change(task, lambda found: transitions.receive_event(found, {"n": 1}))
    first = scene.begin_work()
    loaded = scene.items(first)
    scene.change(task, lambda found: transitions.receive_event(found, {"n": 2}))
    scene.finish(first, served=loaded)

    assert [item.content for item in scene.items(scene.begin_work())] == [{"n": 2}]


def what_one_run_served_no_later_one_serves(scene: Scene) -> None:
    chat = scene.chat()
    scene.say(chat, "One.")
    first = scene.begin_reply()
    loaded = scene.items(first)
    scene.finish(first, "Hello.", served=loaded)
    scene.say(chat, "Two.")
    second = scene.begin_reply()

    scene.finish(second, "Hello.", served=[*loaded, *scene.items(second)])

    assert sorted(_served_by(scene)) == sorted([first.run.id, second.run.id])


def a_person_waits_from_the_message_to_the_reply(scene: Scene) -> None:
    chat = scene.chat()

    def waits() -> bool:
        rows = select(tables.inbox).where(tables.is_unserved, tables.inbox.c.from_person)
        return scene.run(lambda tx: tx.connection.execute(rows).first()) is not None

    assert not waits()
    scene.say(chat)
    assert waits()
    claim = scene.begin_reply()
    assert waits()
    scene.finish(claim, "Hello.", served=scene.items(claim))
    assert not waits()


def a_reply_that_waits_for_its_user_is_there_and_one_that_waits_for_a_time_is_not(
    scene: Scene,
) -> None:
    chat = scene.chat()
    scene.say(chat)
    claim = scene.begin_reply()
    items = scene.items(claim)
    ids, message_id = [item.id for item in items], items[0].content["message_id"]

    def find() -> Reply | None:
        return scene.run(lambda tx: tx.replies.find(USER, chat.id, message_id, ids))

    scene.hand_back(claim, served=items)
    assert find() is None
    scene.hand_back(scene.begin_work(), after=None)
    found = find()
    assert found is not None
    assert found.run is not None
    assert (found.run.status, found.run.waits_for_user) == (RunStatus.QUEUED, True)

    scene.run(lambda tx: tx.runs.resume_waiting(USER, chat.id, at=NOON))
    assert find() is None


def what_nobody_will_serve_is_taken_out(scene: Scene) -> None:
    task = scene.task()
    scene.say(task)
    scene.change(task, transitions.run_now)
    scene.change(task, lambda found: transitions.cancel(found, now=NOON))
    assert scene.waiting(task, RunKind.BACKGROUND) == ()
    assert len(scene.waiting(task, RunKind.REPLY)) == 1

    scene.change(task, lambda found: transitions.archive(found, now=NOON))

    assert scene.waiting(task, RunKind.REPLY) == ()
    assert _served_by(scene) == []


def an_answer_is_pending_until_the_run_that_served_it_has_ended(scene: Scene) -> None:
    task, other = scene.task(), scene.chat()
    answer = NewItem(
        id=new_item_id(), kind=ItemKind.ANSWER, run_kind=RunKind.BACKGROUND, content={"a": 1}
    )
    event = replace(answer, id=new_item_id(), kind=ItemKind.EVENT)
    scene.run(lambda tx: tx.inbox.put(USER, task.id, [answer, event]))

    def pending(of: Conversation = task) -> list[ItemId]:
        return [item.id for item in scene.run(lambda tx: tx.inbox.pending_answers(USER, of.id))]

    assert pending() == [answer.id]
    assert pending(other) == []
    claim = scene.begin_work()
    assert pending() == [answer.id]
    scene.hand_back(claim, served=scene.items(claim))
    assert pending() == [answer.id]
    again = scene.begin_work()
    assert (again.resumed, pending()) == (True, [answer.id])
    scene.finish(again)
    assert pending() == []


def _served_by(scene: Scene) -> list[str]:
    found = scene.run(
        lambda tx: tx.connection.execute(select(tables.inbox.c.served_by)).scalars().all()
    )
    return [run for run in found if run]
