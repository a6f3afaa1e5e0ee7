"""Browsers that take push messages are told of every notice, for as long as their session lasts."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from backburner.core.accounts import CredentialKind
from backburner.core.channels.push import PUSH, PushSubscription
from backburner.core.conversation import Destination
from backburner.core.errors import NotFound
from backburner.core.ids import PushId, QuestionId, UserId, new_push_id
from backburner.core.notice import Notice, NoticeKind
from backburner.core.transitions import Step
from backburner.ports import Delivery, NewCredential
from support.stage.make import MATE, USER
from support.stage.scene import DONE, LEASE, Scene

#: Ends a session.
End = Callable[[Any, str], object]
DAY = timedelta(days=1)
ASKED = Notice(NoticeKind.QUESTION, "Shall I?", QuestionId("q_1"))
TOLD = Notice(NoticeKind.RESULT, "All green.")


def every_notice_goes_to_each_browser_of_its_user(scene: Scene) -> None:
    session = _sign_in(scene)
    browsers = [_subscribe(scene, session, endpoint=f"https://p/{name}") for name in "ab"]
    _subscribe(scene, _sign_in(scene, MATE), user=MATE)
    task = scene.task(reports_to=(Destination("discord", "somebody"),))

    scene.run(
        lambda tx: tx.conversations.save(
            Step(conversation=replace(task, title="watch"), notices=(ASKED, TOLD)), cause="cause"
        )
    )

    parts = _take_all(scene)
    assert {(part.target, part.text) for part in parts if part.channel == PUSH} == {
        (browser.id, text) for browser in browsers for text in ("Shall I?", "All green.")
    }
    assert len({part.key for part in parts}) == len(parts) == 6
    assert {(part.kind, part.address, part.title) for part in parts} == {
        (NoticeKind.QUESTION, "/q/q_1", "watch"),
        (NoticeKind.RESULT, f"/c/{task.id}", "watch"),
    }
    assert len({part.notice_id for part in parts}) == 2


def a_run_that_ends_tells_the_browsers_of_its_user(scene: Scene) -> None:
    browser = _subscribe(scene, _sign_in(scene))
    scene.task()
    scene.finish(scene.begin_work(), DONE)

    (part,) = _take_all(scene)

    assert (part.channel, part.target) == (PUSH, browser.id)


def a_browser_whose_session_has_ended_is_not_told(scene: Scene) -> None:
    ends: dict[str, End] = {
        "revoked": lambda tx, session: tx.credentials.revoke(
            USER, session, CredentialKind.SESSION, now=tx.now
        ),
        "all revoked": lambda tx, _: tx.credentials.revoke_all(
            USER, [CredentialKind.SESSION], now=tx.now
        ),
        "disabled": lambda tx, _: tx.accounts.disable(USER, at=tx.now),
    }
    task = scene.task()
    for name, end in ends.items():
        session = _sign_in(scene)
        subscription = _subscribe(scene, session, endpoint=f"https://p/{name}")
        assert scene.run(lambda tx: tx.push_subscriptions.list(USER)) == [subscription]

        _end(scene, end, session)

        assert scene.run(lambda tx: tx.push_subscriptions.list(USER)) == [], name
        assert _cannot_load(scene, subscription), name
        _tell(scene, task, name)
        assert _take_all(scene) == [], name


def a_browser_whose_session_has_expired_is_not_told(scene: Scene) -> None:
    scene.user(USER)
    expired = scene.run(
        lambda tx: tx.credentials.issue(
            USER,
            "expired",
            NewCredential(CredentialKind.SESSION, expires_at=tx.now - DAY),
            now=tx.now,
        )
    )
    subscription = _subscribe(scene, expired)

    assert scene.run(lambda tx: tx.push_subscriptions.list(USER)) == []
    assert _cannot_load(scene, subscription)
    _tell(scene, scene.task(), "cause")
    assert _take_all(scene) == []
    # It is found again if the same browser asks in a new session.
    found = scene.run(lambda tx: tx.push_subscriptions.find(USER, subscription.endpoint))
    assert found == subscription


def the_end_of_one_session_leaves_the_browsers_of_others(scene: Scene) -> None:
    first, second = _sign_in(scene), _sign_in(scene)
    gone = _subscribe(scene, first)
    kept = _subscribe(scene, second, endpoint="https://p/other")
    mates = _subscribe(scene, _sign_in(scene, MATE), user=MATE)

    scene.run(lambda tx: tx.credentials.revoke(USER, first, CredentialKind.SESSION, now=tx.now))

    assert scene.run(lambda tx: tx.push_subscriptions.list(USER)) == [kept]
    assert scene.run(lambda tx: tx.push_subscriptions.list(MATE)) == [mates]
    assert scene.run(lambda tx: tx.push_subscriptions.find(USER, gone.endpoint)) is None


def what_came_of_a_message_is_noted(scene: Scene) -> None:
    subscription = _subscribe(scene, _sign_in(scene))
    rows = scene.run

    rows(lambda tx: tx.push_subscriptions.mark_failed(USER, subscription.id, "busy"))
    failed = rows(lambda tx: tx.push_subscriptions.load(USER, subscription.id))
    rows(lambda tx: tx.push_subscriptions.mark_sent(USER, subscription.id))
    sent = rows(lambda tx: tx.push_subscriptions.load(USER, subscription.id))

    assert (failed.error, failed.sent_at) == ("busy", None)
    assert failed.failed_at is not None
    assert (sent.error, sent.failed_at) == (None, None)
    assert sent.sent_at is not None


def a_browser_that_is_removed_is_gone_once(scene: Scene) -> None:
    subscription = _subscribe(scene, _sign_in(scene))

    scene.run(lambda tx: tx.push_subscriptions.remove(USER, subscription.id))

    assert scene.run(lambda tx: tx.push_subscriptions.list(USER)) == []
    with pytest.raises(NotFound):
        scene.run(lambda tx: tx.push_subscriptions.remove(USER, subscription.id))


def a_browser_that_asks_again_stays_one(scene: Scene) -> None:
    first = _subscribe(scene, _sign_in(scene))
    again = replace(first, session=_sign_in(scene), auth=b"new", label="other")

    scene.run(lambda tx: tx.push_subscriptions.put(again))

    assert scene.run(lambda tx: tx.push_subscriptions.list(USER)) == [again]


def _end(scene: Scene, end: End, session: str) -> None:
    scene.run(lambda tx: end(tx, session))


def _sign_in(scene: Scene, user: UserId = USER) -> str:
    scene.user(user)
    new = NewCredential(CredentialKind.SESSION)
    session: str = scene.run(
        lambda tx: tx.credentials.issue(user, str(new_push_id()), new, now=tx.now)
    )
    return session


def _subscribe(
    scene: Scene, session: str, *, user: UserId = USER, endpoint: str = "https://p/a"
) -> PushSubscription:
    def work(tx: Any) -> PushSubscription:
        made = PushSubscription(
            id=new_push_id(),
            user_id=user,
            session=session,
            endpoint=endpoint,
            receiver_key=b"\x04key",
            auth=b"auth",
            server_key=b"\x04server",
            label="phone",
            created_at=tx.now,
        )
        tx.push_subscriptions.put(made)
        return made

    made: PushSubscription = scene.run(work)
    return made


def _cannot_load(scene: Scene, subscription: PushSubscription) -> bool:
    which: PushId = subscription.id
    try:
        scene.run(lambda tx: tx.push_subscriptions.load(subscription.user_id, which))
    except NotFound:
        return True
    return False


def _tell(scene: Scene, task: Any, cause: str) -> None:
    scene.run(
        lambda tx: tx.conversations.save(Step(conversation=task, notices=(TOLD,)), cause=cause)
    )


def _take_all(scene: Scene) -> list[Delivery]:
    parts = list[Delivery]()
    while (part := scene.run(lambda tx: tx.deliveries.lease(lease=LEASE))) is not None:
        parts.append(part)
    return parts
