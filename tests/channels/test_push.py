"""The channel to browsers, before a push service on loopback that checks and decrypts."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import ip_network
from typing import Any, TypeVar

import pytest
from structlog.testing import capture_logs
from support.contracts.channel import PROMISES, Promise, Received, Trouble
from support.contracts.channel.subject import message
from support.doubles.clock import SetClock
from support.people.sessions import start_session
from support.servers.push_service import Answer, Browser, PushServer, push_service
from support.stage.make import NOON
from support.stage.stage import Stage

from backburner.actions.channels import push
from backburner.actions.channels.push import NewSubscription
from backburner.actions.deps import PushParts
from backburner.channels.push.channel import PushChannel
from backburner.core.accounts import Caller
from backburner.core.channels.push import PushSubscription
from backburner.core.errors import ChannelFailed, StoreFailed, TargetGone
from backburner.core.ids import UserId
from backburner.core.notice import NoticeKind
from backburner.gateway.push_service import CheckedPushService
from backburner.ports import Channel, Store, Tx
from backburner.vault import web_push

T = TypeVar("T")
LOOPBACK = [ip_network("127.0.0.1/32")]
ANSWERS = {
    Trouble.BUSY: Answer(429),
    Trouble.DOWN: Answer(503, "<html>Sorry</html>"),
    Trouble.REFUSES: Answer(403, '{"reason": "BadJwtToken"}'),
    Trouble.UNFIT: Answer(413),
    Trouble.GONE: Answer(410),
    Trouble.NONSENSE: Answer(302, "", {"location": "http://127.0.0.1:1/"}),
    Trouble.HANGS_UP: Answer(0),
    Trouble.SILENT: Answer(200, None),
}


class FailingStore:
    """A database that has lost its connection, for reads or for writes."""

    def __init__(self, store: Store, *, reads: bool = False, writes: bool = False) -> None:
        self._store, self._reads, self._writes = store, reads, writes
        self.commit = store.commit

    async def read(self, work: Callable[[Tx], T], **more: Any) -> T:
        if self._reads:
            raise StoreFailed("The database is gone.", permanent=True)
        return await self._store.read(work, **more)

    async def transact(self, work: Callable[[Tx], T], **more: Any) -> T:
        if self._writes:
            raise StoreFailed("The database is gone.", permanent=True)
        return await self._store.transact(work, **more)


@dataclass
class PushSubject:
    stage: Stage
    service: PushServer
    stop: Callable[[], None]
    browser: Browser
    caller: Caller
    channel: Channel
    subscription: PushSubscription = field(init=False)

    @property
    def user(self) -> UserId:
        return self.caller.user

    @property
    def target(self) -> str:
        return self.subscription.id

    @property
    def secrets(self) -> Sequence[str]:
        return [self.browser.endpoint, "/send/"]

    def received(self) -> Sequence[Received]:
        payloads = [delivered.payload for delivered in self.browser.messages]
        return [Received(payload["title"], payload["body"]) for payload in payloads]

    def trouble(self, trouble: Trouble, *, retry_after: timedelta | None = None) -> None:
        answer = ANSWERS[trouble]
        if retry_after is not None:
            seconds = str(int(retry_after.total_seconds()))
            answer = Answer(answer.status, answer.text, {"retry-after": seconds})
        self.service.answers.append(answer)

    async def reached(self) -> None:
        await self.service.was_asked.wait()

    async def shut_down(self) -> None:
        self.stop()

    async def subscribe(self, browser: Browser) -> PushSubscription:
        new = NewSubscription(
            endpoint=browser.endpoint,
            receiver_key=browser.p256dh,
            auth=browser.auth,
            label="Firefox on Linux",
        )
        return await push.subscribe(self.stage.deps, self.caller, new)

    async def known(self) -> Sequence[PushSubscription]:
        return await push.list_subscriptions(self.stage.deps, self.user)


@pytest.fixture
async def subject(set_up: Callable[..., Stage]) -> AsyncIterator[PushSubject]:
    parts = PushParts(
        service=CheckedPushService(allow=LOOPBACK), crypto=web_push, contact="mailto:a@b.example"
    )
    stage = set_up(push=parts)
    async with push_service(now=NOON) as service:
        caller = await start_session(stage)
        made = PushSubject(
            *(stage, service, service.stop, service.browser(), caller, PushChannel(stage.deps))
        )
        made.subscription = await made.subscribe(made.browser)
        made.browser.server_key = made.subscription.server_key
        yield made


@pytest.mark.parametrize("promise", PROMISES.values(), ids=PROMISES)
async def test_the_channel_to_browsers_promises_that(
    promise: Promise, subject: PushSubject
) -> None:
    await promise(subject)


async def test_a_question_is_urgent_and_replaces_itself(subject: PushSubject) -> None:
    asked = message(subject, "Shall I?", kind=NoticeKind.QUESTION, address="/q/q_1")
    told = message(subject)
    for one in (asked, told):
        await subject.channel.send(one)

    question, result = subject.browser.messages
    assert subject.service.faults == []
    assert question.payload == {
        "title": "watch",
        "body": "Shall I?",
        "url": "/q/q_1",
        "tag": asked.notice_id,
        "kind": "question",
    }
    assert (question.headers["urgency"], result.headers["urgency"]) == ("high", "normal")
    assert question.headers["topic"] == asked.notice_id != result.headers["topic"]
    assert (question.headers["ttl"], result.headers["ttl"]) == ("604800", "86400")
    assert question.claims["sub"] == "mailto:a@b.example"
    assert question.size == result.size == 1024


async def test_a_subscription_notes_what_came_of_the_last_message(
    subject: PushSubject, clock: SetClock
) -> None:
    subject.service.answers.append(Answer(503))
    with pytest.raises(ChannelFailed):
        await subject.channel.send(message(subject))
    (failed,) = await subject.known()
    clock.advance(timedelta(minutes=1))
    await subject.channel.send(message(subject))
    (sent,) = await subject.known()

    assert (failed.sent_at, failed.failed_at) == (None, NOON)
    assert failed.error == "127.0.0.1 does not take messages now (503)."
    assert (sent.sent_at, sent.failed_at, sent.error) == (NOON + timedelta(minutes=1), None, None)


@pytest.mark.parametrize("status", [404, 410])
async def test_a_browser_that_is_gone_is_removed(subject: PushSubject, status: int) -> None:
    subject.service.answers.append(Answer(status))

    with pytest.raises(TargetGone):
        await subject.channel.send(message(subject))

    assert await subject.known() == []


async def test_a_refusal_is_an_error_in_the_log_without_the_endpoint(subject: PushSubject) -> None:
    subject.service.answers.append(Answer(403, '{"reason": "BadJwtToken"}'))

    with capture_logs() as logs, pytest.raises(ChannelFailed, match="push_contact"):
        await subject.channel.send(message(subject))

    assert logs == [
        {
            "event": "push.refused",
            "log_level": "error",
            "service": "127.0.0.1",
            "status": 403,
            "reason": "BadJwtToken",
        }
    ]
    assert len(await subject.known()) == 1


async def test_a_browser_of_an_earlier_key_of_this_server_is_removed_unasked(
    subject: PushSubject,
) -> None:
    # As after `vault reset`.
    subject.stage.database.run(lambda tx: tx.secrets.remove(None, push.SECRET))

    with pytest.raises(TargetGone, match="earlier key"):
        await subject.channel.send(message(subject))

    assert await subject.known() == []
    assert subject.service.asked == []


async def test_what_was_sent_but_cannot_be_noted_is_not_sent_again(subject: PushSubject) -> None:
    subject.stage.deps.store = FailingStore(subject.stage.database, writes=True)
    with capture_logs() as logs:
        await subject.channel.send(message(subject))

    assert len(subject.received()) == 1
    assert [line["event"] for line in logs] == ["push.note_failed"]


async def test_a_database_that_fails_is_trouble_that_passes(subject: PushSubject) -> None:
    subject.stage.deps.store = FailingStore(subject.stage.database, reads=True)

    with pytest.raises(ChannelFailed) as caught:
        await subject.channel.send(message(subject))
    assert not caught.value.permanent


async def test_a_host_that_is_not_public_is_never_asked(subject: PushSubject) -> None:
    """A name may have had another address when its user subscribed."""
    strict = PushParts(service=CheckedPushService(), crypto=web_push)
    subject.stage.deps.push = strict

    with pytest.raises(ChannelFailed) as caught:
        await subject.channel.send(message(subject))

    assert caught.value.permanent
    assert subject.service.asked == []
