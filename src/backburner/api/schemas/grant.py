"""Grants: tool calls that the agent may make without asking."""

from collections.abc import Sequence
from datetime import datetime
from typing import Self

from pydantic import BaseModel, Field

from backburner.api.schemas.base import example
from backburner.ports import GrantRow


class GrantOut(BaseModel):
    model_config = example(
        id="g_0123456789abcdefghjkmnpqrs",
        conversation_id="c_0123456789abcdefghjkmnpqrs",
        server="backburner",
        tool="run_command",
        lasting=True,
        words=["curl https://example.org/status"],
        given_at="2026-11-16T12:00:00Z",
        expires_at=None,
    )

    id: str
    conversation_id: str
    server: str
    tool: str
    lasting: bool = Field(description="False: valid for one exact call, once.")
    words: Sequence[str] = Field(
        description="A command line, a subcommand whose arguments may vary, or a host. Of a program"
        " with a sign-in, its folder may follow as `in FOLDER`."
    )
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
            given_at=row.given_at,
            expires_at=grant.expires_at,
        )
