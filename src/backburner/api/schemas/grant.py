"""Grants: tool calls that the agent may make without asking."""

from collections.abc import Sequence
from datetime import datetime
from typing import Self

from pydantic import BaseModel, Field

from backburner.api.schemas.base import RequestBody, example
from backburner.ports import GrantRow

MAX_GRANT_WORDS = 1_000


class GrantChangesBody(RequestBody):
    model_config = example(words=["git", "log"])

    words: list[str] = Field(
        min_length=1,
        max_length=MAX_GRANT_WORDS,
        description="The first word of the grant's words, or more of them.",
    )


class GrantOut(BaseModel):
    model_config = example(
        id="g_0123456789abcdefghjkmnpqrs",
        conversation_id="c_0123456789abcdefghjkmnpqrs",
        server="backburner",
        tool="run_command",
        lasting=True,
        words=["git", "status"],
        whole=False,
        given_at="2026-11-16T12:00:00Z",
        expires_at=None,
    )

    id: str
    conversation_id: str
    server: str
    tool: str
    lasting: bool = Field(description="False: valid for one exact call, once.")
    words: Sequence[str] = Field(description="The first words of allowed commands, or a host.")
    whole: bool = Field(description="Allowed commands consist of these words only.")
    given_at: datetime
    expires_at: datetime | None

    @classmethod
    def of(cls, row: GrantRow) -> Self:
        grant = row.grant
        return cls(
            id=grant.id,
            conversation_id=row.conversation_id,
            server=grant.server,
            tool=grant.tool,
            lasting=grant.call is None,
            words=grant.words,
            whole=grant.whole,
            given_at=row.given_at,
            expires_at=grant.expires_at,
        )
