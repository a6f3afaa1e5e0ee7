"""Sign-ins that were started, and the leases of those who renew tokens."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

from backburner.core.connections.connection import Connection
from backburner.core.ids import ConnectionId, UserId
from backburner.ports import LeaseState, StartedSignIn
from backburner.store.tx import Tx
from support.contracts.store.work.connections import MAIL
from support.stage.make import MATE, NOON, USER
from support.stage.scene import Scene

LEASE = timedelta(seconds=30)
STARTED = StartedSignIn(
    connection_id=MAIL.id, digest="d1", command="c", expires_at=NOON + timedelta(minutes=10)
)


def _set(scene: Scene) -> None:
    for user in (USER, MATE):
        scene.user(user)
        scene.run(partial(_add, replace(MAIL, user_id=user)))


def _add(connection: Connection, tx: Tx) -> None:
    tx.connections.add(connection)


def _take(scene: Scene, holder: str, user: UserId = USER) -> LeaseState:
    return scene.run(lambda tx: tx.token_leases.take(user, MAIL.id, holder, lease=LEASE))


def a_started_sign_in_is_found_as_it_was_put_and_only_by_its_owner(scene: Scene) -> None:
    _set(scene)
    scene.run(lambda tx: tx.started_sign_ins.put(USER, STARTED))

    assert scene.run(lambda tx: tx.started_sign_ins.find(USER, MAIL.id)) == STARTED
    assert scene.run(lambda tx: tx.started_sign_ins.find_by_digest(USER, "d1")) == STARTED
    assert scene.run(lambda tx: tx.started_sign_ins.find_by_digest(USER, "d2")) is None
    assert scene.run(lambda tx: tx.started_sign_ins.find(MATE, MAIL.id)) is None
    assert scene.run(lambda tx: tx.started_sign_ins.find_by_digest(MATE, "d1")) is None


def a_connection_has_one_started_sign_in_which_is_deleted_with_it(scene: Scene) -> None:
    _set(scene)
    later = replace(STARTED, digest="d2", command="", session="k")
    scene.run(lambda tx: tx.started_sign_ins.put(USER, STARTED))
    scene.run(lambda tx: tx.started_sign_ins.put(USER, later))
    scene.run(lambda tx: tx.started_sign_ins.mark_arrived(USER, MAIL.id))

    assert scene.run(lambda tx: tx.started_sign_ins.find_by_digest(USER, "d1")) is None
    found = scene.run(lambda tx: tx.started_sign_ins.find(USER, MAIL.id))
    assert found == replace(later, arrived=True)

    _take(scene, "one")
    scene.run(lambda tx: tx.connections.remove(USER, MAIL.id))
    assert scene.run(lambda tx: tx.started_sign_ins.find(USER, MAIL.id)) is None


def sign_ins_expire(scene: Scene) -> None:
    _set(scene)
    now = scene.run(lambda tx: tx.now)
    scene.run(lambda tx: tx.started_sign_ins.put(USER, replace(STARTED, expires_at=now)))
    scene.run(lambda tx: tx.started_sign_ins.put(MATE, replace(STARTED, expires_at=now + LEASE)))

    def expired(limit: int = 9) -> list[tuple[UserId, ConnectionId]]:
        return list(scene.run(lambda tx: tx.started_sign_ins.expired(before=now, limit=limit)))

    assert expired() == [(USER, MAIL.id)]
    assert expired(limit=0) == []
    scene.run(lambda tx: tx.started_sign_ins.remove(USER, MAIL.id))
    assert expired() == []


def one_process_at_a_time_has_the_lease_of_a_connection(scene: Scene) -> None:
    _set(scene)

    assert _take(scene, "one") is LeaseState.TAKEN
    assert _take(scene, "two") is LeaseState.HELD
    assert _take(scene, "two", MATE) is LeaseState.TAKEN
    assert not scene.run(lambda tx: tx.token_leases.release(USER, MAIL.id, "two"))
    assert scene.run(lambda tx: tx.token_leases.release(USER, MAIL.id, "one"))
    assert _take(scene, "two") is LeaseState.TAKEN


def _take_for(until: timedelta, tx: Tx) -> None:
    tx.token_leases.take(USER, MAIL.id, "one", lease=until)


def a_lease_that_was_not_given_back_is_taken_over_when_it_ends(scene: Scene) -> None:
    _set(scene)
    for until, state in (
        (LEASE, LeaseState.HELD),
        (timedelta(), LeaseState.TAKEN_OVER),
        # The clock was set back since.
        (timedelta(hours=1), LeaseState.TAKEN_OVER),
    ):
        scene.run(lambda tx: tx.token_leases.release(USER, MAIL.id, "two"))
        scene.run(partial(_take_for, until))
        assert _take(scene, "two") is state
        scene.run(lambda tx: tx.token_leases.release(USER, MAIL.id, "one"))
