"""What is to be told goes out once to every place it is for, whoever sends it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from backburner.core.conversation import Conversation, Destination
from backburner.core.ids import QuestionId, UserId
from backburner.core.notice import Notice, NoticeKind
from backburner.core.transitions import Step
from backburner.ports import Delivery, DeliveryRow, DeliveryState, NoticeRow
from backburner.store import tables
from support.stage.make import MATE, NOON, USER
from support.stage.scene import LEASE, Scene

PLACES = (Destination("discord", "somebody"), Destination("mail", "a@b"))


def a_notice_goes_out_once_to_every_place_it_is_for(scene: Scene) -> None:
    task = scene.task(reports_to=PLACES)
    _tell(scene, task, "One.", "Two.")

    out = [_take(scene) for _ in range(4)]

    assert {(part.channel, part.target, part.title, part.text) for part in out} == {
        (place.channel, place.target, "Told", text) for place in PLACES for text in ("One.", "Two.")
    }
    assert {part.kind for part in out} == {NoticeKind.RESULT}
    assert {part.address for part in out} == {f"/c/{task.id}"}
    assert len({part.key for part in out}) == 4
    assert _next_part(scene) is None


def what_follows_from_one_cause_is_never_put_out_twice(scene: Scene) -> None:
    task = scene.task(reports_to=PLACES)
    _tell(scene, task, "One.", cause="the same")
    before = scene.dump()

    with pytest.raises(IntegrityError):
        _tell(scene, task, "One.", cause="the same")

    assert scene.dump() == before


def a_notice_for_no_place_is_kept_and_goes_nowhere(scene: Scene) -> None:
    _tell(scene, scene.task(), "One.")

    kept = scene.run(
        lambda tx: tx.connection.execute(select(tables.notices.c.text)).scalars().all()
    )
    assert kept == ["One."]
    assert _next_part(scene) is None


def a_notice_is_listed_with_its_work_its_message_and_its_options(scene: Scene) -> None:
    task, other = scene.task(), scene.task()
    asked = Notice(
        NoticeKind.QUESTION,
        "Which one?",
        QuestionId("q_1"),
        message="There are two.",
        options=("left", "right"),
    )
    scene.run(lambda tx: tx.conversations.save(Step(conversation=task, notices=(asked,))))
    _tell(scene, other, "One.")

    newest, first = scene.run(
        lambda tx: tx.browse.notices(task.user_id, None, unseen=True, limit=9)
    )

    assert (first.conversation_id, first.title) == (task.id, task.title)
    assert (first.message, first.options) == ("There are two.", ("left", "right"))
    assert (newest.title, newest.message, newest.options) == ("Told", None, ())


def a_notice_is_listed_with_the_state_of_each_of_its_deliveries(scene: Scene) -> None:
    places = [Destination("discord", str(number)) for number in range(4)]
    task = scene.task(reports_to=tuple(places))
    silent = scene.task()
    _tell(scene, task, "One.")
    _tell(scene, silent, "Two.")
    parts = {part.target: part for part in (_take(scene) for _ in range(3))}
    again_at = NOON + timedelta(minutes=7)
    (sent, later, failed) = (parts[target] for target in ("0", "1", "2"))
    _sent(scene, sent)
    scene.run(lambda tx: tx.deliveries.mark_failed(later, "busy", again_at=again_at))
    scene.run(lambda tx: tx.deliveries.mark_failed(failed, "no such place", again_at=None))

    def listed(limit: int) -> Sequence[NoticeRow]:
        return scene.run(lambda tx: tx.browse.notices(task.user_id, None, unseen=True, limit=limit))

    newest, first = listed(9)
    assert newest.deliveries == ()
    assert first.deliveries == (
        _row("0", DeliveryState.SENT, attempts=1),
        _row("1", DeliveryState.WAITING, attempts=1, error="busy", next_try_at=again_at),
        _row("2", DeliveryState.FAILED, attempts=1, error="no such place"),
        _row("3", DeliveryState.WAITING, attempts=0, next_try_at=NOON),
    )
    # A page has as many notices as it should, however many places they went to.
    _tell(scene, task, "Three.", cause="another")
    assert [notice.text for notice in listed(2)] == ["Three.", "Two."]
    after = (listed(1)[0].id,)
    (two, one) = scene.run(lambda tx: tx.browse.notices(task.user_id, after, unseen=False, limit=2))
    assert (two.text, one.deliveries) == ("Two.", first.deliveries)
    assert _take(scene).target == "3"
    assert listed(9)[2].deliveries[3] == _row("3", DeliveryState.SENDING, attempts=1)


def _row(target: str, state: DeliveryState, **more: Any) -> DeliveryRow:
    return DeliveryRow(channel="discord", target=target, state=state, **more)


def the_parts_of_users_who_have_their_share_are_passed_over(scene: Scene) -> None:
    busy, other = scene.task(reports_to=PLACES[:1]), scene.task(user=MATE, reports_to=PLACES[:1])
    _tell(scene, busy, "One.", "Two.")
    scene.clock.advance(timedelta(seconds=1))
    _tell(scene, other, "Three.")

    def take(*besides: UserId) -> UserId | None:
        part = scene.run(lambda tx: tx.deliveries.lease(lease=LEASE, besides=besides))
        return None if part is None else part.user_id

    assert take() == USER
    assert take(USER) == MATE
    assert take(USER, MATE) is None
    assert take() == USER


def a_part_whose_sender_fell_silent_is_sent_by_another(scene: Scene) -> None:
    _tell(scene, scene.task(reports_to=PLACES[:1]), "One.")
    silent = _take(scene)
    assert _next_part(scene) is None
    scene.clock.advance(2 * LEASE)

    other = _take(scene)

    assert (other.key, other.attempts) == (silent.key, 2)
    assert not _sent(scene, silent)
    assert _sent(scene, other)
    assert not _sent(scene, other)
    scene.clock.advance(2 * LEASE)
    assert _next_part(scene) is None


def a_part_that_failed_is_tried_again_when_it_says_or_never(scene: Scene) -> None:
    _tell(scene, scene.task(reports_to=PLACES[:1]), "One.")
    part, again_at = _take(scene), NOON + timedelta(minutes=1)
    scene.run(lambda tx: tx.deliveries.mark_failed(part, "no", again_at=again_at))
    assert _next_part(scene) is None
    scene.clock.advance(timedelta(minutes=1))

    again = _take(scene)
    scene.run(lambda tx: tx.deliveries.mark_failed(again, "no", again_at=None))

    scene.clock.advance(timedelta(days=1))
    assert _next_part(scene) is None
    row = scene.run(lambda tx: tx.connection.execute(select(tables.deliveries)).one())
    assert (row.state, row.error, row.attempts) == ("failed", "no", 2)


def _tell(scene: Scene, task: Conversation, *texts: str, cause: str = "cause") -> None:
    told = tuple(Notice(NoticeKind.RESULT, text) for text in texts)
    step = Step(conversation=replace(task, title="Told"), notices=told)
    scene.run(lambda tx: tx.conversations.save(step, cause=cause))


def _next_part(scene: Scene) -> Delivery | None:
    return scene.run(lambda tx: tx.deliveries.lease(lease=LEASE))


def _take(scene: Scene) -> Delivery:
    part = _next_part(scene)
    assert part is not None
    return part


def _sent(scene: Scene, part: Delivery) -> bool:
    return scene.run(lambda tx: tx.deliveries.mark_sent(part, provider_id="1"))
