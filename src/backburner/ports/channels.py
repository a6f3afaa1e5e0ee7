"""Channels: places where users are told, and what push messages to browsers need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from backburner.core.channels.push import PushSubscription
from backburner.core.ids import NoticeId, PushId, UserId
from backburner.core.notice import NoticeKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelMessage:
    """A notice for one target, or a part of it."""

    user_id: UserId
    target: str
    #: The idempotency key for retries.
    key: str
    #: The title of the conversation; may be empty.
    title: str
    text: str
    #: None: the user tries the channel.
    kind: NoticeKind | None
    notice_id: NoticeId
    #: The page to open for it, on the server.
    address: str
    #: Where to go for it, in words or as a link; may be empty.
    where: str = ""

    def as_text(self) -> str:
        """Write it as one text, for channels that have nothing else."""
        text = f"{self.title}: {self.text}" if self.title else self.text
        return f"{text}\n\n{self.where}" if self.where else text


class Channel(Protocol):
    """A place where users are told. Each passes the suite in `tests/support/contracts/channel`."""

    async def send(self, message: ChannelMessage) -> str | None:
        """Send one part and return the provider's id.

        Raises `ChannelFailed` and nothing else: permanent if a retry cannot help, with
        `retry_after` if the other side asks for it, and `TargetGone` if the target does not exist
        any more.
        """

    async def close(self) -> None:
        """Release everything; nothing is sent afterwards."""


@dataclass(frozen=True, slots=True)
class PushAnswer:
    """The answer of a push service."""

    status: int
    retry_after: timedelta | None = None
    #: A word for the reason, as some services give it; may be empty.
    reason: str = ""


class PushService(Protocol):
    """Requests to the push services of browsers; addresses are checked."""

    async def check(self, endpoint: str) -> None:
        """Raise `BadRequest` for what is no address of a push service, `NotAllowed` for one that
        is not public."""

    async def post(self, endpoint: str, body: bytes, headers: Mapping[str, str]) -> PushAnswer:
        """Post a message. Raises `ConnectionFailed`."""


class PushCrypto(Protocol):
    """Encryption and signatures of Web Push. Blocking: its library is loaded at the first use."""

    def make_key(self) -> bytes:
        """Make a private key of an application server."""

    def public_key(self, key: bytes) -> bytes: ...
    def check_receiver(self, receiver_key: bytes, auth: bytes) -> None:
        """Raise `BadRequest` for keys that nothing can be encrypted for."""

    def encrypt(self, payload: bytes, *, receiver_key: bytes, auth: bytes) -> bytes:
        """Encrypt a payload (RFC 8291), padded to one of a few sizes."""

    def sign(self, key: bytes, claims: Mapping[str, object]) -> str:
        """Return the Authorization header for these claims (RFC 8292)."""


class PushSubscriptions(Protocol):
    """The browsers that take push messages. Those of ended sessions are left out everywhere."""

    def list(self, user: UserId) -> Sequence[PushSubscription]: ...
    def load(self, user: UserId, subscription: PushId) -> PushSubscription: ...
    def find(self, user: UserId, endpoint: str) -> PushSubscription | None:
        """Find the subscription with this endpoint, whether its session has ended or not."""

    def put(self, subscription: PushSubscription) -> None:
        """Add a subscription, or replace the one with its id."""

    def remove(self, user: UserId, subscription: PushId) -> None: ...
    def mark_sent(self, user: UserId, subscription: PushId) -> None: ...
    def mark_failed(self, user: UserId, subscription: PushId, why: str) -> None: ...
