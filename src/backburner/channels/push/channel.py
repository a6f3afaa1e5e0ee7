"""The channel to browsers: encrypts a notice for one of them, and hands it to its push service."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from urllib.parse import urlsplit

import structlog

from backburner.actions.channels.push import load_server_key
from backburner.actions.deps import Deps, PushParts
from backburner.core.channels.push import PushSubscription, compose_payload
from backburner.core.errors import (
    BackburnerError,
    ChannelFailed,
    MachineFailed,
    NotFound,
    TargetGone,
)
from backburner.core.ids import PushId
from backburner.core.notice import NoticeKind
from backburner.ports import RUN_DEADLINE, ChannelMessage, PushAnswer, Tx

#: How long a service keeps a message for a browser that it cannot reach.
TTL, TTL_OF_QUESTIONS = timedelta(days=1), timedelta(days=7)
#: Services take a day at most.
TOKEN_LIFETIME = timedelta(hours=12)
#: The kind in the payload where a user tries the channel.
TEST = "test"
GONE = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.GONE})
REFUSED = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
#: Repeating the request may help.
PASSING = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS})

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Addressee:
    subscription: PushSubscription
    #: The private key of this server.
    server_key: bytes
    now: datetime

    @property
    def server_public_key(self) -> bytes:
        """The public key that the browser takes messages for."""
        return self.subscription.server_key


class PushChannel:
    """The target of a message is the id of a subscription."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    async def send(self, message: ChannelMessage) -> str | None:
        try:
            await self._send(message)
        except ChannelFailed:
            raise
        except MachineFailed as error:
            # Of the database or the vault: both may be back before the next attempt.
            raise ChannelFailed(error.message, hint=error.hint) from None
        except BackburnerError as error:
            raise ChannelFailed(error.message, hint=error.hint, permanent=True) from None
        # A service answers with an address of the message, which would be as secret as its own.
        return None

    async def close(self) -> None:
        """Nothing is open between two messages."""

    async def _send(self, message: ChannelMessage) -> None:
        addressee = await self._find(message)
        subscription = addressee.subscription
        user, which = subscription.user_id, subscription.id
        parts = self._deps.push
        body, authorization = await asyncio.to_thread(_seal, parts, message, addressee)
        headers = {
            "content-type": "application/octet-stream",
            "content-encoding": "aes128gcm",
            "authorization": authorization,
            **_terms(message),
        }
        try:
            answer = await parts.service.post(subscription.endpoint, body, headers)
            _check(answer, subscription)
        except TargetGone:
            await self._note(lambda tx: tx.push_subscriptions.remove(user, which))
            raise
        except MachineFailed as error:
            why = str(error)
            await self._note(lambda tx: tx.push_subscriptions.mark_failed(user, which, why))
            raise ChannelFailed(
                error.message,
                hint=error.hint,
                permanent=error.permanent,
                retry_after=error.retry_after,
            ) from None
        else:
            await self._note(lambda tx: tx.push_subscriptions.mark_sent(user, which))

    async def _find(self, message: ChannelMessage) -> _Addressee:
        user, which = message.user_id, PushId(message.target)

        def read(tx: Tx) -> _Addressee | None:
            subscription = tx.push_subscriptions.load(user, which)
            key = load_server_key(tx, self._deps)
            return None if key is None else _Addressee(subscription, key, tx.now)

        try:
            found = await self._deps.store.read(read, within=RUN_DEADLINE)
        except NotFound:
            raise _gone("The browser was signed out, or takes no messages.") from None
        if found is not None:
            public_key = self._deps.push.crypto.public_key
            if await asyncio.to_thread(public_key, found.server_key) == found.server_public_key:
                return found
        await self._note(lambda tx: tx.push_subscriptions.remove(user, which))
        raise _gone("The browser takes messages of an earlier key of this server.")

    async def _note(self, work: Callable[[Tx], None]) -> None:
        """Store what came of a message. If that fails, the message is not sent again for it."""
        try:
            await self._deps.store.transact(work, within=RUN_DEADLINE)
        except NotFound:
            pass
        except MachineFailed as error:
            _log.warning("push.note_failed", error=error.message)


def _seal(parts: PushParts, message: ChannelMessage, addressee: _Addressee) -> tuple[bytes, str]:
    subscription = addressee.subscription
    payload = compose_payload(
        title=message.title,
        text=message.text,
        address=message.address,
        tag=message.notice_id,
        kind=message.kind.value if message.kind else TEST,
    )
    crypto = parts.crypto
    body = crypto.encrypt(payload, receiver_key=subscription.receiver_key, auth=subscription.auth)
    url = urlsplit(subscription.endpoint)
    claims: dict[str, object] = {
        "aud": f"{url.scheme}://{url.netloc}",
        "exp": int((addressee.now + TOKEN_LIFETIME).timestamp()),
    }
    if parts.contact:
        claims["sub"] = parts.contact
    return body, crypto.sign(addressee.server_key, claims)


def _terms(message: ChannelMessage) -> dict[str, str]:
    is_question = message.kind is NoticeKind.QUESTION
    ttl = TTL_OF_QUESTIONS if is_question else TTL
    return {
        "ttl": str(int(ttl.total_seconds())),
        "urgency": "high" if is_question else "normal",
        # A later message with the same topic replaces one that was not delivered yet.
        "topic": message.notice_id,
    }


def _check(answer: PushAnswer, subscription: PushSubscription) -> None:
    """Raise the failure that an answer means."""
    status, service = answer.status, subscription.service
    reason = f"{status} {answer.reason}".strip()
    if 200 <= status < 300:
        return
    if status in GONE:
        raise _gone("The browser takes no messages any more.")
    if status in REFUSED:
        hint = "Let the operator set `push_contact`, or turn notifications off and on again there."
        _log.error("push.refused", service=service, status=status, reason=answer.reason)
        raise ChannelFailed(
            f"{service} refuses messages of this server ({reason}).", hint=hint, permanent=True
        )
    if status in PASSING or status >= 500:
        raise ChannelFailed(
            f"{service} does not take messages now ({reason}).", retry_after=answer.retry_after
        )
    raise ChannelFailed(f"{service} did not take the message ({reason}).", permanent=True)


def _gone(message: str) -> TargetGone:
    return TargetGone(message, permanent=True)
