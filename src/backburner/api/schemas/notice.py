"""Notices, and marking them as seen."""

from datetime import datetime
from typing import Self

from pydantic import BaseModel, Field, model_validator

from backburner.api.http.pages import MAX_PAGE_SIZE
from backburner.api.schemas.base import RequestBody, example
from backburner.core.errors import BadRequest
from backburner.core.notice import NoticeKind
from backburner.ports import NoticeRow


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


class NoticeOut(BaseModel):
    model_config = example(
        id="n_0123456789abcdefghjkmnpqrs",
        conversation_id="c_0123456789abcdefghjkmnpqrs",
        run_id="r_0123456789abcdefghjkmnpqrs",
        kind="result",
        text="CI on main is red since 11:58.",
        question_id=None,
        created_at="2026-11-16T12:00:00Z",
        seen_at=None,
    )

    id: str
    conversation_id: str
    run_id: str | None
    kind: NoticeKind
    text: str
    question_id: str | None
    created_at: datetime
    seen_at: datetime | None

    @classmethod
    def of(cls, notice: NoticeRow) -> Self:
        return cls.model_validate(notice, from_attributes=True)
