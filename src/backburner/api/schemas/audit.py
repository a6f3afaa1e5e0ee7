"""Administrative acts."""

from datetime import datetime
from typing import Self

from pydantic import BaseModel, Field

from backburner.api.schemas.base import example
from backburner.core.accounts import Act, AuditEntry


class AuditEntryOut(BaseModel):
    model_config = example(
        id="a_0123456789abcdefghjkmnpqrs",
        at="2026-11-16T12:00:00Z",
        actor="u_0123456789abcdefghjkmnpqrs",
        act="role_changed",
        user="u_3123456789abcdefghjkmnpqrs",
        detail="operator",
    )

    id: str
    at: datetime
    actor: str = Field(description="Who did it: a user, or `on the server`.")
    act: Act
    user: str | None = Field(description="Whom it concerns.")
    detail: str

    @classmethod
    def of(cls, entry: AuditEntry) -> Self:
        return cls(
            id=entry.id,
            at=entry.at,
            actor=entry.actor,
            act=entry.act,
            user=entry.user,
            detail=entry.detail,
        )
