"""Push messages to browsers."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime
from typing import Annotated, Self

from fastapi import Path
from pydantic import AfterValidator, BaseModel, Field

from backburner.actions.channels.push import NewSubscription, PushState, PushTest
from backburner.api.schemas.base import RequestBody, check_id, example
from backburner.core.accounts import Caller
from backburner.core.channels.push import MAX_ENDPOINT_CHARS, MAX_LABEL_CHARS, PushSubscription
from backburner.core.errors import BadRequest
from backburner.core.ids import PushId

_LABEL = "Chrome on Android"
PushIdPath = Annotated[PushId, Path(description="The subscription's id."), AfterValidator(check_id)]
#: Browsers leave out the padding.
KeyText = Annotated[str, Field(max_length=200, pattern="^[A-Za-z0-9_-]+=*$")]


class PushKeysBody(RequestBody):
    """The keys that the browser has made, as base64url."""

    model_config = example(p256dh="B" + "A" * 86, auth="A" * 22)

    p256dh: KeyText
    auth: KeyText


class NewPushSubscriptionBody(RequestBody):
    model_config = example(
        endpoint="https://push.example.net/send/dGhlIGJyb3dzZXI",
        expirationTime=None,
        keys={"p256dh": "B" + "A" * 86, "auth": "A" * 22},
        label=_LABEL,
    )

    endpoint: str = Field(min_length=1, max_length=MAX_ENDPOINT_CHARS)
    expirationTime: float | None = Field(  # noqa: N815 (as browsers write it)
        default=None, description="Taken because browsers send it; it is not used."
    )
    keys: PushKeysBody
    label: str = Field(
        default="",
        max_length=MAX_LABEL_CHARS,
        description="What to call the browser. Empty: as its User-Agent header says.",
    )

    def with_label(self, label: str) -> NewSubscription:
        return NewSubscription(
            endpoint=self.endpoint,
            receiver_key=_decode(self.keys.p256dh),
            auth=_decode(self.keys.auth),
            label=label,
        )


class PushOut(BaseModel):
    """The facts with which a page asks its browser for a subscription."""

    model_config = example(key="B" + "A" * 86, problem=None)

    key: str = Field(description="The `applicationServerKey`, as base64url.")
    problem: str | None = Field(
        description="Why browsers take no push messages at this address; null: they do."
    )

    @classmethod
    def of(cls, state: PushState) -> Self:
        key = urlsafe_b64encode(state.key).rstrip(b"=").decode()
        return cls(key=key, problem=state.problem or None)


class PushSubscriptionOut(BaseModel):
    model_config = example(
        id="p_6jy475abgx9xhaq0dnv4mc4j0a",
        label=_LABEL,
        service="push.example.net",
        is_this=True,
        created_at="2026-11-16T12:00:00Z",
        sent_at="2026-11-16T12:05:00Z",
        failed_at=None,
        error=None,
    )

    id: PushId
    label: str
    service: str = Field(description="The host of the browser's push service.")
    is_this: bool = Field(description="It was made in the session of this request.")
    created_at: datetime
    sent_at: datetime | None = Field(description="When the service last took a message.")
    failed_at: datetime | None = Field(
        description="When it did not take a message; null: it took the last one."
    )
    error: str | None = Field(description="Why it did not.")

    @classmethod
    def of(cls, subscription: PushSubscription, caller: Caller) -> Self:
        return cls(
            id=subscription.id,
            label=subscription.label,
            service=subscription.service,
            is_this=subscription.session == caller.credential,
            created_at=subscription.created_at,
            sent_at=subscription.sent_at,
            failed_at=subscription.failed_at,
            error=subscription.error,
        )


class PushTestOut(BaseModel):
    """The result of a test message to a browser."""

    model_config = example(sent=True, problem=None, hint="", removed=False)

    sent: bool = Field(description="The push service took it; the browser shows it soon.")
    problem: str | None = Field(description="What the push service said instead.")
    hint: str = Field(description="What to do about it.")
    removed: bool = Field(description="The browser takes no messages any more, and was removed.")

    @classmethod
    def of(cls, test: PushTest) -> Self:
        return cls(
            sent=test.problem is None, problem=test.problem, hint=test.hint, removed=test.is_gone
        )


def _decode(text: str) -> bytes:
    bare = text.rstrip("=")
    try:
        return urlsafe_b64decode(bare + "=" * (-len(bare) % 4))
    except binascii.Error:
        raise BadRequest("A key of the subscription is not base64url.") from None
