"""Notices, and marking them as seen."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Self

from pydantic import BaseModel, Field, model_validator

from backburner.api.http.pages import MAX_PAGE_SIZE
from backburner.api.schemas.base import RequestBody, example
from backburner.core.errors import BadRequest
from backburner.core.notice import NoticeKind, find_address
from backburner.ports import DeliveryState, NoticeRow


class SeenNoticesBody(RequestBody):
    """Either some notices, or all up to one."""

    model_config = example(up_to="n_0123456789abcdefghjkmnpqrs")

    ids: list[str] | None = Field(default=None, max_length=MAX_PAGE_SIZE)
    up_to: str | None = Field(default=None, description="This notice and all before it.")

    @model_validator(mode="after")
    def _check_choice(self) -> Self:
        if (self.ids is None) == (self.up_to is None):
            raise BadRequest("Either `ids` or `up_to` is required.", hint="Send one of them.")
        return self


class SeenCountOut(BaseModel):
    model_config = example(seen=3)

    seen: int = Field(description="How many of them were unseen before.")


class DeliveryOut(BaseModel):
    model_config = example(
        channel="mail",
        target="ada@example.org",
        state="waiting",
        attempts=2,
        error="The mail server is busy.",
        next_try_at="2026-11-16T12:05:00Z",
    )

    channel: str
    target: str = Field(description="Whom or what it is sent to on the channel.")
    state: DeliveryState = Field(
        description="`waiting` for the next try, `sending` just now, `sent`, or `failed` for good."
    )
    attempts: int
    error: str | None = Field(description="Why the last attempt failed.")
    next_try_at: datetime | None = Field(description="While it waits.")


class NoticeOut(BaseModel):
    model_config = example(
        id="n_0123456789abcdefghjkmnpqrs",
        conversation_id="c_0123456789abcdefghjkmnpqrs",
        title="watch-ci-main",
        run_id="r_0123456789abcdefghjkmnpqrs",
        kind="result",
        text="CI on main is red since 11:58.",
        message=None,
        options=[],
        question_id=None,
        address="/c/c_0123456789abcdefghjkmnpqrs",
        created_at="2026-11-16T12:00:00Z",
        seen_at=None,
        deliveries=[],
    )

    id: str
    conversation_id: str
    title: str = Field(description="The title of its conversation.")
    run_id: str | None
    kind: NoticeKind
    text: str = Field(description="Of a question: its prompt.")
    message: str | None = Field(description="The message that came with a question.")
    options: Sequence[str] = Field(description="The options of a question.")
    question_id: str | None
    address: str = Field(description="The page to open for it, on this server.")
    created_at: datetime
    seen_at: datetime | None
    deliveries: Sequence[DeliveryOut] = Field(
        description="One for each place outside that it is sent to."
    )

    @classmethod
    def of(cls, notice: NoticeRow) -> Self:
        address = find_address(notice.conversation_id, notice.question_id)
        return cls(**asdict(notice), address=address)
