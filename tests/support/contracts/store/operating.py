"""What operators see: workers, the queue, the database and failures, and no content."""

from datetime import datetime, timedelta

from backburner.core.connections.connection import Connection, ConnectionState
from backburner.core.conversation import Destination
from backburner.core.ids import ConnectionId, ConversationId, UserId
from backburner.core.notice import Notice, NoticeKind
from backburner.core.run import Failure, FailureKind
from backburner.core.transitions import Step
from backburner.ports import TroubleKind, Tx, WorkerReport
from support.stage.make import MATE, NOON, USER
from support.stage.scene import Scene

MINUTE = timedelta(minutes=1)


def a_worker_reports_and_is_forgotten(scene: Scene) -> None:
    _report(scene, "a:1", at=NOON)
    _report(scene, "b:2", at=NOON + MINUTE, seats_used=2, is_draining=True)
    _report(scene, "a:1", at=NOON + 2 * MINUTE, seats_used=1)

    rows = scene.run(lambda tx: tx.operations.workers(limit=9))
    assert [(row.report.name, row.report.seats_used, row.seen_at) for row in rows] == [
        ("a:1", 1, NOON + 2 * MINUTE),
        ("b:2", 2, NOON + MINUTE),
    ]
    assert [row.report.is_draining for row in rows] == [False, True]
    assert rows[0].report == _worker("a:1", seats_used=1)
    assert len(scene.run(lambda tx: tx.operations.workers(limit=1))) == 1

    scene.run(lambda tx: tx.operations.prune(before=NOON + 2 * MINUTE))
    assert _names(scene) == ["a:1"]
    scene.run(lambda tx: tx.operations.forget("a:1"))
    assert _names(scene) == []


def accounts_are_known_as_long_as_there_are_any(scene: Scene) -> None:
    for user in (USER, MATE):
        scene.user(user)

    found = scene.run(lambda tx: tx.accounts.known([MATE, USER, UserId("u_gone")]))
    assert [one.id for one in found] == sorted([USER, MATE])
    assert scene.run(lambda tx: tx.accounts.known([])) == []


def the_queue_is_counted_as_it_is_claimed(scene: Scene) -> None:
    for _ in range(2):
        scene.task()
    scene.say(scene.chat(), "Hello?")
    scene.clock.advance(2 * MINUTE)

    found = scene.run(lambda tx: tx.operations.queue())
    assert (found.due, found.oldest_wait) == (3, 2 * MINUTE)
    assert (found.running, found.queued, found.users_waiting) == (0, 0, 1)
    assert not found.is_paused

    held = scene.begin_reply()
    found = scene.run(lambda tx: tx.operations.queue())
    assert (found.due, found.running) == (2, 1)
    scene.hand_back(held)
    assert scene.run(lambda tx: tx.operations.queue()).queued == 1
    scene.run(lambda tx: tx.users.pause_everything(None, paused=True))
    assert scene.run(lambda tx: tx.operations.queue()).is_paused


def deliveries_are_counted_while_they_wait_and_for_a_while_after_they_failed(
    scene: Scene,
) -> None:
    task = scene.task(reports_to=(Destination("mail", "a@b"),))
    for text in ("One.", "Two."):
        _notify(scene, task.id, text)
    scene.run(_fail_next)

    found = scene.run(lambda tx: tx.operations.deliveries(since=NOON - MINUTE))
    assert (found.waiting, found.failed) == (1, 1)
    later = scene.run(lambda tx: tx.now) + MINUTE
    assert scene.run(lambda tx: tx.operations.deliveries(since=later)).failed == 0


def the_kind_and_size_of_the_database_are_known(scene: Scene) -> None:
    found = scene.run(lambda tx: tx.operations.database())

    assert found.kind in ("sqlite", "postgresql")
    assert found.size_bytes > 100_000


def failures_of_all_users_are_listed_newest_first_without_their_texts(scene: Scene) -> None:
    content = "the plan of a member"
    scene.user(MATE)
    scene.task(reports_to=(Destination("mail", "a@b"),))
    scene.finish(scene.begin_work(), Failure(FailureKind.TOOL, content))
    scene.clock.advance(MINUTE)
    failed_at = scene.run(_fail_next)
    scene.run(lambda tx: _add_signed_out(tx, failed_at + MINUTE, content))

    rows = scene.run(lambda tx: tx.operations.troubles(limit=9))

    assert [(row.kind, row.user_id, row.cause) for row in rows] == [
        (TroubleKind.CONNECTION, MATE, ""),
        (TroubleKind.DELIVERY, USER, "mail"),
        (TroubleKind.RUN, USER, "tool"),
    ]
    assert content not in str(rows)
    assert [row.at for row in rows] == sorted((row.at for row in rows), reverse=True)
    assert len(scene.run(lambda tx: tx.operations.troubles(limit=2))) == 2


def _worker(name: str, *, seats_used: int = 0, is_draining: bool = False) -> WorkerReport:
    return WorkerReport(
        name=name,
        host="host",
        version="1",
        started_at=NOON,
        seats=5,
        seats_used=seats_used,
        is_draining=is_draining,
    )


def _report(
    scene: Scene, name: str, *, at: datetime, seats_used: int = 0, is_draining: bool = False
) -> None:
    worker = _worker(name, seats_used=seats_used, is_draining=is_draining)
    scene.run(lambda tx: tx.operations.report(worker), now=at)


def _names(scene: Scene) -> list[str]:
    return [row.report.name for row in scene.run(lambda tx: tx.operations.workers(limit=9))]


def _notify(scene: Scene, conversation_id: ConversationId, text: str) -> None:
    def work(tx: Tx) -> None:
        conversation = tx.conversations.lock(USER, conversation_id)
        notice = Notice(NoticeKind.RESULT, text)
        tx.conversations.save(Step(conversation=conversation, notices=(notice,)))

    scene.run(work)


def _fail_next(tx: Tx) -> datetime:
    delivery = tx.deliveries.lease(lease=MINUTE)
    assert delivery is not None
    assert tx.deliveries.mark_failed(delivery, "It is gone.", again_at=None)
    return tx.now


def _add_signed_out(tx: Tx, at: datetime, error: str) -> None:
    connection = Connection(
        id=ConnectionId("x_1"),
        user_id=MATE,
        name="mail",
        title="Mail",
        created_at=NOON,
        state=ConnectionState.SIGNED_OUT,
        last_error=error,
        last_error_at=at,
    )
    tx.connections.add(connection)
