"""Whose work is next: whoever has waited longest, and nobody more than their share."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

from sqlalchemy import func, select

from backburner.core.ids import UserId, new_item_id
from backburner.core.run import ItemKind, NewItem, RunKind
from backburner.core.schedule import Scheduled
from backburner.store import tables
from support.stage.make import MATE, USER
from support.stage.scene import Scene

JOB_RESULT = NewItem(kind=ItemKind.JOB_RESULT, run_kind=RunKind.REPLY)


def one_conversation_beside_ten_thousand_is_served_second(scene: Scene) -> None:
    scene.user(MATE)
    scene.crowd(scene.task(), each=10_000)

    assert {_served(scene), _served(scene)} == {USER, MATE}


def everybody_is_served_once_before_anybody_is_twice(scene: Scene) -> None:
    people = [scene.user(UserId(f"u_{number}")) for number in range(49)]
    scene.crowd(scene.task(), each=2)
    scene.task()

    for _ in range(2):
        served = [_served(scene) for _ in range(50)]
        assert sorted(served) == sorted([*people, USER])
    assert scene.claim_work() is None


def nobody_has_more_runs_than_the_cap_however_many_claim_at_once(scene: Scene) -> None:
    scene.user(MATE)
    scene.crowd(scene.task(), each=60)
    scene.crowd(scene.task(user=MATE), each=60)

    def work(worker: int) -> int:
        most = 0
        for number in range(15):
            claim = scene.claim_work(cap=3)
            most = max(most, *_running(scene))
            if claim is not None and (worker + number) % 2:
                scene.finish(claim)
        return most

    with ThreadPoolExecutor(4) as workers:
        assert max(workers.map(work, range(4))) == 3
    while scene.claim_work(cap=3):
        pass
    assert _running(scene) == [3, 3]


def a_reply_that_a_person_has_come_to_wait_for_takes_no_place_of_work(scene: Scene) -> None:
    chat, task = scene.chat(), scene.task(Scheduled(scene.clock.now + timedelta(minutes=1)))
    scene.run(lambda tx: tx.inbox.put(USER, chat.id, [replace(JOB_RESULT, id=new_item_id())]))
    claim = scene.begin_work()
    scene.clock.advance(timedelta(minutes=1))
    assert scene.claim_work(cap=1) is None
    scene.hand_back(claim, after=timedelta(hours=1))
    scene.say(chat)

    assert scene.begin_reply().run.id == claim.run.id

    work = scene.claim_work(cap=1)
    assert work is not None
    assert work.conversation.id == task.id


def the_agenda_says_whether_there_is_one_account(scene: Scene) -> None:
    scene.user()
    assert scene.run(lambda tx: tx.queue.agenda()).one_account

    scene.user(MATE)
    assert not scene.run(lambda tx: tx.queue.agenda()).one_account


def _running(scene: Scene) -> list[int]:
    """Count the runs under way of each user."""
    count = select(func.count()).where(tables.is_running).group_by(tables.runs.c.user_id)
    return list(scene.run(lambda tx: tx.connection.execute(count).scalars().all()))


def _served(scene: Scene) -> UserId:
    scene.clock.advance(timedelta(seconds=1))
    return scene.begin_work().turn.user_id
